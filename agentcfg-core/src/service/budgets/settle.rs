//! Settling what processes held that are gone.

use std::collections::HashMap;
use std::ops::ControlFlow;

use serde_json::json;
use uuid::Uuid;

use super::manage::account_key;
use super::period;
use super::reservation::nanos;
use crate::clock::HOUR;
use crate::error::Error;
use crate::model::{
    Action, Budget, Change as FieldChange, Changes, Permission, TargetType, Timestamp, Usd, WorkspaceId,
};
use crate::service::access::Access;
use crate::service::change::Change;
use crate::service::records::{
    self, BudgetAccount, BudgetPlace, CallBlock, EntityKey, Outcome, ProcessTag, SliceHolder, Stored, StoredBudget,
    StoredCall,
};
use crate::service::retry::Rounds;
use crate::service::{AgentCfg, Caller};

/// The calls of a process that is gone ended at most so long after its last report, in milliseconds.
const AFTER_REPORT: i64 = HOUR;

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
    /// Replaces what servers held of the budgets of a workspace that ended without giving it back by what the usage
    /// says that they have spent, and returns the budgets.
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
        self.write_usage_of(workspace).await?;
        let known = self.read_budgets(workspace).await?;
        let mut open: Vec<_> = known.budgets.iter().map(|budget| &budget.stored).collect();
        let mut rounds = Rounds::default();
        let mut sums = HashMap::new();
        while !open.is_empty() {
            open = self.settle_round(&access, open, &mut sums).await?;
            if !open.is_empty() {
                rounds.lost().await?;
            }
        }
        self.shown_budgets(workspace).await
    }

    /// Settles budgets, and returns those whose accounts have changed meanwhile. What was added up for them stays in
    /// `sums`: servers that use a budget change its account more often than the calls can be read.
    async fn settle_round<'a>(
        &self,
        access: &Access,
        budgets: Vec<&'a StoredBudget>,
        sums: &mut HashMap<SumOf, u64>,
    ) -> Result<Vec<&'a StoredBudget>, Error> {
        let workspace = access.workspace();
        let (own, now) = (self.process_tag()?, self.now());
        let mut unsettled = Vec::new();
        for budget in budgets {
            let key = account_key(workspace, budget, now);
            let place = budget.place();
            let stored = records::budget(workspace, &place);
            let (stored, found) = self.read((stored, key.clone())).await?;
            let (Some(stored), Some(found)) = (stored, found) else {
                continue;
            };
            let gone: Vec<_> = found.value.gone(own, self.gone()).collect();
            let begin = period::start(budget.period, now).map_or(i64::MIN, Timestamp::unix_millis);
            let gone: Vec<_> = gone
                .into_iter()
                .map(|(tag, holder)| {
                    let sum_of = (budget.id, begin, tag, holder.reported_at);
                    HolderGone::of(sum_of, holder, sums.get(&sum_of).copied())
                })
                .collect();
            if !gone.is_empty() {
                unsettled.push(Unsettled {
                    budget,
                    place,
                    key,
                    stored,
                    found,
                    begin,
                    gone,
                });
            }
        }
        self.add_up(workspace, &mut unsettled).await?;
        for gone in unsettled.iter().flat_map(|of| &of.gone) {
            sums.insert(gone.sum_of, gone.spent);
        }
        let mut raced = Vec::new();
        for Unsettled {
            budget,
            key,
            stored,
            found,
            gone,
            ..
        } in unsettled
        {
            let mut account = found.value.clone();
            for gone in gone {
                let spent = gone.spent.min(gone.held);
                account.spent = account.spent.saturating_add(spent);
                if let Some(holder) = account.holders.get_mut(&gone.process()) {
                    holder.settle(spent, now.unix_millis());
                }
            }
            let before = (found.value.unsettled(own, self.gone()), found.value.spent);
            let (action, id) = (Action::BudgetSettled, budget.id.to_string());
            let change = Change::new(access, now, action, TargetType::Budget, id)
                .audit_changes(&settled(before, account.spent))?
                .check(stored.unchanged())
                .check(found.unchanged())
                .put(key, &account)?;
            match self.apply(change).await? {
                Outcome::Done(_) => {}
                Outcome::Raced | Outcome::Limit => raced.push(budget),
            }
        }
        Ok(raced)
    }

    /// Adds up what the calls of processes that are gone have cost that ended after their last reports, and belong to
    /// the current periods of these budgets. The calls are read once, however many budgets and processes there are.
    async fn add_up(&self, workspace: WorkspaceId, unsettled: &mut [Unsettled<'_>]) -> Result<(), Error> {
        let unknown = || {
            unsettled
                .iter()
                .flat_map(|of| &of.gone)
                .filter(|gone| !gone.is_added_up)
        };
        let reports = || unknown().map(HolderGone::reported_at);
        let (Some(first), Some(last)) = (reports().min(), reports().max()) else {
            return Ok(());
        };
        self.each_call_from(workspace, first, |call| {
            if call.ended_at > last.saturating_add(AFTER_REPORT + CallBlock::SPAN) {
                return ControlFlow::Break(());
            }
            let cost = call.cost.map_or(0, nanos);
            let covering = unsettled
                .iter_mut()
                .filter(|of| call.began_at() >= of.begin && of.place.covers_group(&call.group));
            let gone = covering.flat_map(|of| &mut of.gone);
            for gone in gone.filter(|gone| !gone.is_added_up && gone.made(&call)) {
                gone.spent = gone.spent.saturating_add(cost);
            }
            ControlFlow::Continue(())
        })
        .await
    }
}

/// A budget of which processes hold something that are gone.
struct Unsettled<'a> {
    budget: &'a StoredBudget,
    place: BudgetPlace,
    key: EntityKey<BudgetAccount>,
    stored: Stored<StoredBudget>,
    found: Stored<BudgetAccount>,
    /// The begin of its current period, in milliseconds.
    begin: i64,
    gone: Vec<HolderGone>,
}

/// What a sum of calls is of: a budget, the begin of its period, a process that is gone, and its last report.
type SumOf = (Uuid, i64, ProcessTag, i64);

/// A process that is gone, and what it held of a budget.
struct HolderGone {
    sum_of: SumOf,
    held: u64,
    /// What its calls have cost since.
    spent: u64,
    /// Whether that is known from an earlier round.
    is_added_up: bool,
}

impl HolderGone {
    fn of(sum_of: SumOf, holder: &SliceHolder, added_up: Option<u64>) -> Self {
        Self {
            sum_of,
            held: holder.held,
            spent: added_up.unwrap_or_default(),
            is_added_up: added_up.is_some(),
        }
    }

    fn process(&self) -> ProcessTag {
        self.sum_of.2
    }

    fn reported_at(&self) -> i64 {
        self.sum_of.3
    }

    /// Whether it has made this call, and did not report it.
    fn made(&self, call: &StoredCall) -> bool {
        let after = call.ended_at.saturating_sub(self.reported_at());
        call.process == self.process() && (1..=AFTER_REPORT).contains(&after)
    }
}
