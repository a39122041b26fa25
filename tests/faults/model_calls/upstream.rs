//! Providers that treat each call as its plan says, and note each attempt.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::plan::{Fate, Plan};

/// What the providers saw.
#[derive(Default)]
pub struct Seen {
    /// The attempts of each call, by its number.
    pub attempts: HashMap<usize, Vec<usize>>,
    /// When the last attempt of a call failed.
    failed: HashMap<usize, Instant>,
    /// The times from a failure of one provider to the arrival of the request at the next.
    pub failovers: Vec<Duration>,
}

/// What providers do that no plan says, so that the judge has something to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// A piece of an answer is that of another attempt.
    Mixed,
    /// A failed call is answered well.
    Answered,
    /// A call that must be answered is refused, so that the next model is asked.
    Refused,
}

/// The providers of this process, one for each attempt of a call. They end with the process.
pub struct Upstream {
    addresses: Vec<SocketAddr>,
    seen: Arc<Mutex<Seen>>,
}

impl Upstream {
    pub fn start(providers: usize, seed: u64, lie: Option<Lie>) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let listen = |_| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let seen = Arc::clone(&seen);
                    // The server closes connections of calls that it gave up.
                    thread::spawn(move || serve(stream, seed, lie, &seen));
                }
            });
            address
        };
        Self {
            addresses: (0..providers).map(listen).collect(),
            seen,
        }
    }

    /// The base URL of the provider of an attempt.
    pub fn url(&self, attempt: usize) -> String {
        format!("http://{}", self.addresses[attempt - 1])
    }

    /// The attempts of a call that arrived so far.
    pub fn attempts(&self, number: usize) -> Vec<usize> {
        self.seen
            .lock()
            .unwrap()
            .attempts
            .get(&number)
            .cloned()
            .unwrap_or_default()
    }

    /// All attempts that arrived.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().attempts.values().map(Vec::len).sum()
    }

    /// The times from a failure of one provider to the arrival of the request at the next, in order.
    pub fn failovers(&self) -> Vec<Duration> {
        let mut times = self.seen.lock().unwrap().failovers.clone();
        times.sort();
        times
    }
}

fn serve(stream: TcpStream, seed: u64, lie: Option<Lie>, seen: &Mutex<Seen>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(body) = read_request(&mut reader)? {
        let body: Value = serde_json::from_slice(&body)?;
        let plan = Plan::of(seed, Plan::number(&body));
        let model = body["model"].as_str().unwrap_or_default();
        let attempt: usize = model[model.len() - 1..].parse().map_err(io::Error::other)?;
        note(seen, &plan, attempt);
        let fate = match (plan.fates[attempt - 1], lie) {
            (fate, Some(Lie::Answered)) if fate.is_failure() => Fate::Whole,
            (Fate::CutAfter(_) | Fate::Whole, Some(Lie::Refused)) => Fate::Refused(500),
            (fate, _) => fate,
        };
        let failed = || seen.lock().unwrap().failed.insert(plan.number, Instant::now());
        match fate {
            Fate::Gone => return Err(io::Error::other("a provider that is gone")),
            Fate::Refused(status) => {
                let text = plan.refusal(attempt);
                failed();
                write!(
                    writer,
                    "HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )?;
            }
            Fate::Hangs => return until_closed(reader),
            Fate::CutBefore => {
                failed();
                return Ok(());
            }
            Fate::CutAfter(pieces) => return answer(&mut writer, &plan, attempt, pieces, lie),
            Fate::Stalls(pieces) => {
                answer(&mut writer, &plan, attempt, pieces, lie)?;
                return until_closed(reader);
            }
            Fate::Whole => answer(&mut writer, &plan, attempt, usize::MAX, lie)?,
        }
    }
    Ok(())
}

/// Reads a request, and returns its body; `None` at the end of the connection.
pub fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            None if line.trim_end().is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

fn note(seen: &Mutex<Seen>, plan: &Plan, attempt: usize) {
    let mut seen = seen.lock().unwrap();
    seen.attempts.entry(plan.number).or_default().push(attempt);
    // An attempt that reached no provider between the two costs time of its own.
    let follows = attempt > 1 && plan.fates[attempt - 2] != Fate::Gone;
    if let Some(failed) = seen.failed.remove(&plan.number).filter(|_| follows) {
        seen.failovers.push(failed.elapsed());
    }
}

/// Waits until the server closes the connection.
fn until_closed(mut reader: BufReader<TcpStream>) -> io::Result<()> {
    reader.get_ref().set_read_timeout(Some(Duration::from_secs(60)))?;
    match reader.read(&mut [0]) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the server gave up no call in a minute")
        }
        _ => Ok(()),
    }
}

/// Sends the head of an answer and this many of its pieces.
fn answer(writer: &mut TcpStream, plan: &Plan, attempt: usize, most: usize, lie: Option<Lie>) -> io::Result<()> {
    let mut pieces = plan.answer(attempt);
    if lie == Some(Lie::Mixed) {
        pieces[1] = plan.answer(attempt + 1).swap_remove(1);
    }
    let kind = if plan.is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let framing = match plan.has_length {
        true => format!("Content-Length: {}", pieces.iter().map(String::len).sum::<usize>()),
        false => "Transfer-Encoding: chunked".to_owned(),
    };
    write!(writer, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n")?;
    for piece in pieces.iter().take(most) {
        match plan.has_length {
            true => writer.write_all(piece.as_bytes())?,
            false => write!(writer, "{:x}\r\n{piece}\r\n", piece.len())?,
        }
    }
    if most == usize::MAX && !plan.has_length {
        writer.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}
