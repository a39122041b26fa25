//! What a new budget counts: what the calls of its period have cost before it was made.

use std::ops::ControlFlow;

use super::period;
use super::reservation::nanos;
use crate::clock::{DAY, HOUR};
use crate::error::Error;
use crate::model::{Timestamp, Usd, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::records::{self, BudgetPlace, CallBlock, SumTime};

/// How long calls last at most that a new budget leaves to the period before, in milliseconds.
const LONGEST_CALL: i64 = HOUR;
/// The days whose sums each attempt reads. Those before were over for so long that servers whose clocks differ agree.
const LAST_DAYS: i64 = 3;

/// What is read before the attempts to make a budget. The other servers write usage several times a second, and an
/// attempt that reads the sums of a year would always be too late.
pub(super) struct SpentBefore {
    /// The beginning of the period; `None` where it has none.
    start: Option<Timestamp>,
    /// The first day that is left to the attempts.
    last_days: i64,
    /// How often the sums of days that were over had been written.
    late_writes: u64,
    /// What the days before cost, in billionths of a USD.
    spent: u64,
    /// What calls cost that ended in the period and began before it, so that they belong to the one before.
    of_period_before: u64,
}

fn day(at: Timestamp) -> i64 {
    at.unix_millis().div_euclid(DAY)
}

impl AgentCfg {
    /// Reads what does not change any more.
    pub(super) async fn spent_before(&self, workspace: WorkspaceId, place: &BudgetPlace) -> Result<SpentBefore, Error> {
        // Before the sums, so that a write after them is noticed.
        let late_writes = self.read(records::late_usage_writes(workspace)).await?;
        let now = self.now();
        let start = period::start(place.period, now);
        let from = start.map_or(0, day);
        let last_days = from.max(day(now) - LAST_DAYS + 1);
        Ok(SpentBefore {
            start,
            last_days,
            late_writes,
            spent: self.spent_in_days(workspace, place, from, last_days).await?,
            of_period_before: match start {
                Some(start) => self.begun_earlier(workspace, place, start.unix_millis()).await?,
                None => 0,
            },
        })
    }

    /// Adds the last days, for an attempt that has read this number of late writes. `None` where what was read before has
    /// changed.
    pub(super) async fn spent_with_last_days(
        &self,
        workspace: WorkspaceId,
        place: &BudgetPlace,
        before: &SpentBefore,
        (late_writes, now): (u64, Timestamp),
    ) -> Result<Option<u64>, Error> {
        if before.late_writes != late_writes || before.start != period::start(place.period, now) {
            return Ok(None);
        }
        // All of the last day, also what a server has written whose clock is ahead.
        let last = self.spent_in_days(workspace, place, before.last_days, i64::MAX).await?;
        let spent = before.spent.saturating_add(last);
        Ok(Some(spent.saturating_sub(before.of_period_before)))
    }

    /// What calls have cost that ended on the days from the first one on and before the second one.
    async fn spent_in_days(
        &self,
        workspace: WorkspaceId,
        place: &BudgetPlace,
        from: i64,
        to: i64,
    ) -> Result<u64, Error> {
        let mut spent: u64 = 0;
        let days = (SumTime::Day(from), SumTime::Day(to));
        self.each_sum_of(workspace, days, |_, sum| {
            if place.covers_group(&sum.group) {
                spent = spent.saturating_add(nanos(sum.sums.cost));
            }
            Ok(())
        })
        .await?;
        Ok(spent)
    }

    /// What calls have cost that ended from this moment on and began before it. They end soon after it.
    async fn begun_earlier(&self, workspace: WorkspaceId, place: &BudgetPlace, start: i64) -> Result<u64, Error> {
        let mut spent: u64 = 0;
        self.each_call_from(workspace, start, |call| {
            if call.ended_at >= start.saturating_add(LONGEST_CALL + CallBlock::SPAN) {
                return ControlFlow::Break(());
            }
            if call.began_at() < start && place.covers_group(&call.group) {
                spent = spent.saturating_add(nanos(call.cost.unwrap_or(Usd::ZERO)));
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(spent)
    }
}
