//! The end of a service: what runs in the background ends, and the store is closed.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::AgentCfg;
use super::tasks::Task;
use crate::{Error, ErrorKind};

/// Whether a service has been shut down, and how many tasks it runs in the background.
pub(super) struct Lifetime {
    has_ended: watch::Sender<bool>,
    tasks: watch::Sender<usize>,
}

impl Default for Lifetime {
    fn default() -> Self {
        Self {
            has_ended: watch::Sender::new(false),
            tasks: watch::Sender::new(0),
        }
    }
}

impl Lifetime {
    /// Refuses what would last, once the service has been shut down.
    pub(super) fn check(&self) -> Result<(), Error> {
        match *self.has_ended.borrow() {
            true => Err(Error::new(ErrorKind::Unavailable, "the service is shut down")),
            false => Ok(()),
        }
    }

    /// The signal of the end, for a task that waits.
    pub(super) fn end(&self) -> End {
        End(self.has_ended.subscribe())
    }

    /// Runs a task that the shutdown cuts off and waits for. What it holds of the service is dropped before.
    fn spawn(&self, runtime: &Handle, task: Task) {
        let (tasks, mut end) = (self.tasks.clone(), self.end());
        tasks.send_modify(|count| *count += 1);
        runtime.spawn(async move {
            // Also after a panic.
            let _counted = Counted(tasks);
            tokio::select! {
                () = task => {}
                () = end.reached() => {}
            }
        });
    }
}

/// A task that runs.
struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The signal that a service has been shut down.
pub(super) struct End(watch::Receiver<bool>);

impl End {
    /// Waits for the end.
    pub(super) async fn reached(&mut self) {
        // The sender lives as long as the service, so that an error is its end.
        let _ = self.0.wait_for(|ended| *ended).await;
    }
}

impl AgentCfg {
    /// Runs a task in the background until it ends or the service is shut down.
    pub(super) fn in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.inner.lifetime.spawn(&runtime, Box::pin(task));
        }
    }

    /// Ends the service: every [`Watch`](super::Watch) of this handle and its clones ends with an error, so that open
    /// streams do not hold up the end of a server; tasks in the background end; usage and the last uses of keys are
    /// written, and budgets get back what no call has spent; and the store is closed, which frees the file of an
    /// embedded one, although clones of the handle are left.
    ///
    /// Finish the requests in flight before. Calls after it fail where the store is an embedded one. What the removal
    /// of a deleted workspace has not come to is done by [`Self::remove_deleted_workspaces`] at the next start.
    ///
    /// # Errors
    ///
    /// As [`Self::flush`]; the store is closed all the same.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// // … until the app ends, and then:
    /// service.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) -> Result<(), Error> {
        let lifetime = &self.inner.lifetime;
        lifetime.has_ended.send_replace(true);
        let _ = lifetime.tasks.subscribe().wait_for(|count| *count == 0).await;
        let flushed = self.flush().await;
        self.store().shutdown().await;
        flushed
    }
}
