//! Settling what processes held that are gone.

use serde_json::json;

use super::manage::account_key;
use super::period;
use super::reservation::nanos;
use crate::error::Error;
use crate::model::{
    Action, Budget, Change as FieldChange, Changes, Permission, TargetType, Timestamp, Usd, WorkspaceId,
};
use crate::service::access::Access;
use crate::service::change::Change;
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, Outcome, ProcessTag, StoredBudget, StoredCall};
use crate::service::retry::Rounds;
use crate::service::{AgentCfg, Caller};

/// The calls of a process that is gone ended at most so long after its last report, in milliseconds.
const AFTER_REPORT: i64 = 60 * 60 * 1000;

/// The changes that the audit log shows.
fn settled((unsettled, spent): (u64, u64), spent_now: u64) -> Changes {
    let usd = |nanos: u64| json!(Usd::from_nanos(nanos.into()));
    let change = |name: &str, from: u64, to: u64| {
        (
            name.to_owned(),
            FieldChange {
                from: usd(from),
                to: usd(to),
            },
        )
    };
    Changes::from([
        change("unsettled_usd", unsettled, 0),
        change("spent_usd", spent, spent_now),
    ])
}

impl AgentCfg {
    /// Replaces what servers held of the budgets of a workspace that ended without giving it back by what the usage says that they
    /// have spent, and returns the budgets.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `budgets:manage`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let budgets = service.settle_budgets(&ada, studio).await?;
    /// assert!(budgets.iter().all(|budget| budget.unsettled_usd.nanos() == 0));
    /// # Ok(()) }) }
    /// ```
    pub async fn settle_budgets(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<Budget>, Error> {
        let access = self.access(caller, workspace, Permission::BudgetsManage).await?;
        let workspace = access.workspace();
        self.write_usage().await?;
        let known = self.read_budgets(workspace).await?;
        for budget in &known.budgets {
            self.settle_budget(&access, &budget.stored).await?;
        }
        self.shown_budgets(workspace).await
    }

    async fn settle_budget(&self, access: &Access, budget: &StoredBudget) -> Result<(), Error> {
        let workspace = access.workspace();
        let (own, now) = (self.process_tag()?, self.now());
        let key = account_key(workspace, budget, now);
        let place = records::budget(workspace, &budget.place());
        let mut rounds = Rounds::default();
        loop {
            let (stored, found) = self.read((place.clone(), key.clone())).await?;
            let (Some(stored), Some(found)) = (stored, found) else {
                return Ok(());
            };
            let mut account = found.value.clone();
            let gone: Vec<_> = account
                .gone(own, self.gone())
                .map(|(tag, holder)| (tag, holder.held, holder.reported_at))
                .collect();
            if gone.is_empty() {
                return Ok(());
            }
            for (tag, held, reported_at) in gone {
                let spent = self.spent_since(workspace, budget, (tag, reported_at), now).await?;
                account.holders.remove(&tag);
                account.spent = account.spent.saturating_add(spent.min(held));
            }
            let before = (found.value.unsettled(own, self.gone()), found.value.spent);
            let (action, id) = (Action::BudgetSettled, budget.id.to_string());
            let change = Change::new(access, now, action, TargetType::Budget, id)
                .audit_changes(&settled(before, account.spent))?
                .check(stored.unchanged())
                .check(found.unchanged())
                .put(key.clone(), &account)?;
            match self.apply(change).await? {
                Outcome::Done(_) => return Ok(()),
                Outcome::Raced | Outcome::Limit => rounds.lost().await?,
            }
        }
    }

    /// What the calls of a process have cost that ended after its last report, and belong to the current period of a budget.
    async fn spent_since(
        &self,
        workspace: WorkspaceId,
        budget: &StoredBudget,
        (process, reported_at): (ProcessTag, i64),
        now: Timestamp,
    ) -> Result<u64, Error> {
        let begin = period::start(budget.period, now).map_or(i64::MIN, Timestamp::unix_millis);
        let place = budget.place();
        let mut spent: u64 = 0;
        let mut pieces = Chunks::of(records::usage_calls_from(workspace, reported_at));
        while let Some(piece) = pieces.next(self).await? {
            for call in chunked_reads::values::<StoredCall>(piece).await? {
                if call.ended_at > reported_at.saturating_add(AFTER_REPORT) {
                    return Ok(spent);
                }
                let is_counted = call.process == process && call.ended_at >= reported_at && call.began_at() >= begin;
                if is_counted && place.covers_group(&call.group) {
                    spent = spent.saturating_add(call.cost.map_or(0, nanos));
                }
            }
        }
        Ok(spent)
    }
}
