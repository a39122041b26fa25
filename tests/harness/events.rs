//! A stream of server-sent events, read as it arrives.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Request, Response};

const TIMEOUT: Duration = Duration::from_secs(20);

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `change`, `bookmark`, `status`, `end` or `gone`.
    pub name: String,
    /// The cursor.
    pub id: Option<String>,
    /// The data, as JSON.
    pub data: Value,
    /// The `retry` of the block.
    pub retry: Option<u64>,
}

/// An open stream. Dropping it closes the connection.
pub struct Events {
    stream: TcpStream,
    /// The head of the answer.
    pub head: Response,
    /// Bytes that are not decoded yet, and text that is no whole event yet.
    raw: Vec<u8>,
    text: String,
    is_whole: bool,
}

impl Request {
    /// Sends the request, and reads the head of a stream.
    #[track_caller]
    pub fn follow(&self) -> Events {
        self.try_follow().expect("an answer")
    }

    /// As [`Self::follow`], for servers that may be gone.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn try_follow(&self) -> io::Result<Events> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let request = self.clone().header("Accept", "text/event-stream");
        stream.write_all(&request.to_bytes())?;
        let mut raw = Vec::new();
        let end = loop {
            if let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if read(&mut stream, &mut raw)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head = String::from_utf8(raw.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .unwrap();
        let headers = lines.filter_map(|line| line.split_once(':'));
        let head = Response {
            request: String::from_utf8_lossy(&request.to_bytes()).into_owned(),
            status,
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect(),
            body: Vec::new(),
        };
        Ok(Events {
            stream,
            head,
            raw,
            text: String::new(),
            is_whole: false,
        })
    }
}

impl Events {
    /// The next event; none at the end of the stream. Panics when it does not come in time.
    #[track_caller]
    pub fn event(&mut self) -> Option<Event> {
        match self.next_within(TIMEOUT) {
            Ok(event) => event,
            Err(error) => panic!("no event: {error}"),
        }
    }

    /// The next event of this name, passing over others.
    #[track_caller]
    pub fn find(&mut self, name: &str) -> Event {
        loop {
            let event = self
                .event()
                .unwrap_or_else(|| panic!("the stream ended before an event {name}"));
            if event.name == name {
                return event;
            }
        }
    }

    /// The next change's revision, passing over bookmarks and statuses.
    #[track_caller]
    pub fn revision(&mut self) -> u64 {
        self.find("change").data["revision"].as_u64().expect("a number")
    }

    /// Reads to the end of the stream, and gives the last event.
    #[track_caller]
    pub fn last(&mut self) -> Event {
        let mut last = None;
        while let Some(event) = self.event() {
            last = Some(event);
        }
        last.expect("an event")
    }

    /// The next event, or the error that ended the wait for it.
    ///
    /// # Errors
    ///
    /// `TimedOut` when none came in time, else what broke the connection.
    pub fn next_within(&mut self, time: Duration) -> io::Result<Option<Event>> {
        let end = Instant::now() + time;
        loop {
            self.decode();
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                return Ok(Some(event));
            }
            if self.is_whole {
                return Ok(None);
            }
            let left = end
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left))?;
            match read(&mut self.stream, &mut self.raw) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes whole chunks from what arrived (RFC 9112, section 7.1).
    fn decode(&mut self) {
        while let Some(end) = self.raw.windows(2).position(|window| window == b"\r\n") {
            let size = std::str::from_utf8(&self.raw[..end]).expect("a chunk's size");
            let size = usize::from_str_radix(size, 16).expect("a chunk's size");
            if self.raw.len() < end + 2 + size + 2 {
                return;
            }
            let chunk: Vec<u8> = self.raw.drain(..end + 2 + size + 2).skip(end + 2).take(size).collect();
            self.is_whole = size == 0;
            // Each piece of the server is whole events.
            self.text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }
}

fn read(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 16 << 10];
    let count = stream.read(&mut chunk)?;
    into.extend_from_slice(&chunk[..count]);
    Ok(count)
}

fn parse(block: &str) -> Event {
    let field = |name: &str| {
        let value = block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(str::to_owned)
    };
    Event {
        name: field("event").unwrap_or_default(),
        id: field("id"),
        data: field("data").map_or(Value::Null, |data| serde_json::from_str(&data).expect("JSON")),
        retry: field("retry").map(|retry| retry.parse().expect("a number")),
    }
}
