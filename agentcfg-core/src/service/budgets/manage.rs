//! Listing, setting and removing budgets.

use std::sync::Arc;

use uuid::Uuid;

use super::cache::{KnownBudget, PeriodSlice};
use super::period;
use super::slice::Wish;
use super::spent_before::SpentBefore;
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Budget, BudgetAction, BudgetLimit, BudgetPeriod, BudgetScope, Permission, Success, TargetType, Timestamp,
    Usd, UserId, WorkspaceId,
};
use crate::service::change::Change;
use crate::service::records::{self, BudgetAccount, BudgetPlace, BudgetsHead, ProcessTag, Stored, StoredBudget};
use crate::service::retry::{Attempt, Rounds};
use crate::service::{AgentCfg, Caller};
use crate::validate::{IntoValid, Invalid};

/// The most budgets of a workspace.
const MOST: u64 = 500;
/// How often accounts are read until they agree with what this process has reported. One that has no report of this
/// process any more agrees never.
const READS: usize = 4;
/// More accounts than a budget has.
const ACCOUNTS: usize = 64;

impl BudgetPlace {
    /// The place of a budget that a request names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] where `scope_id` is missing, or given for the whole workspace.
    fn of(scope: BudgetScope, scope_id: Option<&UserId>, period: BudgetPeriod) -> Result<Self, Error> {
        let rule = match (scope, scope_id) {
            (BudgetScope::Workspace, Some(_)) => "must not be given with the scope workspace",
            (BudgetScope::Workspace, None) | (_, Some(_)) => {
                return Ok(Self {
                    scope,
                    scope_id: scope_id.map(ToString::to_string),
                    period,
                });
            }
            (_, None) => "is required unless the scope is workspace",
        };
        Err(Invalid::new("scope_id", rule).into())
    }
}

