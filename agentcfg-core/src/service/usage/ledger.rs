//! The calls of this process that were not written yet, and the sums that it is counting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::clock::HOUR;
use crate::error::Error;
use crate::model::{CallId, Timestamp, WorkspaceId};
use crate::service::for_each::round;
use crate::service::records::{CallGroup, ProcessTag, StoredCall, SumTime, Sums};
use crate::service::{AgentCfg, Inner};
use crate::sync::lock;

/// The most calls in one commit. Their sums, two a call at most, are fewer writes than an apply may have.
pub(super) const CALLS: usize = 500;
/// How long calls are gathered before they are written together, unless they fill a commit before: many commits in a
/// row would hold up the calls in flight.
const GATHER: Duration = Duration::from_millis(250);
/// The pause after a failure of the store, which doubles with each failure after it.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The most calls that are kept while the store does not answer. Calls beyond it are lost, and the log says how many.
const MOST_KEPT: usize = 1 << 20;

/// Milliseconds between two removals of old calls of a workspace.
const SWEEP_EVERY: i64 = HOUR;

/// What a process knows of the usage that it is about to write.
#[derive(Default)]
pub(in crate::service) struct Ledger {
    waiting: Mutex<Waiting>,
    sums: Mutex<HashMap<SumKey, OpenSum>>,
    /// One lock for each workspace, held while its calls are written.
    turns: Mutex<HashMap<WorkspaceId, Turn>>,
    wake: Arc<Notify>,
    /// Notified when the calls of a workspace fill a commit.
    full: Arc<Notify>,
    writer: OnceLock<()>,
    /// What identifies this process among the writers of usage.
    process: OnceLock<ProcessTag>,
}

/// The writing of the calls of one workspace.
#[derive(Default)]
struct Turn {
    lock: Arc<WriteTurn>,
    /// When old calls were last removed, on the monotonic clock.
    swept: Option<i64>,
}

/// Held by the task that writes the calls of a workspace. It has the attempt whose outcome is not known.
pub(in crate::service) type WriteTurn = tokio::sync::Mutex<Option<PendingWrite>>;

/// An attempt to write the first calls of a workspace. The next attempt writes the same ones, and finds out about this
/// one.
#[derive(Debug, Clone, Copy)]
pub(in crate::service) struct PendingWrite {
    pub(super) calls: usize,
    /// The revision of the budgets that it checked.
    pub(super) budgets: u64,
}

/// The calls that were not written yet.
#[derive(Default)]
struct Waiting {
    calls: HashMap<WorkspaceId, VecDeque<WaitingCall>>,
    count: usize,
    lost: u64,
}

/// A call that has ended and was not written yet.
#[derive(Clone)]
pub(super) struct WaitingCall {
    pub(super) id: CallId,
    pub(super) call: Arc<StoredCall>,
    /// The revision of the budgets that it was counted in.
    pub(super) settled: u64,
}

/// Of which calls a sum is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SumKey {
    pub(super) workspace: WorkspaceId,
    pub(super) time: SumTime,
    pub(super) group: Arc<CallGroup>,
}

/// A sum that this process counts.
#[derive(Debug, Clone)]
pub(super) struct OpenSum {
    /// The identifier of its record.
    pub(super) id: Uuid,
    /// What was written.
    pub(super) sums: Sums,
}

impl Ledger {
    /// The workspaces with calls that were not written.
    pub(super) fn workspaces(&self) -> Vec<WorkspaceId> {
        lock(&self.waiting).calls.keys().copied().collect()
    }

    /// How many calls of a workspace wait.
    pub(super) fn count(&self, workspace: WorkspaceId) -> usize {
        lock(&self.waiting).calls.get(&workspace).map_or(0, VecDeque::len)
    }

    /// The first calls of a workspace, up to a number, and to the one whose texts exceed these bytes.
    pub(super) fn first(&self, workspace: WorkspaceId, most: usize, bytes: usize) -> Vec<WaitingCall> {
        let waiting = lock(&self.waiting);
        let Some(calls) = waiting.calls.get(&workspace) else {
            return Vec::new();
        };
        let mut taken = 0;
        let calls = calls.iter().take(most).take_while(|waiting| {
            let is_within = taken <= bytes;
            taken += waiting.call.path.len() + waiting.call.request_id.len();
            is_within
        });
        calls.cloned().collect()
    }

    /// Forgets the first calls of a workspace, which are written.
    pub(super) fn forget(&self, workspace: WorkspaceId, count: usize) {
        let mut waiting = lock(&self.waiting);
        if let Some(calls) = waiting.calls.get_mut(&workspace) {
            calls.drain(..count.min(calls.len()));
            if calls.is_empty() {
                waiting.calls.remove(&workspace);
            }
        }
        waiting.count = waiting.count.saturating_sub(count);
    }

