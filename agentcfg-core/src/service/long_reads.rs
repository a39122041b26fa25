//! How many long reads run at the same time.
//!
//! A search of the log or a list of the past can read and decode hundreds of thousands of records. Unbounded, a few
//! such requests would take all cores from short ones. So a piece of a long read runs only while it holds a permit:
//! some cores stay free, and the workspaces share the others.
//!
//! A permit belongs to the piece, not to the future of its caller. The piece is a task of its own, which takes its
//! permit, holds it until all of its work has ended, and is polled whatever its caller does, as long as its runtime
//! runs. So a caller that leaves frees no core that is still at work, and a caller that does not poll keeps no permit
//! from others.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::AgentCfg;
use super::fair_permits::FairPermits;
use super::tasks::spawn;
use crate::error::{Error, ErrorKind};
use crate::model::WorkspaceId;

/// The permits of long reads, which go round between the workspaces.
pub(super) type LongReads = FairPermits<WorkspaceId>;

impl LongReads {
    /// On a remote store a read waits most of its time, so that more may run.
    pub(super) fn new(is_shared: bool) -> Arc<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::of(match is_shared {
            true => 2 * cores,
            false => (cores - 1).max(1),
        })
    }

    /// Runs a piece as a task that holds a permit; see [`AgentCfg::long_read`].
    async fn run<T: Send + 'static>(
        self: Arc<Self>,
        runtime: &Handle,
        workspace: WorkspaceId,
        piece: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (mut caller, result) = oneshot::channel();
        spawn(runtime, async move {
            let permit = tokio::select! {
                biased;
                () = caller.closed() => return,
                permit = self.permit(workspace) => permit,
            };
            let done = match permit {
                Ok(permit) => {
                    let done = piece.await;
                    // Released before the answer, so that the caller's next piece finds a free permit.
                    drop(permit);
                    done
                }
                Err(error) => Err(error),
            };
            // The caller may have left meanwhile.
            drop(caller.send(done));
        });
        result.await.map_err(|error| {
            Error::new(ErrorKind::Internal, "a piece of a long read was not finished").because(error)
        })?
    }
}