impl AgentCfg {
    /// The budgets of a workspace with what is spent of each in its current period, by scope, what they cover, and
    /// period.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `analytics:read`, and for an API key that is limited to some agents.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::{BudgetLimit, BudgetPeriod, BudgetScope};
    /// let limit = BudgetLimit::new("250".parse()?);
    /// service.set_budget(&ada, studio, BudgetScope::Workspace, None, BudgetPeriod::Month, limit).await?;
    /// let budgets = service.list_budgets(&ada, studio).await?;
    /// assert_eq!(budgets[0].spent_usd.to_string(), "0");
    /// # Ok(()) }) }
    /// ```
    pub async fn list_budgets(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<Budget>, Error> {
        let access = self.access(caller, workspace, Permission::AnalyticsRead).await?;
        access.limits().require_whole_workspace("budgets")?;
        self.shown_budgets(access.workspace()).await
    }

    /// The budgets of a workspace as the API shows them.
    pub(in crate::service) async fn shown_budgets(&self, workspace: WorkspaceId) -> Result<Vec<Budget>, Error> {
        let known = self.read_budgets(workspace).await?;
        let mut shown = self.with_accounts(workspace, known.budgets.iter()).await?;
        shown.sort_by(|a, b| (a.scope, &a.scope_id, a.period).cmp(&(b.scope, &b.scope_id, b.period)));
        Ok(shown)
    }

    /// Budgets with their accounts of the current periods.
    async fn with_accounts(
        &self,
        workspace: WorkspaceId,
        budgets: impl Iterator<Item = &Arc<KnownBudget>> + Clone,
    ) -> Result<Vec<Budget>, Error> {
        let (now, own) = (self.now(), self.process_tag()?);
        let mut left = READS;
        loop {
            left -= 1;
            let keys = budgets
                .clone()
                .map(|budget| account_key(workspace, &budget.stored, now));
            let accounts = self.read(keys.collect::<Vec<_>>()).await?;
            let shown = budgets.clone().zip(accounts).map(|(budget, account)| {
                let account = account.map(|account| account.value).unwrap_or_default();
                // What this process has not reported yet is known here.
                let slice = budget.at(now);
                let slice = slice.lock();
                let unreported = slice
                    .not_in(&account, own)
                    .or_else(|| (left == 0).then(|| slice.unreported()))?;
                Some(self.shown(budget, &account, (unreported, slice.open()), own, now))
            });
            if let Some(shown) = shown.collect() {
                return Ok(shown);
            }
        }
    }

    fn shown(
        &self,
        budget: &KnownBudget,
        account: &BudgetAccount,
        (unreported, open): (u64, u64),
        own: ProcessTag,
        now: Timestamp,
    ) -> Budget {
        let gone = self.gone();
        let usd = |nanos: u64| Usd::from_nanos(nanos.into());
        let stored = &budget.stored;
        Budget {
            id: stored.id,
            scope: stored.scope,
            scope_id: stored.scope_id.clone(),
            period: stored.period,
            limit_usd: stored.limit_usd,
            action: stored.action,
            spent_usd: usd(account.spent.saturating_add(unreported)),
            reserved_usd: usd(account.open_of_others(own, gone).saturating_add(open)),
            unsettled_usd: usd(account.unsettled(own, gone)),
            resets_at: period::end(stored.period, now),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }

    /// Makes a budget, or changes its limit and action. Calls of all servers are held to it from then on; a
    /// new one counts what its current period has spent already.
    ///
    /// `scope_id` names the agent, the API key or the user, which need not exist; it is `None` for the whole workspace.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a limit or a `scope_id` that breaks a rule, [`ErrorKind::Forbidden`] without
    /// `budgets:manage`, [`ErrorKind::PlanLimit`] where the workspace has 500 budgets.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::{BudgetAction, BudgetLimit, BudgetPeriod, BudgetScope, UserId};
    /// let limit = BudgetLimit::new("2.50".parse()?).action(BudgetAction::Warn);
    /// let writer: UserId = "writer".parse()?;
    /// let budget = service
    ///     .set_budget(&ada, studio, BudgetScope::Agent, Some(&writer), BudgetPeriod::Day, limit)
    ///     .await?;
    /// assert_eq!(budget.limit_usd.to_string(), "2.5");
    /// # Ok(()) }) }
    /// ```
    pub async fn set_budget(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        scope: BudgetScope,
        scope_id: Option<&UserId>,
        period: BudgetPeriod,
        limit: impl IntoValid<BudgetLimit>,
    ) -> Result<Budget, Error> {
        let (limit, place) = (limit.into_valid()?, BudgetPlace::of(scope, scope_id, period)?);
        let workspace = self
            .access(caller, workspace, Permission::BudgetsManage)
            .await?
            .workspace();
        // What has ended here counts in a new budget, and nothing is written here until it is made.
        self.write_usage_of(workspace).await?;
        let mut rounds = Rounds::default();
        let id = loop {
            let before = match self.read(records::budget(workspace, &place)).await? {
                Some(_) => None,
                None => Some(self.spent_before(workspace, &place).await?),
            };
            let turn = self.inner.ledger.turn(workspace);
            let _turn = turn.lock().await;
            let attempt = || self.try_set_budget(caller, workspace, (&place, before.as_ref()), &limit);
            match self.retry_lost_races(attempt).await? {
                Some(id) => break id,
                None => rounds.lost().await?,
            }
        };
        let known = self.read_budgets(workspace).await?;
        if let Some(budget) = known.budgets.iter().find(|budget| budget.stored.id == id) {
            self.note_thresholds(&budget.at(self.now())).await;
        }
        let shown = self.with_accounts(workspace, known.budgets.iter().filter(|budget| budget.stored.id == id));
        shown
            .await?
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::Conflict, "the budget was removed meanwhile"))
    }

    /// Makes the events of the thresholds that a budget has reached, so that a new limit tells of what was spent before
    /// it. Where that fails, the next call makes them.
    async fn note_thresholds(&self, slice: &PeriodSlice) {
        let _turn = slice.turn.lock().await;
        if let Err(error) = self.exchange(slice, Wish::Keep, false).await {
            tracing::warn!(?error, "could not look for thresholds that a budget has reached");
        }
    }