    /// The lock of those who write the calls of a workspace.
    pub(in crate::service) fn turn(&self, workspace: WorkspaceId) -> Arc<WriteTurn> {
        Arc::clone(&lock(&self.turns).entry(workspace).or_default().lock)
    }

    /// Wakes the task that writes.
    pub(super) fn wake_writer(&self) {
        self.wake.notify_one();
    }

    /// The sums that this process counts.
    pub(super) fn sums(&self) -> MutexGuard<'_, HashMap<SumKey, OpenSum>> {
        lock(&self.sums)
    }

    /// Whether old calls of a workspace were not removed for long.
    pub(super) fn sweep_is_due(&self, workspace: WorkspaceId, now: i64) -> bool {
        let swept = lock(&self.turns).entry(workspace).or_default().swept;
        swept.is_none_or(|swept| now.saturating_sub(swept) >= SWEEP_EVERY)
    }

    /// Notes that all old calls of a workspace are removed.
    pub(super) fn is_swept(&self, workspace: WorkspaceId, now: i64) {
        lock(&self.turns).entry(workspace).or_default().swept = Some(now);
    }

    /// How many calls were lost since the last question.
    pub(super) fn take_lost(&self) -> u64 {
        std::mem::take(&mut lock(&self.waiting).lost)
    }
}

impl SumKey {
    /// The sums that calls of one group and one hour count in.
    pub(super) fn of(workspace: WorkspaceId, hour: i64, group: &Arc<CallGroup>) -> [Self; 2] {
        [SumTime::Day(hour / 24), SumTime::Hour(hour)].map(|time| Self {
            workspace,
            time,
            group: Arc::clone(group),
        })
    }
}

impl AgentCfg {
    /// What identifies this process among those that write usage and hold slices of budgets.
    pub(in crate::service) fn process_tag(&self) -> Result<ProcessTag, Error> {
        if let Some(tag) = self.inner.ledger.process.get() {
            return Ok(*tag);
        }
        let mut drawn = [0; 4];
        self.entropy().fill(&mut drawn)?;
        Ok(*self
            .inner
            .ledger
            .process
            .get_or_init(|| ProcessTag::from_be_bytes(drawn)))
    }

    /// Notes a call that has ended, and was counted in the budgets of this revision. The first note starts the task
    /// that writes.
    pub(super) fn note_call(&self, workspace: WorkspaceId, call: StoredCall, settled: u64) {
        let ledger = &self.inner.ledger;
        let id = match self.new_id(Timestamp::from_unix_millis(call.ended_at)) {
            Ok(id) => CallId::new(id),
            Err(error) => {
                tracing::error!(?error, %workspace, "the usage of a model call is lost");
                return;
            }
        };
        let mut waiting = lock(&ledger.waiting);
        if waiting.count >= MOST_KEPT {
            waiting.lost += 1;
            return;
        }
        waiting.count += 1;
        let calls = waiting.calls.entry(workspace).or_default();
        calls.push_back(WaitingCall {
            id,
            call: Arc::new(call),
            settled,
        });
        let fills_a_commit = calls.len().is_multiple_of(CALLS);
        drop(waiting);
        ledger.writer.get_or_init(|| {
            // Where there is no runtime, only `flush` writes.
            if let Ok(runtime) = Handle::try_current() {
                let notified = [&ledger.wake, &ledger.full].map(Arc::clone);
                runtime.spawn(write_on(Arc::downgrade(&self.inner), notified));
            }
        });
        ledger.wake.notify_one();
        if fills_a_commit {
            ledger.full.notify_one();
        }
    }
}

impl Drop for Ledger {
    /// Ends the task that writes.
    fn drop(&mut self) {
        self.wake.notify_one();
        let calls = lock(&self.waiting).count;
        if calls > 0 {
            tracing::error!(
                calls,
                "the usage of model calls is lost: it was not written before the end"
            );
        }
    }
}

/// Writes the calls soon after they were noted, until the service is dropped or shut down.
async fn write_on(service: Weak<Inner>, [wake, full]: [Arc<Notify>; 2]) {
    let (mut pause, mut after_failure) = (GATHER, AFTER_FAILURE);
    loop {
        wake.notified().await;
        match pause {
            GATHER => drop(tokio::time::timeout(GATHER, full.notified()).await),
            _ => tokio::time::sleep(pause).await,
        }
        let Some(inner) = service.upgrade() else { return };
        let service = AgentCfg::of(inner);
        if service.inner.lifetime.check().is_err() {
            return;
        }
        // Where the calls of one workspace are held up, those of the others are written nonetheless.
        let Some(written) = round(async move { service.write_usage_not_in_work().await }).await else {
            wake.notify_one();
            continue;
        };
        match written {
            Ok(()) => (pause, after_failure) = (GATHER, AFTER_FAILURE),
            Err(error) => {
                tracing::warn!(?error, "could not write the usage of model calls, trying again");
                (pause, after_failure) = (after_failure, LONGEST_PAUSE.min(after_failure * 2));
                wake.notify_one();
            }
        }
    }
}