impl AgentCfg {
    /// Runs a piece of a long read of a workspace while it holds a permit.
    ///
    /// Dropping this future ends a piece that waits for its permit. A piece that has begun runs to its end, which is
    /// near, since each piece is bounded. A piece must not begin a long read itself: it would wait for a permit while
    /// it holds one.
    ///
    /// Where there is no runtime the piece runs in place and needs no permit: the caller's thread is the bound.
    ///
    /// # Errors
    ///
    /// Errors of the piece, and [`ErrorKind::Internal`] when it panics or the runtime is shut down.
    pub(super) async fn long_read<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        piece: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match Handle::try_current() {
            Ok(runtime) => {
                let reads = Arc::clone(&self.inner.long_reads);
                reads.run(&runtime, workspace, piece).await
            }
            Err(_) => piece.await,
        }
    }

    /// Runs a piece as [`Self::long_read`] when it is long, else in place.
    ///
    /// # Errors
    ///
    /// As [`Self::long_read`].
    pub(super) async fn long_read_if<T: Send + 'static>(
        &self,
        is_long: bool,
        workspace: WorkspaceId,
        piece: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match is_long {
            true => self.long_read(workspace, piece).await,
            false => piece.await,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::pin::{Pin, pin};
    use std::sync::{Mutex, mpsc};
    use std::task::Poll;

    use uuid::Uuid;

    use super::*;
    use crate::model::{AgentFilter, AgentId, AsOf, AuditFilter, NewAgent, NewWorkspace};
    use crate::service::blocking::blocking;
    use crate::service::fair_permits;
    use crate::service::{Caller, chunked_reads};
    use crate::store::{
        Batch, CommitError, Committed, Key, Kind, MemoryStore, Partition, Record, Scan, Scanned, Store, StoreError,
    };

    fn workspace(number: u128) -> WorkspaceId {
        WorkspaceId::new(Uuid::from_u128(number))
    }

    type Permit = fair_permits::Permit<WorkspaceId>;
    type Waiting = Pin<Box<dyn Future<Output = Result<Permit, Error>>>>;

    async fn poll<T>(waiting: &mut Pin<Box<dyn Future<Output = Result<T, Error>>>>) -> Option<T> {
        poll_fn(|cx| match waiting.as_mut().poll(cx) {
            Poll::Ready(permit) => Poll::Ready(Some(permit.unwrap())),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn a_workspace_with_many_long_reads_leaves_every_second_permit_to_another() {
        let reads = LongReads::of(1);
        let wait = |number| -> Waiting { Box::pin(Arc::clone(&reads).permit(workspace(number))) };
        let first = wait(1).await.unwrap();
        let (mut second, mut third, mut other) = (wait(1), wait(1), wait(2));
        for waiting in [&mut second, &mut third, &mut other] {
            assert!(poll(waiting).await.is_none());
        }
        drop(first);
        // The second one of the workspace waits behind the other workspace for a permit of all.
        assert!(poll(&mut second).await.is_none());
        let permit = poll(&mut other).await.unwrap();
        assert!(poll(&mut second).await.is_none());
        drop(permit);
        let permit = poll(&mut second).await.unwrap();
        assert!(poll(&mut third).await.is_none());
        // A read that stops waiting delays no other.
        drop(third);
        drop(permit);
        assert!(poll(&mut wait(3)).await.is_some());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_workspace_without_long_reads() {
        let reads = LongReads::of(3);
        let wait = || -> Waiting { Box::pin(Arc::clone(&reads).permit(workspace(1))) };
        let (one, two) = (wait().await, wait().await);
        let mut waiting = wait();
        assert!(
            poll(&mut waiting).await.is_none(),
            "two of three permits for one workspace"
        );
        drop(one);
        drop(two);
        assert_eq!(reads.known().len(), 1);
        drop(waiting);
        assert!(reads.known().is_empty());
        assert_eq!(reads.all.available_permits(), 3);
    }

    type Piece<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;

    /// A piece of the workspace 1.
    fn piece<T: Send + 'static>(
        reads: &Arc<LongReads>,
        piece: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Piece<T> {
        let reads = Arc::clone(reads);
        Box::pin(async move { reads.run(&Handle::current(), workspace(1), piece).await })
    }

    /// Lets the tasks of the runtime run until this is so.
    async fn until(holds: impl Fn() -> bool) {
        while !holds() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_computation_whose_caller_has_left_keeps_its_permit_until_it_ends() {
        let reads = LongReads::of(1);
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let mut long = piece(&reads, async move {
            let work = move || {
                let _ = begin.send(());
                ended.recv().is_ok()
            };
            blocking(work).await
        });
        assert!(poll(&mut long).await.is_none());
        begun.await.unwrap();
        drop(long);
        let mut next = piece(&reads, ready(Ok(())));
        for _ in 0..100 {
            assert!(poll(&mut next).await.is_none(), "the only permit is in use");
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        next.await.unwrap();
        assert_eq!(reads.all.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_caller_that_does_not_poll_keeps_no_permit_from_others() {
        let reads = LongReads::of(1);
        let two_steps = || async {
            tokio::task::yield_now().await;
            Ok(7)
        };
        // Polled once, and then held.
        let mut held = piece(&reads, two_steps());
        assert!(poll(&mut held).await.is_none());
        assert_eq!(piece(&reads, two_steps()).await.unwrap(), 7);
        assert_eq!(held.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_piece_whose_caller_leaves_before_it_has_a_permit_does_not_begin() {
        let reads = LongReads::of(1);
        let permit = Arc::clone(&reads).permit(workspace(1)).await.unwrap();
        let mut waiting = piece(&reads, async { panic!("it has begun") as Result<(), Error> });
        assert!(poll(&mut waiting).await.is_none());
        tokio::task::yield_now().await;
        drop(waiting);
        drop(permit);
        until(|| reads.known().is_empty()).await;
        assert_eq!(reads.all.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_piece_that_panics_fails_and_frees_its_permit() {
        let reads = LongReads::of(1);
        let error = piece(&reads, async { panic!("on purpose") as Result<(), Error> }).await;
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Internal));
        assert_eq!(reads.all.available_permits(), 1);
    }

    #[test]
    fn without_a_runtime_a_piece_runs_in_place() {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        // A piece that is held keeps no permit from others here either.
        let mut held = pin!(service.long_read(workspace(1), pending::<Result<(), Error>>()));
        assert!(held.as_mut().poll(&mut cx).is_pending());
        for number in 0..100 {
            let mut read = pin!(service.long_read(workspace(1), ready(Ok(number))));
            assert!(matches!(read.as_mut().poll(&mut cx), Poll::Ready(Ok(found)) if found == number));
        }
    }
    /// A store that notes the workspaces whose records of one kind are scanned.
    struct Noting {
        store: MemoryStore,
        kind: Kind,
        scanned: Arc<Mutex<Vec<Partition>>>,
    }

    #[async_trait::async_trait]
    impl Store for Noting {
        fn inner(&self) -> Option<&dyn Store> {
            Some(&self.store)
        }

        async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
            self.store.get(keys).await
        }

        async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
            if scan.kind == self.kind {
                self.scanned.lock().unwrap().push(scan.partition.clone());
            }
            self.store.scan(scan).await
        }

        async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
            self.store.commit(batch).await
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Read {
        Search,
        PastList,
        CurrentVersions,
    }

    async fn read(service: &AgentCfg, ada: &Caller, workspace: WorkspaceId, read: Read) -> usize {
        match read {
            Read::Search => {
                let filter = AuditFilter {
                    target_id: Some("nothing".into()),
                    ..AuditFilter::default()
                };
                service.search_audit_log(ada, workspace, &filter).await.unwrap().len()
            }
            Read::PastList => {
                let filter = AgentFilter {
                    as_of: Some(AsOf::Revision(1)),
                    ..AgentFilter::default()
                };
                service.list_agents(ada, workspace, &filter).await.unwrap().value.len()
            }
            Read::CurrentVersions => service.current_versions(ada, Some(workspace)).await.unwrap().len(),
        }
    }

    #[tokio::test]
    async fn long_reads_of_two_workspaces_alternate_between_their_pieces() {
        let agents = u32::try_from(chunked_reads::RECORDS).unwrap() + 1;
        for (kind, long, found) in [
            (Kind::LogEntry, Read::Search, 0),
            (Kind::Agent, Read::PastList, 0),
            (Kind::Agent, Read::CurrentVersions, chunked_reads::RECORDS + 1),
        ] {
            let scanned = Arc::<Mutex<Vec<Partition>>>::default();
            let mut service = AgentCfg::builder(Noting {
                store: MemoryStore::new(),
                kind,
                scanned: Arc::clone(&scanned),
            })
            .build();
            Arc::get_mut(&mut service.inner).unwrap().long_reads = LongReads::of(1);
            let ada = service.trusted_user("ada").unwrap();
            let mut workspaces = Vec::new();
            for name in ["one", "other"] {
                let new = NewWorkspace { name: name.into() };
                let workspace = service.create_workspace(&ada, new).await.unwrap().id;
                for number in 0..agents {
                    let agent_id: AgentId = format!("a{number}").parse().unwrap();
                    let new = NewAgent::new(workspace, agent_id, "Writer");
                    service.create_agent(&ada, new).await.unwrap();
                }
                workspaces.push(workspace);
            }
            scanned.lock().unwrap().clear();
            let (one, other) = (workspaces[0], workspaces[1]);
            let lengths = tokio::join!(read(&service, &ada, one, long), read(&service, &ada, other, long));
            assert_eq!(lengths, (found, found), "{long:?}");
            let scanned = scanned.lock().unwrap().clone();
            let expected = [one, other, one, other].map(Partition::Workspace);
            assert_eq!(scanned, expected, "{long:?}");
        }
    }
}
