//! The slow hash of API keys, on threads with a lower priority than those that serve requests with known keys.
//!
//! Every key that is made or seen for the first time costs one, and a pipeline may bring hundreds at once. So they run
//! on threads of their own: few, with a bounded queue, and at a lower priority than every other thread. Wrong secrets
//! do not get here; see [`token::may_match`](crate::token::may_match).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind};
use crate::sync::lock;

/// The capacity of the queue. When it is full, a hash is refused, so that a flood costs a bounded time and memory.
const QUEUE: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The threads that hash. They start with the first hash and end when this is dropped.
#[derive(Default)]
pub(super) struct Hashing {
    queue: OnceLock<SyncSender<Job>>,
    /// How many hashes were requested.
    #[cfg(test)]
    pub(super) asked: std::sync::atomic::AtomicUsize,
}

impl Hashing {
    /// Queues a hash and runs it, unless its request was cancelled before.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let failed = |why| Error::new(ErrorKind::Internal, "the credential could not be hashed").because(why);
        #[cfg(test)]
        self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (answer, result) = oneshot::channel();
        let job = Box::new(move || {
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
        });
        self.queue
            .get_or_init(start)
            .try_send(job)
            .map_err(|error| match error {
                TrySendError::Full(_) => Error::new(
                    ErrorKind::Unavailable,
                    "too many credentials are seen for the first time, try again",
                ),
                TrySendError::Disconnected(_) => failed("no thread hashes"),
            })?;
        result.await.map_err(|_| failed("the hash ended in a panic"))
    }
}

fn start() -> SyncSender<Job> {
    let (sender, queue) = sync_channel(QUEUE);
    let queue = Arc::new(Mutex::new(queue));
    // Hashes of new keys use at most half of the processors.
    let threads = thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    for _ in 0..threads {
        let queue = Arc::clone(&queue);
        let started = thread::Builder::new()
            .name("agentcfg-hash".into())
            .spawn(move || hash_all(&queue));
        if let Err(error) = started {
            tracing::error!(%error, "a thread for hashing API keys could not be started");
        }
    }
    sender
}

fn hash_all(queue: &Mutex<Receiver<Job>>) {
    lower_priority();
    loop {
        // The lock is released before the job runs.
        let next = lock(queue).recv();
        let Ok(job) = next else { return };
        // After a panic the sender of the answer is dropped, and the request fails with an error.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// Lowers the priority of this thread.
fn lower_priority() {
    #[cfg(all(target_os = "linux", feature = "redb"))]
    {
        // Threads of normal priority pre-empt this one. On a busy machine hashing still gets about a tenth of a
        // processor, so that new keys are not starved.
        const LOWER: i32 = 10;
        // On Linux the call applies to the thread. Where it is not permitted, the thread keeps its normal priority.
        if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), LOWER) {
            tracing::debug!(%error, "the priority of hashing could not be lowered");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn a_flood_is_refused_and_a_panic_ends_nothing() {
        let hashing = Arc::new(Hashing::default());
        assert_eq!(hashing.run(|| 7).await.unwrap(), 7);
        let panicked = hashing.run(|| panic!("as if the hash was broken")).await;
        assert_eq!(panicked.unwrap_err().kind(), ErrorKind::Internal);
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        // The queue is filled until one more hash is refused.
        let mut waiting = tokio::task::JoinSet::new();
        let refused = loop {
            let (hashing, gate) = (Arc::clone(&hashing), Arc::clone(&gate));
            let mut hash = Box::pin(async move { hashing.run(move || gate.lock().unwrap().recv().is_err()).await });
            let first = std::future::poll_fn(|cx| std::task::Poll::Ready(hash.as_mut().poll(cx))).await;
            if let std::task::Poll::Ready(refused) = first {
                break refused;
            }
            waiting.spawn(hash);
        };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(waiting.len() >= QUEUE);
        // Hashes of cancelled requests are skipped, and the others run.
        drop(open);
        assert!(waiting.join_all().await.into_iter().all(Result::unwrap));
    }
}
