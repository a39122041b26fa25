//! How many round trips to the database a request costs, counted on the wire, and how many of them
//! it waits for one after another, measured with a slow wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::server::{Answer, Server, token};

/// How long a packet takes to the database.
const DELAY: Duration = Duration::from_millis(60);

/// A wire between a server and its database.
struct Wire {
    port: u16,
    trips: Arc<AtomicUsize>,
    slow: Arc<AtomicBool>,
}

impl Wire {
    async fn to(database: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Self {
            port: listener.local_addr().unwrap().port(),
            trips: Arc::default(),
            slow: Arc::default(),
        };
        let (trips, slow) = (Arc::clone(&wire.trips), Arc::clone(&wire.slow));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", database)).await.unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&trips), Arc::clone(&slow)));
            }
        });
        wire
    }
}

async fn carry(client: TcpStream, server: TcpStream, trips: Arc<AtomicUsize>, slow: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answered = Arc::new(AtomicBool::new(true));
    let (packets, mut arriving) = mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    let there = tokio::spawn({
        let answered = Arc::clone(&answered);
        async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
                // What follows an answer begins a round trip; what goes out before one is part of it.
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
            tokio::time::sleep_until(at).await;
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

/// Of several requests of one sort: the fewest round trips, and the fewest delays that one waited for.
async fn cost(wire: &Wire, request: impl AsyncFn(usize) -> Answer, status: u16) -> (usize, usize) {
    const TIMES: usize = 6;
    for number in 0..12 {
        assert_eq!(request(number).await.status, status, "while warming up");
    }
    let (mut trips, mut waited) = (usize::MAX, usize::MAX);
    wire.slow.store(true, Ordering::SeqCst);
    for number in 100..100 + TIMES {
        let before = wire.trips.load(Ordering::SeqCst);
        let started = tokio::time::Instant::now();
        assert_eq!(request(number).await.status, status);
        let delays = started.elapsed().as_secs_f64() / DELAY.as_secs_f64();
        trips = trips.min(wire.trips.load(Ordering::SeqCst) - before);
        waited = waited.min(delays.floor() as usize);
    }
    wire.slow.store(false, Ordering::SeqCst);
    (trips, waited)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn round_trips_are_as_few_as_they_are_said_to_be() {
    for statements in ["prepared", "unnamed"] {
        let Some(cluster) = Cluster::start(&["listen_addresses=127.0.0.1", "fsync=off"]) else {
            return;
        };
        let wire = Wire::to(cluster.port()).await;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", wire.port);
        // Two connections, so that both soon have prepared everything.
        let settings = [("database_pool_size", "2"), ("database_statements", statements)];
        let server = Server::with(&url, &settings);
        let ada = server.api(&token("ada"));
        let workspace = ada.workspace().await;
        server.api(&token("root")).set_plan(&workspace, "enterprise").await;
        let (_, key) = ada.key(&workspace, "write", 1_000_000).await;
        let api = server.api(&key);
        let patch = "/api/agents/configs?agent_id=agent-1";
        let status = "/api/agents/status?agent_id=agent-1";

        let create = cost(
            &wire,
            async |i| api.create(&workspace, &format!("agent-{i}")).await,
            201,
        )
        .await;
        let list = cost(&wire, async |_| api.list(&workspace).await, 200).await;
        let taken = cost(&wire, async |_| api.create(&workspace, "agent-1").await, 409).await;
        let update = cost(
            &wire,
            async |i| api.patch(patch, json!({"role": format!("{i}")})).await,
            200,
        )
        .await;
        let report = cost(
            &wire,
            async |_| {
                api.send("PUT", status, "", Some(json!({"status": "idle"})))
                    .await
                    .unwrap()
            },
            200,
        )
        .await;
        let session = cost(&wire, async |_| ada.list(&workspace).await, 200).await;

        println!("{statements}: round trips, of them one after another");
        for (name, cost) in [
            ("list by key", list),
            ("create", create),
            ("create, taken", taken),
            ("update", update),
            ("status report", report),
            ("list by session", session),
        ] {
            println!("  {name}: {} {}", cost.0, cost.1);
        }
        assert_eq!(
            list,
            (2, 1),
            "a list: the credential with the revision, and the count beside it"
        );
        assert_eq!(create, (3, 2), "a create: the same, and then the commit");
        assert!(
            update.0 <= 4 && update.1 <= 3,
            "an update reads the agent before: {update:?}"
        );
        assert!(
            report.0 <= 4 && report.1 <= 3,
            "a report reads the agent before: {report:?}"
        );
        assert!(session.0 <= 3, "{session:?}");
    }
}
