//! Reads over a real connection whose client leaves.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Scope, WorkspaceId};
use agentcfg_core::store::{
    Batch, CommitError, Committed, Key, Kind, MemoryStore, Partition, Record, Scan, Scanned, Store, StoreError,
};
use agentcfg_server::listen::{self, Limits};
use agentcfg_server::{App, Cors};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// The number of entries of a log that no search reads to its end.
const ENTRIES: &str = "1000000000000000";

/// A store whose logs have so many entries, which all are as the first one. It answers no other scan.
struct Endless {
    store: MemoryStore,
    is_endless: Arc<AtomicBool>,
    /// The scans that began, such as those of pieces of logs.
    pieces: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Store for Endless {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.store)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut found = self.store.get(keys).await?;
        for (key, record) in keys.iter().zip(&mut found) {
            if self.is_endless.load(Ordering::SeqCst)
                && key.kind() == Kind::LogHead
                && let Some(record) = record
            {
                record.value = ENTRIES.as_bytes().into();
            }
        }
        Ok(found)
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        if !self.is_endless.load(Ordering::SeqCst) {
            return self.store.scan(scan).await;
        }
        self.pieces.fetch_add(1, Ordering::SeqCst);
        let (Kind::LogEntry, Partition::Workspace(workspace), Some(after)) = (scan.kind, &scan.partition, &scan.after)
        else {
            return std::future::pending().await;
        };
        let first = self.store.get(&[Key::log_entry(*workspace, 1)]).await?;
        let last = after.parse::<u64>().unwrap();
        let number = |below| Key::log_entry(*workspace, last - below);
        let records = first.into_iter().flatten();
        let entries = records.flat_map(|record| (1..=16).map(move |below| (number(below), record.clone())));
        Ok(Scanned {
            entries: entries.collect(),
            with: Vec::new(),
        })
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        self.store.commit(batch).await
    }
}

/// The text of a request with this method and target.
fn request(start: &str, workspace: WorkspaceId, rest: &str, key: &str) -> String {
    format!("{start}?workspace_id={workspace}{rest} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn a_search_ends_when_its_client_has_disconnected() {
    a_read_ends_when_its_client_has_disconnected("GET /api/audit-log", "&target_id=nothing", 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_with_one_parameter_ends_when_its_client_has_disconnected() {
    for method in ["GET", "HEAD"] {
        a_read_ends_when_its_client_has_disconnected(&format!("{method} /api/agents/labels"), "", 1).await;
    }
}

/// The client leaves when `scans` have begun.
async fn a_read_ends_when_its_client_has_disconnected(start: &str, rest: &str, scans: usize) {
    let (is_endless, pieces) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let service = AgentCfg::builder(Endless {
        store: MemoryStore::new(),
        is_endless: Arc::clone(&is_endless),
        pieces: Arc::clone(&pieces),
    })
    .build();
    let ada = service.trusted_user("ada").unwrap();
    let new = NewWorkspace::new("Studio");
    let studio = service.create_workspace(&ada, new).await.unwrap().id;
    let new = NewApiKey::new(studio, "key", Environment::Production, Scope::Admin);
    let key = service.create_api_key(&ada, new).await.unwrap().key;
    // The first use costs a slow hash, during which the paused clock would go on.
    service.authenticate(&key).await.unwrap();
    is_endless.store(true, Ordering::SeqCst);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (limits, (stop, stopped)) = (Limits::default(), oneshot::channel::<()>());
    let open = limits.open_connections.clone();
    let app = App::new(service, Cors::default());
    let server = tokio::spawn(listen::serve(
        listener,
        move |client| app.for_connection(client),
        limits,
        async {
            let _ = stopped.await;
        },
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    let sent = request(start, studio, rest, &key);
    client.write_all(sent.as_bytes()).await.unwrap();
    while pieces.load(Ordering::SeqCst) < scans {
        tokio::task::yield_now().await;
    }
    assert_eq!(open.get(), 1);
    drop(client);
    let left = tokio::time::Instant::now();
    while open.get() > 0 {
        assert!(left.elapsed() < Duration::from_secs(60), "the read goes on");
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    // A client that has closed its sending side alone looks the same, so the read goes on for a while.
    assert!(left.elapsed() >= Duration::from_secs(5), "{:?}", left.elapsed());
    // The piece that had begun ends, and no other begins.
    tokio::time::advance(Duration::from_millis(1)).await;
    let read = pieces.load(Ordering::SeqCst);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pieces.load(Ordering::SeqCst), read);
    stop.send(()).unwrap();
    assert!(server.await.unwrap().is_complete());
}
