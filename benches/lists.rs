//! The memory that a long list needs when many clients read it at the same time, some of them slowly.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcfg_benches::Failure;
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Barrier, watch};

const AGENTS: usize = 5_000;
const READERS: usize = 200;
const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-server");

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    // The first start creates the directory with its keys and an empty store, which is then filled.
    product.serve(data.path())?.stop()?;
    let store = data.path().join("store.redb");
    let mut fill = Command::new(PROGRAM);
    fill.arg("fill").arg(store).args(["1", &AGENTS.to_string()]);
    let filled = Server::start(&mut fill)?;
    let pair = filled.fact("pairs").to_owned();
    let (workspace, key) = pair.split_once(' ').ok_or("no workspace")?;
    filled.stop()?;
    println!(
        "| form | body, MiB | first reader, ms | next reader, ms | resident after one, MiB | peak, {READERS} stalled | growth, lists | peak, {READERS} reading | growth, lists |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut list = 0.0;
    for form in ["plain", "gzip"] {
        let accepted = if form == "gzip" {
            "accept-encoding: gzip\r\n"
        } else {
            ""
        };
        let requests = ListRequests {
            read: format!(
                "GET /api/agents/configs?workspace_id={workspace} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{accepted}\r\n"
            ),
            write: format!(
                "PATCH /api/agents/configs?agent_id=agent-7 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
        };
        let mut figures: [Series; 8] = Default::default();
        for _ in 0..rounds(5) {
            let server = product.serve(data.path())?;
            let round = runtime.block_on(round(&server, &Arc::new(requests.clone()), &mut list))?;
            for (series, figure) in figures.iter_mut().zip(round) {
                series.push(figure);
            }
            server.stop()?;
        }
        let cells: Vec<String> = figures.iter().map(Series::to_string).collect();
        println!("| {form} | {} |", cells.join(" | "));
    }
    Ok(())
}

#[derive(Clone)]
struct ListRequests {
    read: String,
    write: String,
}

/// Runs one round. `list` is the largest size of the plain list in MiB seen so far.
async fn round(server: &Server, requests: &Arc<ListRequests>, list: &mut f64) -> Result<[f64; 8], Failure> {
    let address = server.address;
    let started = Instant::now();
    let length = read_whole(&mut connect(address).await?, &requests.read).await?;
    let first = started.elapsed().as_secs_f64() * 1e3;
    let started = Instant::now();
    read_whole(&mut connect(address).await?, &requests.read).await?;
    let next = started.elapsed().as_secs_f64() * 1e3;
    let body = length as f64 / f64::from(1 << 20);
    *list = list.max(body);
    let resident = server.resident_mib();

    server.forget_peak()?;
    stalled(address, requests).await?;
    let stalled = server.peak_mib();
    server.forget_peak()?;
    reading(address, requests).await?;
    let reading = server.peak_mib();
    let growth = |peak: f64| (peak - resident) / *list;
    Ok([
        body,
        first,
        next,
        resident,
        stalled,
        growth(stalled),
        reading,
        growth(reading),
    ])
}

/// All readers request the list at once after a change, and stop reading when the response has begun.
async fn stalled(address: SocketAddr, requests: &Arc<ListRequests>) -> Result<(), Failure> {
    read_whole(&mut connect(address).await?, &requests.write).await?;
    let all_begun = Arc::new(Barrier::new(READERS));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..READERS {
        let mut stream = connect(address).await?;
        let (requests, all_begun) = (Arc::clone(requests), Arc::clone(&all_begun));
        readers.spawn(async move {
            stream.write_all(requests.read.as_bytes()).await?;
            stream.read_u8().await?;
            all_begun.wait().await;
            Ok::<_, io::Error>(stream)
        });
    }
    // No connection closes before all responses have begun.
    let mut streams = Vec::with_capacity(READERS);
    while let Some(stream) = readers.join_next().await {
        streams.push(stream??);
    }
    Ok(())
}

/// Every other reader reads slowly while a writer changes an agent periodically.
async fn reading(address: SocketAddr, requests: &Arc<ListRequests>) -> Result<(), Failure> {
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..READERS {
        let (requests, stopped) = (Arc::clone(requests), stopped.clone());
        tasks.spawn(async move {
            let mut stream = connect(address).await?;
            while !*stopped.borrow() {
                if number % 2 == 0 {
                    read_whole(&mut stream, &requests.read).await?;
                } else {
                    read_slowly(&mut stream, &requests.read).await?;
                }
            }
            Ok::<_, io::Error>(())
        });
    }
    let mut writer = connect(address).await?;
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds(2.0) * 2.0 {
        read_whole(&mut writer, &requests.write).await?;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    stop.send(true)?;
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
}

/// Opens a connection with a small receive buffer, so that the body waits at the server.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(16 << 10)?;
    socket.connect(address).await
}

/// Sends a request, reads the response and returns the length of its body.
async fn read_whole(stream: &mut TcpStream, request: &str) -> io::Result<usize> {
    read(stream, request, 1 << 20, Duration::ZERO).await
}

/// Reads a body of two MiB within about a second.
async fn read_slowly(stream: &mut TcpStream, request: &str) -> io::Result<usize> {
    read(stream, request, 32 << 10, Duration::from_millis(15)).await
}

async fn read(stream: &mut TcpStream, request: &str, piece: usize, pause: Duration) -> io::Result<usize> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "not the response that was expected");
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; piece];
    let mut head = Vec::new();
    let (mut length, mut left) = (0, None);
    while left != Some(0) {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match &mut left {
            Some(left) => *left -= count,
            None => {
                head.extend_from_slice(&buffer[..count]);
                if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                    let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
                    let field = text.lines().find_map(|line| line.strip_prefix("content-length: "));
                    length = field.and_then(|field| field.parse().ok()).ok_or_else(broken)?;
                    if !text.starts_with("http/1.1 200") {
                        return Err(broken());
                    }
                    left = Some(length - (head.len() - end - 4));
                }
            }
        }
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(length)
}
