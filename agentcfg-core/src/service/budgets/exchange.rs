//! Exchanges between the slices of this process and the accounts in the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::cache::PeriodSlice;
use super::slice::{Gone, Limit, Moment, Threshold, Wish};
use crate::error::Error;
use crate::model::{Action, Actor, Change as FieldChange, Changes, TargetType, Usd, WorkspaceId};
use crate::service::access::Access;
use crate::service::change::Change;
use crate::service::for_each::{for_each, round};
use crate::service::records::{self, BudgetAccount, EntityKey, Outcome, StoredBudget, Transaction};
use crate::service::retry::Rounds;
use crate::service::{AgentCfg, Inner};
use crate::store::Check;
use crate::sync::lock;

/// How often slices are reported, and others asked whether they need something.
const TICK: Duration = Duration::from_millis(500);
/// The pause between the attempts of a call that waits for others to give back.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// How many accounts of earlier periods a budget keeps.
const EARLIER_KEPT: usize = 8;
/// The most accounts of one budget that are removed at a time.
const OLD_ACCOUNTS: usize = 64;
/// The most slices that are reported at the same time.
const AT_ONCE: usize = 16;

impl AgentCfg {
    /// Which processes are taken to be gone. On a store that only this process can use, those that have not reported
    /// since it began.
    pub(super) fn gone(&self) -> Gone {
        Gone {
            now: self.now().unix_millis(),
            alone_since: (!self.store().is_shared()).then_some(self.inner.began),
        }
    }

    /// Exchanges what the slice has spent, and what it wishes, with its account. The caller has the turn of the slice.
    /// `None` where the budget is removed. With `asks`, the other processes are asked to give back what they do not
    /// need.
    pub(super) async fn exchange(
        &self,
        slice: &PeriodSlice,
        mut wish: Wish,
        mut asks: bool,
    ) -> Result<Option<Exchanged>, Error> {
        let own = self.process_tag()?;
        let place = records::budget(slice.workspace, &slice.place);
        let key = records::budget_account(slice.workspace, slice.budget, &slice.period);
        let mut rounds = Rounds::default();
        loop {
            let (alive, budget, found) = self
                .read((
                    records::workspace(slice.workspace).encoded(),
                    place.clone(),
                    key.clone(),
                ))
                .await?;
            let budget = budget.filter(|budget| budget.value.id == slice.budget);
            // The budgets of a workspace that is deleted are removed after its log, to which nothing may be added any
            // more.
            let (Some(alive), Some(budget)) = (alive, budget) else {
                slice.lock().forget();
                return Ok(None);
            };
            let unchanged = [alive.unchanged(), budget.unchanged(), key.unchanged(found.as_ref())];
            let before = found.as_ref().map(|found| found.value.clone()).unwrap_or_default();
            let mut account = before.clone();
            if asks {
                account.asked += 1;
            }
            let limit = budget.value.limit();
            let steady = self.inner.clock.steady_millis();
            let was_refused = {
                let mut order = lock(&self.inner.budgets.order);
                let now = order.report(self.now().unix_millis());
                let mut slice = slice.lock();
                slice.exchange(&mut account, own, limit, Moment { now, steady }, wish);
                slice.was_refused()
            };
            let counted = account.spent.saturating_add(account.unsettled(own, self.gone()));
            let threshold = account.next_threshold(limit.nanos, counted, was_refused);
            if account == before && threshold.is_none() {
                slice.lock().not_exchanged();
                return Ok(Some(Exchanged::of(account, limit)));
            }
            if let Some(threshold) = threshold {
                account.notified |= threshold.bit;
            }
            let is_first = found.is_none();
            let put = self.put_account(slice.workspace, &budget.value, unchanged, (&key, &account), threshold);
            match put.await? {
                Outcome::Done(_) => {
                    slice.lock().exchanged(&account, own, steady);
                    if is_first && let Err(error) = self.remove_old_accounts(slice).await {
                        tracing::warn!(?error, "could not remove the accounts of earlier periods of a budget");
                    }
                }
                Outcome::Raced | Outcome::Limit => {
                    slice.lock().not_exchanged();
                    rounds.lost().await?;
                    continue;
                }
            }
            if threshold.is_none() {
                return Ok(Some(Exchanged::of(account, limit)));
            }
            // Another threshold may be reached too.
            (wish, asks) = (Wish::Keep, false);
        }
    }

    /// Removes the accounts of a budget that are older than the last ones before the period of this slice. Some are
    /// kept, because calls in flight may have begun in the period before, and because this clock may be ahead. Those of
    /// later periods stay: another clock may be ahead.
    async fn remove_old_accounts(&self, slice: &PeriodSlice) -> Result<(), Error> {
        let accounts = records::accounts_from(slice.workspace, slice.budget).limit(OLD_ACCOUNTS);
        let mut accounts: Vec<_> = self.scan(accounts).await?.into_keys().collect();
        // The names of periods grow with the time.
        let is_earlier = |period: &str| period < slice.period.as_str();
        accounts.retain(|account| account.period_of(slice.budget).is_some_and(is_earlier));
        accounts.truncate(accounts.len().saturating_sub(EARLIER_KEPT));
        if accounts.is_empty() {
            return Ok(());
        }
        let transaction = accounts.into_iter().fold(Transaction::default(), Transaction::delete);
        self.commit(transaction).await.map(drop)
    }

