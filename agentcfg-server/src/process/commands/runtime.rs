//! The runtime of the program.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use tokio::runtime::Runtime;

/// The lower priority of threads of long work, as `nice` counts it: a worker that wakes up for a request does not wait
/// until their time slice is over.
const NICENESS: i32 = 5;

thread_local! {
    /// Whether this worker has waited for work before.
    static HAS_PARKED: Cell<bool> = const { Cell::new(false) };
}

/// The runtime of the server, with a worker for each core. All other threads of it do long work.
pub(super) fn runtime() -> io::Result<Runtime> {
    let (parked, has_parked) = mpsc::channel();
    let all_work = Arc::new(AtomicBool::new(false));
    let (is_named, is_started) = (Arc::clone(&all_work), Arc::clone(&all_work));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name_fn(move || match is_named.load(Ordering::SeqCst) {
            true => "long-work".to_owned(),
            false => "worker".to_owned(),
        })
        .on_thread_start(move || {
            // On Linux the call applies to the thread.
            if cfg!(target_os = "linux")
                && is_started.load(Ordering::SeqCst)
                && let Err(error) = rustix::process::nice(NICENESS)
            {
                tracing::debug!(%error, "long work has the priority of short requests");
            }
        })
        .on_thread_park(move || {
            if !HAS_PARKED.replace(true) {
                // Where the receiver is gone, all have parked.
                let _ = parked.send(());
            }
        })
        .enable_all()
        .build()?;
    // Workers without a task park, and no other thread does.
    let workers = runtime.metrics().num_workers();
    has_parked.iter().take(workers).for_each(drop);
    all_work.store(true, Ordering::SeqCst);
    Ok(runtime)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use rustix::process::getpriority_process;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn long_work_gives_way_to_the_workers() {
        let runtime = runtime().unwrap();
        let here = || {
            let name = thread::current().name().map(str::to_owned);
            (name.unwrap(), getpriority_process(None).unwrap())
        };
        let (worker, long_work) = runtime.block_on(async {
            let long_work = tokio::task::spawn_blocking(here);
            let worker = tokio::spawn(async move { here() });
            (worker.await.unwrap(), long_work.await.unwrap())
        });
        assert_eq!((worker.0.as_str(), long_work.0.as_str()), ("worker", "long-work"));
        assert_eq!(long_work.1, (worker.1 + NICENESS).min(19));
    }
}
