//! A hold blocks other appends to a log until a decision that kept losing races has committed.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::OwnedMutexGuard;

use super::{Batch, Write};
use crate::model::WorkspaceId;
use crate::sync::lock;

/// The right to append to a log before all others, from [`Store::hold`](super::Store::hold). Dropping it ends it.
pub struct Hold(Box<dyn Any + Send + Sync>);

impl Hold {
    /// A hold that an engine gives. Dropping `guard` must end it.
    ///
    /// ```
    /// use agentcfg_core::store::Hold;
    /// assert_eq!(Hold::new(7_u8).guard(), Some(&7_u8));
    /// ```
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }

    /// What the engine has made the hold of; `None` for one of another engine.
    pub fn guard<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").finish_non_exhaustive()
    }
}

/// The holds of one process: the queue in which its batches wait. An engine that other processes use too adds what
/// makes those wait.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_core::store::{Batch, Holds, Write};
/// let log = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let holds = Holds::default();
/// let held = holds.take(log).await;
/// let batch = Batch { writes: vec![Write::Append { log, value: b"{}".to_vec() }], ..Batch::default() };
/// // A commit begins with this. It would wait now.
/// let waiting = holds.wait(&batch);
/// drop(held);
/// waiting.await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Holds {
    shared: Arc<HeldLogs>,
}

/// A fair lock: waiters get it in the order in which they asked.
type Queue = Arc<tokio::sync::Mutex<()>>;

#[derive(Debug, Default)]
struct HeldLogs {
    /// By log: how many hold it or wait for that, and their queue.
    logs: Mutex<HashMap<WorkspaceId, (usize, Queue)>>,
    /// How many logs there are, which a commit reads without a lock.
    count: AtomicUsize,
}

/// A place in the queue of a log. While it is the first one, batches of others wait.
#[derive(Debug)]
#[must_use]
pub struct HeldLog {
    /// Fields are dropped in their order: this one before the entry, so that the next one in the queue goes on.
    _turn: OwnedMutexGuard<()>,
    _entry: HoldEntry,
}

#[derive(Debug)]
struct HoldEntry {
    shared: Arc<HeldLogs>,
    log: WorkspaceId,
}

impl Holds {
    /// Waits until no other one holds the log, and holds it.
    pub async fn take(&self, log: WorkspaceId) -> HeldLog {
        let queue = {
            let mut logs = lock(&self.shared.logs);
            let (holders, queue) = logs.entry(log).or_default();
            *holders += 1;
            let queue = Arc::clone(queue);
            self.shared.count.store(logs.len(), Ordering::SeqCst);
            queue
        };
        // Made before the wait, which the caller may drop.
        let entry = HoldEntry {
            shared: Arc::clone(&self.shared),
            log,
        };
        HeldLog {
            _turn: queue.lock_owned().await,
            _entry: entry,
        }
    }

    /// Waits until no log that this batch appends to is held. Without holds this takes no lock.
    pub async fn wait(&self, batch: &Batch) {
        if self.shared.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for write in &batch.writes {
            let Write::Append { log, .. } = write else { continue };
            let queue = lock(&self.shared.logs).get(log).map(|(_, queue)| Arc::clone(queue));
            if let Some(queue) = queue {
                drop(queue.lock().await);
            }
        }
    }
}

impl Drop for HoldEntry {
    fn drop(&mut self) {
        let mut logs = lock(&self.shared.logs);
        if let Some((holders, _)) = logs.get_mut(&self.log) {
            *holders -= 1;
            if *holders == 0 {
                logs.remove(&self.log);
            }
        }
        self.shared.count.store(logs.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_a_hold_that_ended_or_was_given_up() {
        let holds = Holds::default();
        let log = WorkspaceId::new(uuid::Uuid::from_u128(1));
        let held = holds.take(log).await;
        let mut second = Box::pin(holds.take(log));
        assert!(waits(&mut second).await, "one holds a log at a time");
        drop(second);
        drop(held);
        assert!(lock(&holds.shared.logs).is_empty());
        assert_eq!(holds.shared.count.load(Ordering::SeqCst), 0);
    }

    /// Polls once. Returns whether the future waits.
    async fn waits<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }
}