    /// Commits an account, with the event of a threshold.
    async fn put_account(
        &self,
        workspace: WorkspaceId,
        stored: &StoredBudget,
        [alive, budget, unchanged]: [Check; 3],
        (key, account): (&EntityKey<BudgetAccount>, &BudgetAccount),
        threshold: Option<Threshold>,
    ) -> Result<Outcome, Error> {
        let Some(threshold) = threshold else {
            let transaction = Transaction::default()
                .check_all([alive, budget, unchanged])
                .put(key.clone(), account)?;
            return self.commit(transaction).await;
        };
        let access = Access::without_membership(workspace, Actor::system("budgets"), budget);
        let id = stored.id.to_string();
        let field = |name: &str, to: serde_json::Value| {
            let from = serde_json::Value::Null;
            (name.to_owned(), FieldChange { from, to })
        };
        let changes = Changes::from([
            field("threshold", json!(threshold.percent)),
            field("scope", json!(stored.scope)),
            field("scope_id", json!(stored.scope_id)),
            field("period", json!(stored.period)),
            field("limit_usd", json!(stored.limit_usd)),
            field("spent_usd", json!(Usd::from_nanos(account.spent.into()))),
        ]);
        let (action, target) = (Action::BudgetThresholdReached, TargetType::Budget);
        let change = Change::new(&access, self.now(), action, target, id)
            .audit_changes(&changes)?
            .check(alive)
            .check(unchanged)
            .put(key.clone(), account)?;
        self.apply(change).await
    }

    /// Starts the task that reports slices, once.
    pub(super) fn keep_up_budgets(&self) {
        let budgets = &self.inner.budgets;
        budgets.upkeep.get_or_init(|| {
            // Where there is no runtime, only `flush` reports.
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(keep_up(Arc::downgrade(&self.inner), Arc::clone(&budgets.wake)));
            }
        });
    }

    /// Reports what the slices of this process have spent, and gives back what is not needed, or everything that no
    /// call has reserved.
    ///
    /// # Errors
    ///
    /// When storage fails, for the first slice that was not reported.
    pub(in crate::service) async fn report_budgets(&self, wish: BudgetReport) -> Result<(), Error> {
        let mut slices = self.inner.budgets.slices();
        slices.retain(|slice| !slice.lock().is_empty());
        for_each(slices, AT_ONCE, |slice| {
            let service = self.clone();
            async move { service.report(&slice, wish).await }
        })
        .await
    }

    async fn report(&self, slice: &PeriodSlice, report: BudgetReport) -> Result<(), Error> {
        let wish = match report {
            BudgetReport::GiveBack => Wish::GiveBack,
            BudgetReport::Due => {
                let Ok(_turn) = slice.turn.try_lock() else {
                    // A call exchanges it now.
                    return Ok(());
                };
                let steady = self.inner.clock.steady_millis();
                let is_due = slice.lock().is_due(steady) || self.is_asked(slice).await?;
                if is_due {
                    self.exchange(slice, Wish::Report, false).await?;
                }
                return Ok(());
            }
        };
        let _turn = slice.turn.lock().await;
        self.exchange(slice, wish, false).await.map(drop)
    }

    /// Whether another process has asked to give back since this one has answered.
    async fn is_asked(&self, slice: &PeriodSlice) -> Result<bool, Error> {
        let key = records::budget_account(slice.workspace, slice.budget, &slice.period);
        let found = self.read(key).await?;
        Ok(found.is_some_and(|found| slice.lock().is_asked(&found.value)))
    }
}

/// An account after an exchange.
pub(super) struct Exchanged {
    pub(super) account: BudgetAccount,
    /// What is neither spent nor held.
    pub(super) rest: u64,
}

impl Exchanged {
    fn of(account: BudgetAccount, limit: Limit) -> Self {
        let rest = account.rest(limit);
        Self { account, rest }
    }
}

/// Which slices a process reports, and what it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum BudgetReport {
    /// Those whose report is due.
    Due,
    /// All, and nothing is kept that no call has reserved.
    GiveBack,
}

/// Reports slices several times a second, until the service is dropped or shut down.
async fn keep_up(service: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = wake.notified() => {}
        }
        let Some(inner) = service.upgrade() else { return };
        let service = AgentCfg::of(inner);
        if service.inner.lifetime.check().is_err() {
            return;
        }
        // A slice whose report is held up does not hold up the others: after twenty seconds without a report other
        // servers take this one to be gone.
        if let Some(Err(error)) = round(async move { service.report_budgets(BudgetReport::Due).await }).await {
            tracing::warn!(?error, "could not report what budgets have spent, trying again");
        }
    }
}