    /// `None` where what was read before has changed.
    async fn try_set_budget(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        (place, before): (&BudgetPlace, Option<&SpentBefore>),
        limit: &BudgetLimit,
    ) -> Result<Attempt<Option<Uuid>>, Error> {
        let access = self.access(caller, workspace, Permission::BudgetsManage).await?;
        let workspace = access.workspace();
        let (key, head_key) = (records::budget(workspace, place), records::budgets_head(workspace));
        let usage = records::usage_writes(workspace).guarded();
        let late = records::late_usage_writes(workspace);
        let (found, head, usage, late) = self.read((key.clone(), head_key.clone(), usage, late)).await?;
        let action = limit.action.unwrap_or(BudgetAction::Refuse);
        if let Some(found) = &found
            && (found.value.limit_usd, found.value.action) == (limit.limit_usd, action)
        {
            return Ok(Attempt::Done(Some(found.value.id)));
        }
        let now = found
            .as_ref()
            .map_or(self.now(), |found| self.after(found.value.updated_at));
        let revision = head.as_ref().map_or(0, |head| head.value.revision);
        let new = StoredBudget {
            made_at: found.as_ref().map_or(revision + 1, |found| found.value.made_at),
            id: match &found {
                Some(found) => found.value.id,
                None => self.new_id(now)?,
            },
            scope: place.scope,
            scope_id: place.scope_id.clone(),
            period: place.period,
            limit_usd: limit.limit_usd,
            action,
            created_at: found.as_ref().map_or(now, |found| found.value.created_at),
            updated_at: now,
        };
        let is_new = found.is_none();
        let count = head.as_ref().map_or(0, |head| head.value.count);
        if is_new && count >= MOST {
            let message = format!("the workspace has {MOST} budgets, and more are not possible");
            return Err(Error::new(ErrorKind::PlanLimit, message));
        }
        let id = new.id;
        let change = Change::new(&access, now, Action::BudgetSet, TargetType::Budget, id.to_string());
        let mut change = change.save(key, found, &new)?;
        change = with_head(change, head_key, head, if is_new { 1 } else { 0 })?;
        if is_new {
            let Some(before) = before else {
                return Ok(Attempt::Done(None));
            };
            let spent = self.spent_with_last_days(workspace, place, before, (late, now));
            let Some(spent) = spent.await? else {
                return Ok(Attempt::Done(None));
            };
            let account = BudgetAccount {
                spent,
                ..BudgetAccount::default()
            };
            // What is written from now on finds the budget, and counts in it.
            change = change
                .check(usage.unchanged)
                .put(account_key(workspace, &new, now), &account)?;
        }
        self.apply(change).await?.attempt(Some(id))
    }

    /// Removes a budget.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `budgets:manage`, [`ErrorKind::NotFound`] where there is none.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::{BudgetLimit, BudgetPeriod, BudgetScope};
    /// let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    /// service.set_budget(&ada, studio, scope, None, period, BudgetLimit::new("1".parse()?)).await?;
    /// service.remove_budget(&ada, studio, scope, None, period).await?;
    /// assert!(service.list_budgets(&ada, studio).await?.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn remove_budget(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        scope: BudgetScope,
        scope_id: Option<&UserId>,
        period: BudgetPeriod,
    ) -> Result<Success, Error> {
        let place = BudgetPlace::of(scope, scope_id, period)?;
        self.retry_lost_races(|| self.try_remove_budget(caller, workspace, &place))
            .await?;
        self.read_budgets(workspace).await?;
        Ok(Success::OK)
    }

    async fn try_remove_budget(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        place: &BudgetPlace,
    ) -> Result<Attempt<()>, Error> {
        let access = self.access(caller, workspace, Permission::BudgetsManage).await?;
        let workspace = access.workspace();
        let (key, head_key) = (records::budget(workspace, place), records::budgets_head(workspace));
        let (found, head) = self.read((key, head_key.clone())).await?;
        let found = found.ok_or_else(|| {
            let (scope, period) = (place.scope, place.period);
            let of = place
                .scope_id
                .as_deref()
                .map(|id| format!(" {id:?}"))
                .unwrap_or_default();
            Error::new(
                ErrorKind::NotFound,
                format!("there is no budget of the {scope}{of} with the period {period}"),
            )
        })?;
        let id = found.value.id;
        let change = Change::new(
            &access,
            self.now(),
            Action::BudgetRemoved,
            TargetType::Budget,
            id.to_string(),
        );
        let mut change = with_head(change.remove(found)?, head_key, head, -1)?;
        // Calls in flight do not write accounts of a budget that is removed.
        // There are those of the last two periods.
        let accounts = self.scan(records::accounts_from(workspace, id).limit(ACCOUNTS)).await?;
        for account in accounts.into_keys() {
            if account.period_of(id).is_none() {
                break;
            }
            change = change.delete(account);
        }
        self.apply(change).await?.attempt(())
    }
}

/// The key of the account of a budget in the period of a moment.
pub(super) fn account_key(
    workspace: WorkspaceId,
    budget: &StoredBudget,
    now: Timestamp,
) -> records::EntityKey<BudgetAccount> {
    records::budget_account(workspace, budget.id, &period::name(budget.period, now))
}

/// Raises the revision of a workspace's budgets with a change of one.
fn with_head<'a>(
    change: Change<'a>,
    key: records::EntityKey<BudgetsHead>,
    found: Option<Stored<BudgetsHead>>,
    more: i64,
) -> Result<Change<'a>, Error> {
    let before = found.as_ref().map(|found| found.value).unwrap_or_default();
    let after = BudgetsHead {
        revision: before.revision + 1,
        count: before.count.saturating_add_signed(more),
    };
    let change = change.check(key.unchanged(found.as_ref()));
    change.put(key, &after)
}
