//! Writing the ledger: calls and sums together, a commit for many calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::ledger::{CALLS, OpenSum, PendingWrite, SumKey, WaitingCall};
use crate::clock::HOUR;
use crate::error::Error;
use crate::model::{Timestamp, Usd, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::budgets::{EndedCost, KnownBudgets};
use crate::service::for_each::for_each;
use crate::service::records::{
    self, CallBlock, CallGroup, Entries, NewCallBlock, Outcome, StoredSum, SumTime, Sums, Transaction,
};
use crate::service::retry::Rounds;

/// The bytes of the texts in one commit, which the last call may exceed: paths can be long.
const BYTES: usize = 1 << 20;
/// The most workspaces whose calls are written at the same time.
const AT_ONCE: usize = 32;
/// The most blocks of calls that one commit of the retention removes.
const SWEPT: usize = 64;
/// The most commits of the retention after a write. The rest follows after the next ones.
const SWEEPS: usize = 8;

impl AgentCfg {
    /// Writes all calls that have ended, also those that end meanwhile. What cannot be written is kept for the next call.
    ///
    /// # Errors
    ///
    /// When storage fails, for the first workspace whose calls were not written.
    pub(in crate::service) async fn write_usage(&self) -> Result<(), Error> {
        loop {
            let workspaces = self.inner.ledger.workspaces();
            if workspaces.is_empty() {
                return Ok(());
            }
            for_each(workspaces, AT_ONCE, |workspace| {
                let service = self.clone();
                async move { service.write_usage_of(workspace).await }
            })
            .await?;
        }
    }

    /// As [`Self::write_usage`], of the workspaces whose calls no other task writes now.
    ///
    /// # Errors
    ///
    /// As [`Self::write_usage`].
    pub(super) async fn write_usage_not_in_work(&self) -> Result<(), Error> {
        let ledger = &self.inner.ledger;
        let lost = ledger.take_lost();
        if lost > 0 {
            tracing::error!(
                lost,
                "the usage of model calls is lost: the store did not take it for too long"
            );
        }
        for_each(ledger.workspaces(), AT_ONCE, |workspace| {
            let service = self.clone();
            async move {
                let turn = service.inner.ledger.turn(workspace);
                match turn.try_lock() {
                    Ok(mut unknown) => service.write_waiting_calls(workspace, &mut unknown).await,
                    Err(_) => {
                        service.inner.ledger.wake_writer();
                        Ok(())
                    }
                }
            }
        })
        .await
    }

    /// As [`Self::write_usage`], of one workspace.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub(in crate::service) async fn write_usage_of(&self, workspace: WorkspaceId) -> Result<(), Error> {
        // One task at a time: of two, each would count the same calls.
        let turn = self.inner.ledger.turn(workspace);
        let mut unknown = turn.lock().await;
        self.write_waiting_calls(workspace, &mut unknown).await
    }

    /// Writes the calls that wait now. Those that end meanwhile are gathered for the next write: otherwise a busy
    /// workspace would have one commit after the other, of a few calls each.
    async fn write_waiting_calls(
        &self,
        workspace: WorkspaceId,
        unknown: &mut Option<PendingWrite>,
    ) -> Result<(), Error> {
        let ledger = &self.inner.ledger;
        let mut left = ledger.count(workspace);
        while left > 0 {
            let calls = match *unknown {
                Some(attempt) => ledger.first(workspace, attempt.calls, usize::MAX),
                None => ledger.first(workspace, CALLS.min(left), BYTES),
            };
            let blocks = CallBlock::of(calls.iter().map(|of| (of.id, &*of.call)).collect());
            if blocks.is_empty() {
                break;
            }
            self.write_calls(workspace, &blocks, &calls, unknown).await?;
            // There is no await between the commit and this line: a cancelled caller would leave calls in the queue
            // that are written.
            ledger.forget(workspace, calls.len());
            left = left.saturating_sub(calls.len());
        }
        self.close_sums(workspace);
        if ledger.sweep_is_due(workspace, self.inner.clock.steady_millis()) {
            self.remove_old_calls(workspace).await?;
        }
        Ok(())
    }

    /// Writes calls with the sums that they make. Repeated after a failure, it writes the same records, unless it finds
    /// the first block: then the attempt was executed whose outcome was unknown. The check that it is not there makes one
    /// attempt exclude the others.
    async fn write_calls(
        &self,
        workspace: WorkspaceId,
        blocks: &[NewCallBlock],
        calls: &[WaitingCall],
        unknown: &mut Option<PendingWrite>,
    ) -> Result<(), Error> {
        let mut counted: HashMap<(i64, &Arc<CallGroup>), Sums> = HashMap::new();
        for WaitingCall { call, .. } in calls {
            let hour = call.ended_at.div_euclid(HOUR).max(0);
            counted.entry((hour, &call.group)).or_default().count(call);
        }
        let mut changed: HashMap<SumKey, OpenSum> = HashMap::new();
        for ((hour, group), sums) in counted {
            for key in SumKey::of(workspace, hour, group) {
                let sum = match changed.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let sum = self.open_sum(entry.key())?;
                        entry.insert(sum)
                    }
                };
                sum.sums.add(&sums);
            }
        }
        let Some(first) = blocks.first().map(|block| block.key(workspace)) else {
            return Ok(());
        };
        let mut rounds = Rounds::default();
        loop {
            let head = records::budgets_head(workspace);
            let (found, budgets, written) = self
                .read((
                    records::workspace(workspace).encoded(),
                    head.clone(),
                    first.clone().encoded(),
                ))
                .await?;
            let Some(found) = found else {
                // The workspace is deleted, and its usage with it.
                return Ok(());
            };
            let now = budgets.as_ref().map_or(0, |head| head.value.revision);
            let revision = match (&written, &*unknown) {
                (Some(_), Some(attempt)) => attempt.budgets,
                _ => now,
            };
            let since = match calls.iter().any(|call| call.settled < revision) {
                true => Some(self.budgets_at(workspace, revision).await?),
                false => None,
            };
            if written.is_some() {
                self.are_written(since.as_deref(), revision, calls, changed);
                *unknown = None;
                return Ok(());
            }
            // A new budget counts what was written before it was made, and those who write count the rest in it.
            let mut transaction = Transaction::default()
                .check(found.unchanged())
                .check(head.unchanged(budgets.as_ref()))
                .check(first.unchanged(None))
                .add(records::usage_writes(workspace), 1, None);
            let now = self.now().unix_millis();
            let is_late = |key: &SumKey| matches!(key.time, SumTime::Day(_)) && key.time.is_over(now);
            if changed.keys().any(is_late) {
                transaction = transaction.add(records::late_usage_writes(workspace), 1, None);
            }
            for block in blocks {
                transaction = transaction.put(block.key(workspace), block.rows())?;
            }
            for (key, sum) in &changed {
                let record = StoredSum {
                    group: (*key.group).clone(),
                    sums: sum.sums.clone(),
                };
                transaction = transaction.put(records::usage_sum(workspace, key.time, sum.id), &record)?;
            }
            *unknown = Some(PendingWrite {
                calls: calls.len(),
                budgets: revision,
            });
            match self.commit(transaction).await? {
                Outcome::Done(_) => {
                    self.are_written(since.as_deref(), revision, calls, changed);
                    *unknown = None;
                    return Ok(());
                }
                Outcome::Raced | Outcome::Limit => rounds.lost().await?,
            }
        }
    }

    /// Takes over that calls are written: into the sums, and into the budgets that were made up to this revision and
    /// since the calls were settled. Later ones have found the calls.
    fn are_written(
        &self,
        since: Option<&KnownBudgets>,
        revision: u64,
        calls: &[WaitingCall],
        sums: HashMap<SumKey, OpenSum>,
    ) {
        self.inner.ledger.sums().extend(sums);
        let Some(known) = since else { return };
        for WaitingCall { call, settled, .. } in calls {
            let cost = EndedCost {
                group: &call.group,
                cost: call.cost.unwrap_or(Usd::ZERO),
                began: Timestamp::from_unix_millis(call.began_at()),
            };
            self.settle_since(known, (*settled, revision), &cost);
        }
    }

    /// The sum that this process counts, a new one if it counts none.
    fn open_sum(&self, key: &SumKey) -> Result<OpenSum, Error> {
        let mut sums = self.inner.ledger.sums();
        if let Some(sum) = sums.get(key) {
            return Ok(sum.clone());
        }
        let new = OpenSum {
            id: self.new_id(self.now())?,
            sums: Sums::default(),
        };
        // It keeps its identifier if the outcome of the commit is unknown.
        sums.insert(key.clone(), new.clone());
        Ok(new)
    }

    /// Forgets the sums of times that are over. If the clock is set back, others are begun.
    fn close_sums(&self, workspace: WorkspaceId) {
        let now = self.now().unix_millis();
        let mut sums = self.inner.ledger.sums();
        sums.retain(|key, _| key.workspace != workspace || !key.time.is_over(now));
    }

    /// The end of the time for which calls are kept.
    pub(super) fn oldest_call(&self) -> Timestamp {
        self.days_ago(self.settings().usage_retention_days)
    }

    /// Removes calls that are older than they are kept, a bounded number of them. Returns whether all are removed.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub(in crate::service) async fn remove_old_calls(&self, workspace: WorkspaceId) -> Result<bool, Error> {
        let oldest = self.oldest_call().unix_millis();
        for _ in 0..SWEEPS {
            let entries = Entries::<CallBlock>::in_workspace(workspace).limit(SWEPT);
            let found = self.scan(entries).await?;
            let (count, mut removed) = (found.len(), 0);
            let mut transaction = Transaction::default();
            for block in found {
                let key = block.key().clone();
                if block
                    .value()?
                    .into_calls()
                    .iter()
                    .any(|(_, call)| call.ended_at >= oldest)
                {
                    break;
                }
                transaction = transaction.delete(key);
                removed += 1;
            }
            if removed > 0 {
                self.commit(transaction).await?;
            }
            if removed < count || count < SWEPT {
                self.inner.ledger.is_swept(workspace, self.inner.clock.steady_millis());
                return Ok(true);
            }
        }
        Ok(false)
    }
}
