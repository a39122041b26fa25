//! Floods of frames: the server bounds them, and serves others meanwhile.

use std::time::{Duration, Instant};

use agentcfg_tests::harness::Server;

use super::Pair;
use super::client::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, Http2, PING, RST_STREAM, SETTINGS, frame,
};

/// Sends frames until the server ends the connection, or all of them, while another client is served.
async fn flood(server: &Server, frames: &mut Frames, mut next: impl FnMut(u32) -> Vec<u8>, count: u32) -> bool {
    let other = Http2::connect(server.address()).await;
    let before = server.memory_mib();
    let mut is_refused = false;
    for number in 0..count {
        if frames.send(&next(number)).await.is_err() {
            is_refused = true;
            break;
        }
        if number % 1000 == 0 {
            let asked = Instant::now();
            other.get("/readyz", &[]).await.expect(200);
            assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
        }
    }
    other.get("/readyz", &[]).await.expect(200);
    let grown = server.memory_mib().saturating_sub(before);
    assert!(grown < 64, "{grown} MiB more");
    is_refused
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_of_requests_end_the_connection() {
    let pair = Pair::good();
    let server = pair.server().start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let block = frames.get("/api/agents/configs", &[]);
    let request_and_reset = |number: u32| {
        let stream = 2 * number + 1;
        let mut both = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        both.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        both
    };
    // What is on its way when the server closes may still be sent.
    flood(&server, &mut frames, request_and_reset, 10_000).await;
    while frames.next().await.is_some() {}
    assert!(frames.send(&frame(PING, 0, 0, &[0; 8])).await.is_err() || frames.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_an_end_ends_the_connection() {
    let pair = Pair::good();
    let server = pair.server().start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let block = frames.get("/", &[]);
    frames.send(&frame(HEADERS, END_STREAM, 1, &block)).await.unwrap();
    let piece = [0; 0];
    let more = |_| frame(CONTINUATION, 0, 1, &piece);
    flood(&server, &mut frames, more, 10_000).await;
    let goaway = frames.next_of(GOAWAY).await;
    assert!(goaway.is_none_or(|(_, _, payload)| payload[4..8] != [0; 4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_settings_and_empty_frames_keep_no_memory() {
    let pair = Pair::good();
    let server = pair.server().start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let mut ping = |_| frame(PING, 0, 0, &[7; 8]);
    flood(&server, &mut frames, &mut ping, 20_000).await;
    let mut frames = Frames::connect(server.address(), &[]).await;
    flood(&server, &mut frames, |_| frame(SETTINGS, 0, 0, &[]), 20_000).await;
    let mut frames = Frames::connect(server.address(), &[]).await;
    let block = frames.get("/", &[]);
    frames.send(&frame(HEADERS, END_HEADERS, 1, &block)).await.unwrap();
    flood(&server, &mut frames, |_| frame(DATA, 0, 1, &[]), 20_000).await;
}
