//! A proxy that counts round trips and delays packets, and the cost of a request through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::server::Answer;

/// The delay of each packet to the database.
const DELAY: Duration = Duration::from_millis(60);

/// A proxy between a server and its database that counts round trips and can delay packets.
pub struct CountingProxy {
    pub port: u16,
    trips: Arc<AtomicUsize>,
    slow: Arc<AtomicBool>,
}

impl CountingProxy {
    pub async fn to(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            trips: Arc::default(),
            slow: Arc::default(),
        };
        let (trips, slow) = (Arc::clone(&proxy.trips), Arc::clone(&proxy.slow));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", database)).await.unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                tokio::spawn(forward(client, server, Arc::clone(&trips), Arc::clone(&slow)));
            }
        });
        proxy
    }
}

async fn forward(client: TcpStream, server: TcpStream, trips: Arc<AtomicUsize>, slow: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answered = Arc::new(AtomicBool::new(true));
    let (packets, mut arriving) = mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    let there = tokio::spawn({
        let answered = Arc::clone(&answered);
        async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                // The first packet after a response starts a round trip; further packets before the next
                // response belong to it.
                trips.fetch_add(usize::from(answered.swap(false, Ordering::SeqCst)), Ordering::SeqCst);
                let delay = if slow.load(Ordering::SeqCst) {
                    DELAY
                } else {
                    Duration::ZERO
                };
                let packet = (tokio::time::Instant::now() + delay, buffer[..length].to_vec());
                if packets.send(packet).is_err() {
                    return;
                }
            }
        }
    });
    tokio::spawn(async move {
        while let Some((at, bytes)) = arriving.recv().await {
            // A timer can fire a millisecond late. The store would measure that as the latency of the database.
            if at > tokio::time::Instant::now() {
                tokio::time::sleep_until(at).await;
            }
            if to_server.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
        answered.store(true, Ordering::SeqCst);
        if to_client.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    there.abort();
}

/// The minimum over several requests of one kind: round trips, and sequential delays.
pub async fn cost(proxy: &CountingProxy, request: impl AsyncFn(usize) -> Answer, status: u16) -> (usize, usize) {
    const TIMES: usize = 6;
    for number in 0..12 {
        assert_eq!(request(number).await.status, status, "while warming up");
    }
    let (mut trips, mut waited) = (usize::MAX, usize::MAX);
    proxy.slow.store(true, Ordering::SeqCst);
    for number in 100..100 + TIMES {
        let before = proxy.trips.load(Ordering::SeqCst);
        let started = tokio::time::Instant::now();
        assert_eq!(request(number).await.status, status);
        let delays = started.elapsed().as_secs_f64() / DELAY.as_secs_f64();
        trips = trips.min(proxy.trips.load(Ordering::SeqCst) - before);
        waited = waited.min(delays.floor() as usize);
    }
    proxy.slow.store(false, Ordering::SeqCst);
    (trips, waited)
}
