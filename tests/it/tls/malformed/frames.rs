//! Frames that break a rule of the connection.

use super::super::client::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, frame,
};
use super::Expected::{Connection, Good};
use super::{PROTOCOL, Row, WHOLE, get, request};

const PRIORITY: u8 = 2;
const PUSH_PROMISE: u8 = 5;
const WINDOW_UPDATE: u8 = 8;
const UNKNOWN: u8 = 0xfa;

const PADDED: u8 = 8;

// Error codes (RFC 9113, section 7).
const FLOW_CONTROL: u32 = 3;
const CLOSED: u32 = 5;
const FRAME_SIZE: u32 = 6;
const COMPRESSION: u32 = 9;

/// A frame and a good request after it.
fn before(first: Vec<u8>) -> Vec<u8> {
    [first, good()].concat()
}

fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn good() -> Vec<u8> {
    request(&get(&[]))
}

/// Frames that break a rule of the connection, and controls.
pub(super) fn rows() -> Vec<Row> {
    let block = get(&[]);
    let (first, last) = block.split_at(8);
    let half = || frame(HEADERS, END_STREAM, 1, first);
    vec![
        ("a good request", Good, good()),
        (
            "a frame of an unknown kind",
            Good,
            before(frame(UNKNOWN, 0xff, 0, &[1, 2, 3])),
        ),
        (
            "an unknown setting",
            Good,
            before(frame(SETTINGS, 0, 0, &setting(0xaaaa, 7))),
        ),
        ("unknown flags", Good, frame(HEADERS, WHOLE | 0x40, 1, &block)),
        (
            "a reserved bit of a stream",
            Good,
            frame(HEADERS, WHOLE, 0x8000_0001, &block),
        ),
        (
            "a head in two frames",
            Good,
            [half(), frame(CONTINUATION, END_HEADERS, 1, last)].concat(),
        ),
        (
            "a padded head",
            Good,
            frame(HEADERS, WHOLE | PADDED, 1, &[&[3], &block[..], &[0; 3]].concat()),
        ),
        (
            "a priority of an idle stream",
            Good,
            before(frame(PRIORITY, 0, 9, &[0, 0, 0, 0, 1])),
        ),
        ("a ping", Good, before(frame(PING, 0, 0, &[7; 8]))),
        (
            "a larger window",
            Good,
            before(frame(WINDOW_UPDATE, 0, 0, &1000_u32.to_be_bytes())),
        ),
        ("data of no stream", Connection(&[PROTOCOL]), frame(DATA, 0, 0, b"x")),
        (
            "a head of no stream",
            Connection(&[PROTOCOL]),
            frame(HEADERS, WHOLE, 0, &block),
        ),
        (
            "a stream of the server",
            Connection(&[PROTOCOL]),
            frame(HEADERS, WHOLE, 2, &block),
        ),
        (
            "a stream below one that was opened",
            Connection(&[PROTOCOL, CLOSED]),
            [frame(HEADERS, END_HEADERS, 5, &block), frame(HEADERS, WHOLE, 1, &block)].concat(),
        ),
        (
            "data of an idle stream",
            Connection(&[PROTOCOL, CLOSED]),
            frame(DATA, END_STREAM, 1, b"x"),
        ),
        (
            "a reset of no stream",
            Connection(&[PROTOCOL]),
            frame(RST_STREAM, 0, 0, &[0, 0, 0, 8]),
        ),
        (
            "a reset of an idle stream",
            Connection(&[PROTOCOL]),
            frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        ),
        (
            "a reset of three bytes",
            Connection(&[FRAME_SIZE]),
            before(frame(RST_STREAM, 0, 1, &[0; 3])),
        ),
        (
            "settings of a stream",
            Connection(&[PROTOCOL]),
            frame(SETTINGS, 0, 1, &[]),
        ),
        (
            "an acknowledgement with settings",
            Connection(&[FRAME_SIZE]),
            frame(SETTINGS, 1, 0, &setting(3, 1)),
        ),
        (
            "settings of five bytes",
            Connection(&[FRAME_SIZE]),
            frame(SETTINGS, 0, 0, &[0; 5]),
        ),
        (
            "ENABLE_PUSH of 2",
            Connection(&[PROTOCOL]),
            frame(SETTINGS, 0, 0, &setting(2, 2)),
        ),
        (
            "a window of 2^31",
            Connection(&[FLOW_CONTROL]),
            frame(SETTINGS, 0, 0, &setting(4, 1 << 31)),
        ),
        (
            "MAX_FRAME_SIZE of 100",
            Connection(&[PROTOCOL]),
            frame(SETTINGS, 0, 0, &setting(5, 100)),
        ),
        (
            "MAX_FRAME_SIZE of 2^24",
            Connection(&[PROTOCOL]),
            frame(SETTINGS, 0, 0, &setting(5, 1 << 24)),
        ),
        (
            "a push of the client",
            Connection(&[PROTOCOL]),
            frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], &block[..]].concat()),
        ),
        (
            "a ping of seven bytes",
            Connection(&[FRAME_SIZE]),
            frame(PING, 0, 0, &[0; 7]),
        ),
        (
            "a ping of a stream",
            Connection(&[PROTOCOL]),
            frame(PING, 0, 1, &[0; 8]),
        ),
        (
            "a farewell of a stream",
            Connection(&[PROTOCOL]),
            frame(GOAWAY, 0, 1, &[0; 8]),
        ),
        (
            "a farewell of four bytes",
            Connection(&[FRAME_SIZE, PROTOCOL]),
            frame(GOAWAY, 0, 0, &[0; 4]),
        ),
        (
            "an increment of 0",
            Connection(&[PROTOCOL]),
            frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
        ),
        (
            "an increment over 2^31",
            Connection(&[FLOW_CONTROL]),
            frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()),
        ),
        (
            "an increment of three bytes",
            Connection(&[FRAME_SIZE]),
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
        ),
        (
            "an increment of an idle stream",
            Connection(&[PROTOCOL]),
            frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        ),
        (
            "a continuation of nothing",
            Connection(&[PROTOCOL]),
            frame(CONTINUATION, END_HEADERS, 1, &block),
        ),
        (
            "a continuation of a complete head",
            Connection(&[PROTOCOL]),
            [good(), frame(CONTINUATION, END_HEADERS, 1, &[])].concat(),
        ),
        (
            "a continuation of another stream",
            Connection(&[PROTOCOL]),
            [half(), frame(CONTINUATION, END_HEADERS, 3, last)].concat(),
        ),
        (
            "data within a head",
            Connection(&[PROTOCOL]),
            [half(), frame(DATA, 0, 1, b"x")].concat(),
        ),
        (
            "a ping within a head",
            Connection(&[PROTOCOL]),
            [half(), frame(PING, 0, 0, &[0; 8])].concat(),
        ),
        (
            "an unknown frame within a head",
            Connection(&[PROTOCOL]),
            [half(), frame(UNKNOWN, 0, 0, &[])].concat(),
        ),
        (
            "another head within a head",
            Connection(&[PROTOCOL]),
            [half(), frame(HEADERS, WHOLE, 3, &block)].concat(),
        ),
        (
            "a frame over the limit",
            Connection(&[FRAME_SIZE]),
            frame(DATA, 0, 1, &[0; 16_385]),
        ),
        (
            "a head over the limit of a frame",
            Connection(&[FRAME_SIZE]),
            frame(HEADERS, WHOLE, 1, &[0; 16_385]),
        ),
        (
            "a head that is all padding",
            Connection(&[PROTOCOL]),
            frame(HEADERS, WHOLE | PADDED, 1, &[9, 0, 0]),
        ),
        (
            "data that is all padding",
            Connection(&[PROTOCOL]),
            [frame(HEADERS, END_HEADERS, 1, &block), frame(DATA, PADDED, 1, &[9, 0])].concat(),
        ),
        ("index 0 of the table", Connection(&[COMPRESSION]), request(&[0x80])),
        (
            "an index behind the table",
            Connection(&[COMPRESSION]),
            request(&[&block[..], &[0xff, 0x7f]].concat()),
        ),
        (
            "a table over its limit",
            Connection(&[COMPRESSION]),
            request(&[&[0x3f, 0xe1, 0xff, 0x03], &block[..]].concat()),
        ),
        (
            "a change of the table within a block",
            Connection(&[COMPRESSION]),
            request(&[&block[..], &[0x20]].concat()),
        ),
        (
            "an integer without an end",
            Connection(&[COMPRESSION]),
            request(&[&[0xff], &[0xff; 20][..]].concat()),
        ),
        (
            "a text that breaks off",
            Connection(&[COMPRESSION]),
            request(&[&block[..], &[0, 9, b'a']].concat()),
        ),
        (
            "a Huffman text with a bad end",
            Connection(&[COMPRESSION]),
            request(&[&block[..], &[0, 1, b'x', 0x81, 0x00]].concat()),
        ),
        (
            "a Huffman text with the end of texts",
            Connection(&[COMPRESSION]),
            request(&[&block[..], &[0, 1, b'x', 0x84, 0xff, 0xff, 0xff, 0xff]].concat()),
        ),
    ]
}
