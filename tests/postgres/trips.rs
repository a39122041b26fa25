//! Round trips to the database for each request: their number, counted on the proxy, and how many of
//! them are sequential, measured through a delayed connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::server::{Answer, Server, token};

/// The delay of each packet to the database.
const DELAY: Duration = Duration::from_millis(60);

/// A proxy between a server and its database that counts round trips and can delay packets.
struct CountingProxy {
    port: u16,
    trips: Arc<AtomicUsize>,
    slow: Arc<AtomicBool>,
}

impl CountingProxy {
    async fn to(database: u16) -> Self {
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

/// The minimum over several requests of one kind: round trips, and sequential delays.
async fn cost(proxy: &CountingProxy, request: impl AsyncFn(usize) -> Answer, status: u16) -> (usize, usize) {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_needs_the_documented_number_of_round_trips() {
    for statements in ["prepared", "unnamed"] {
        let Some(cluster) = Cluster::start(&["listen_addresses=127.0.0.1", "fsync=off"]) else {
            return;
        };
        let proxy = CountingProxy::to(cluster.port()).await;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
        // Two connections, so that both have soon prepared all statements.
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
            &proxy,
            async |i| api.create(&workspace, &format!("agent-{i}")).await,
            201,
        )
        .await;
        let list = cost(&proxy, async |_| api.list(&workspace).await, 200).await;
        let taken = cost(&proxy, async |_| api.create(&workspace, "agent-1").await, 409).await;
        let update = cost(
            &proxy,
            async |i| api.patch(patch, json!({"role": format!("{i}")})).await,
            200,
        )
        .await;
        let report = cost(
            &proxy,
            async |_| {
                api.send("PUT", status, "", Some(json!({"status": "idle"})))
                    .await
                    .unwrap()
            },
            200,
        )
        .await;
        let session = cost(&proxy, async |_| ada.list(&workspace).await, 200).await;

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
