//! A load generator: keep-alive connections that each send the next request when the answer is in.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a run of load did.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Answers with the expected status.
    pub answered: u64,
    /// Answers with another status.
    pub refused: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Outcome {
    /// Expected answers per second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends requests over so many connections for so long. `request` makes the bytes of the request
/// with this number; `status` is the one that counts as an answer.
pub async fn run(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    status: u16,
    request: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> io::Result<Outcome> {
    let request = Arc::new(request);
    let number = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (request, number, stop) = (Arc::clone(&request), Arc::clone(&number), Arc::clone(&stop));
        clients.spawn(async move { client(stream, status, &*request, &number, &stop).await });
    }
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let (mut answered, mut refused) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (good, bad) = client.map_err(io::Error::other)??;
        answered += good;
        refused += bad;
    }
    Ok(Outcome {
        answered,
        refused,
        elapsed: started.elapsed(),
    })
}

async fn client(
    mut stream: TcpStream,
    status: u16,
    request: &(dyn Fn(u64, &mut Vec<u8>) + Send + Sync),
    number: &AtomicU64,
    stop: &AtomicBool,
) -> io::Result<(u64, u64)> {
    let (mut good, mut bad) = (0, 0);
    let (mut out, mut buffer) = (Vec::new(), Vec::with_capacity(64 << 10));
    while !stop.load(Ordering::Relaxed) {
        out.clear();
        request(number.fetch_add(1, Ordering::Relaxed), &mut out);
        stream.write_all(&out).await?;
        if read_response(&mut stream, &mut buffer).await? == status {
            good += 1;
        } else {
            bad += 1;
        }
    }
    Ok((good, bad))
}

/// Reads one response with a `content-length` and returns its status.
async fn read_response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<u16> {
    buffer.clear();
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "not the response that was expected");
    let mut whole = usize::MAX;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if whole == usize::MAX
            && let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n")
        {
            let head = std::str::from_utf8(&buffer[..end]).map_err(|_| broken())?;
            let length: Option<usize> = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse().ok())
                    .flatten()
            });
            whole = end + 4 + length.ok_or_else(broken)?;
        }
    }
    std::str::from_utf8(&buffer[9..12])
        .ok()
        .and_then(|status| status.parse().ok())
        .ok_or_else(broken)
}
