//! Where scans run.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;

use super::super::store::SHORT_SCAN;
use super::*;

/// Whether a scan that is polled once is complete: then it ran on the polling thread.
async fn is_immediate(store: &RedbStore, scan: &Scan) -> bool {
    let mut scan = pin!(store.scan(scan));
    poll_fn(|cx| Poll::Ready(scan.as_mut().poll(cx).is_ready())).await
}

#[test]
fn a_long_scan_occupies_no_async_worker() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place.path().join("store.redb"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let all = Scan::all(Partition::Workspace(workspace()), Kind::Agent);
    let limited = Scan {
        limit: SHORT_SCAN,
        ..all.clone()
    };
    let count = 2 * SHORT_SCAN;
    runtime.block_on(async {
        let writes = (0..count).map(|number| put(&format!("a{number:05}"), "{}"));
        store.commit(batch([], writes)).await.unwrap();
        // The only thread of the blocking pool is occupied.
        let (open, gate) = mpsc::channel::<()>();
        let occupied = tokio::task::spawn_blocking(move || gate.recv().is_err());
        assert!(is_immediate(&store, &limited).await);
        assert!(!is_immediate(&store, &all).await);
        drop(open);
        assert_eq!(store.scan(&all).await.unwrap().entries.len(), count);
        assert!(occupied.await.unwrap());
    });
    // A caller without a runtime gets the same.
    let mut scan = pin!(store.scan(&all));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match scan.as_mut().poll(&mut context) {
        Poll::Ready(found) => assert_eq!(found.unwrap().entries.len(), count),
        Poll::Pending => panic!("nothing can complete the scan"),
    }
}
