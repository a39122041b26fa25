//! A closed-loop load generator: keep-alive connections that each send the next request after the response.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::response;

/// The result of a load run.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Responses with the expected status.
    pub answered: u64,
    /// Responses with another status.
    pub refused: u64,
    /// The duration of the run.
    pub elapsed: Duration,
}

impl Outcome {
    /// Expected responses per second.
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends requests over this many connections for this long. `request` builds the bytes of the
/// request with this number; only responses with `status` count as answered.
pub async fn run(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    status: u16,
    request: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
) -> io::Result<Outcome> {
    let started = Instant::now();
    let mut load = Load::start(address, connections, request).await?;
    tokio::time::sleep(time).await;
    load.stop.store(true, Ordering::Relaxed);
    let (mut answered, mut refused) = (0, 0);
    while let Some(client) = load.clients.join_next().await {
        let client = client.map_err(io::Error::other)?;
        client.end?;
        let good = client.answers.iter().filter(|(_, found)| *found == status).count();
        answered += good as u64;
        refused += (client.answers.len() - good) as u64;
    }
    Ok(Outcome {
        answered,
        refused,
        elapsed: started.elapsed(),
    })
}

/// Sends requests until the server is gone. After `time`, `end` is called, which ends the server.
/// Returns the numbers of the requests that were answered with `status` before.
pub async fn until_gone(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    status: u16,
    request: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
    end: impl FnOnce(),
) -> io::Result<Vec<u64>> {
    let load = Load::start(address, connections, request).await?;
    tokio::time::sleep(time).await;
    end();
    let answers = load
        .clients
        .join_all()
        .await
        .into_iter()
        .flat_map(|client| client.answers);
    Ok(answers
        .filter(|(_, found)| *found == status)
        .map(|(number, _)| number)
        .collect())
}

/// The connections of a run.
struct Load {
    clients: JoinSet<Client>,
    stop: Arc<AtomicBool>,
}

/// The result of one connection.
struct Client {
    /// The numbers of its requests, with the status of each response.
    answers: Vec<(u64, u16)>,
    end: io::Result<()>,
}

impl Load {
    async fn start(
        address: SocketAddr,
        connections: usize,
        request: impl Fn(u64, &mut Vec<u8>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let request = Arc::new(request);
        let number = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (request, number, stop) = (Arc::clone(&request), Arc::clone(&number), Arc::clone(&stop));
            clients.spawn(async move {
                let mut answers = Vec::new();
                let end = client(stream, &*request, &number, &stop, &mut answers).await;
                Client { answers, end }
            });
        }
        Ok(Self { clients, stop })
    }
}

async fn client(
    mut stream: TcpStream,
    request: &(dyn Fn(u64, &mut Vec<u8>) + Send + Sync),
    number: &AtomicU64,
    stop: &AtomicBool,
    answers: &mut Vec<(u64, u16)>,
) -> io::Result<()> {
    let (mut out, mut buffer) = (Vec::new(), Vec::with_capacity(64 << 10));
    while !stop.load(Ordering::Relaxed) {
        let this = number.fetch_add(1, Ordering::Relaxed);
        out.clear();
        request(this, &mut out);
        stream.write_all(&out).await?;
        answers.push((this, read_response(&mut stream, &mut buffer).await?));
    }
    Ok(())
}

/// Reads one response and returns its status.
async fn read_response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<u16> {
    buffer.clear();
    let mut whole = None;
    while whole.is_none_or(|whole| buffer.len() < whole) {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if whole.is_none() {
            whole = response::whole_length(buffer)?;
        }
    }
    response::status(buffer)
}
