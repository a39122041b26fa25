//! How many long reads run at the same time.
//!
//! A search of the log or a list of the past can read and decode hundreds of thousands of records. Unbounded, a few such requests
//! would take all cores from short ones. So a piece of a long read waits for its turn: some cores stay free, and the workspaces
//! share the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::AgentCfg;
use crate::error::{Error, ErrorKind};
use crate::model::WorkspaceId;

/// The turns of long reads. Who waits first is first.
#[derive(Debug)]
pub(super) struct LongReads {
    all: Arc<Semaphore>,
    /// How many one workspace may have at once, so that the turns go round between workspaces.
    of_workspace: usize,
    /// Of the workspaces with long reads.
    workspaces: Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>,
}

/// The right to run a piece of a long read, as long as it is held.
#[derive(Debug)]
#[must_use]
pub(super) struct Turn<'a> {
    reads: &'a LongReads,
    workspace: WorkspaceId,
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl LongReads {
    /// On a remote store a read waits most of its time, so that more may run.
    pub(super) fn new(remote_store: bool) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::of(match remote_store {
            true => 2 * cores,
            false => (cores - 1).max(1),
        })
    }

    fn of(all: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            of_workspace: all.div_ceil(2),
            workspaces: Mutex::default(),
        }
    }

    /// Waits for a turn.
    async fn turn(&self, workspace: WorkspaceId) -> Result<Turn<'_>, Error> {
        let mut turn = Turn {
            reads: self,
            workspace,
            permits: None,
        };
        let of_workspace = {
            let mut workspaces = self.workspaces();
            let known = workspaces
                .entry(workspace)
                .or_insert_with(|| Arc::new(Semaphore::new(self.of_workspace)));
            Arc::clone(known)
        };
        let closed = |error| Error::new(ErrorKind::Internal, "long reads are closed").because(error);
        let of_workspace = of_workspace.acquire_owned().await.map_err(closed)?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(closed)?;
        turn.permits = Some((of_workspace, of_all));
        Ok(turn)
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Arc<Semaphore>>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.permits = None;
        let mut workspaces = self.reads.workspaces();
        // Each turn and each waiting one holds the semaphore of its workspace.
        if workspaces
            .get(&self.workspace)
            .is_some_and(|known| Arc::strong_count(known) == 1)
        {
            workspaces.remove(&self.workspace);
        }
    }
}

impl AgentCfg {
    /// Waits until a piece of a long read of this workspace may run.
    ///
    /// # Errors
    ///
    /// None in practice: the turns are never closed.
    pub(super) async fn turn(&self, workspace: WorkspaceId) -> Result<Turn<'_>, Error> {
        self.inner.long_reads.turn(workspace).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use uuid::Uuid;

    use super::*;

    fn workspace(number: u128) -> WorkspaceId {
        WorkspaceId::new(Uuid::from_u128(number))
    }

    type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Turn<'a>, Error>> + 'a>>;

    async fn poll<'a>(waiting: &mut Waiting<'a>) -> Option<Turn<'a>> {
        poll_fn(|cx| match waiting.as_mut().poll(cx) {
            Poll::Ready(turn) => Poll::Ready(Some(turn.unwrap())),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn a_workspace_with_many_long_reads_leaves_every_second_turn_to_another() {
        let reads = LongReads::of(1);
        let wait = |number| -> Waiting<'_> { Box::pin(reads.turn(workspace(number))) };
        let first = reads.turn(workspace(1)).await.unwrap();
        let (mut second, mut third, mut other) = (wait(1), wait(1), wait(2));
        for waiting in [&mut second, &mut third, &mut other] {
            assert!(poll(waiting).await.is_none());
        }
        drop(first);
        // The second one of the workspace waits behind the other workspace for a turn of all.
        assert!(poll(&mut second).await.is_none());
        let turn = poll(&mut other).await.unwrap();
        assert!(poll(&mut second).await.is_none());
        drop(turn);
        let turn = poll(&mut second).await.unwrap();
        assert!(poll(&mut third).await.is_none());
        // A read that stops waiting delays no other.
        drop(third);
        drop(turn);
        assert!(poll(&mut wait(3)).await.is_some());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_workspace_without_long_reads() {
        let reads = LongReads::of(3);
        let (one, two) = (reads.turn(workspace(1)).await, reads.turn(workspace(1)).await);
        let mut waiting: Waiting<'_> = Box::pin(reads.turn(workspace(1)));
        assert!(
            poll(&mut waiting).await.is_none(),
            "two of three turns for one workspace"
        );
        drop(one);
        drop(two);
        assert_eq!(reads.workspaces().len(), 1);
        drop(waiting);
        assert!(reads.workspaces().is_empty());
        assert_eq!(reads.all.available_permits(), 3);
    }
}
