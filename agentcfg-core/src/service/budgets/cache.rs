//! The budgets of a workspace that a process knows, with its slices of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use uuid::Uuid;

use super::end_order::EndOrder;
use super::period;
use super::slice::{Limit, Slice};
use crate::error::Error;
use crate::model::{BudgetAction, BudgetScope, Timestamp, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::records::{self, BudgetPlace, CallGroup, StoredBudget};
use crate::sync::lock;

/// The budgets of a workspace at a revision.
#[derive(Default)]
pub(in crate::service) struct KnownBudgets {
    pub(super) revision: u64,
    pub(super) budgets: Vec<Arc<KnownBudget>>,
}

/// A budget as it was configured at some revision, and the slices of this process.
pub(in crate::service) struct KnownBudget {
    pub(super) workspace: WorkspaceId,
    pub(super) stored: StoredBudget,
    pub(super) place: BudgetPlace,
    /// The slices of each period, which all revisions of the budget share.
    slices: Arc<Slices>,
}

#[derive(Default)]
struct Slices(Mutex<BTreeMap<String, Arc<PeriodSlice>>>);

/// The slice of a budget in one period.
pub(super) struct PeriodSlice {
    pub(super) workspace: WorkspaceId,
    pub(super) place: BudgetPlace,
    pub(super) budget: Uuid,
    pub(super) period: String,
    slice: Mutex<Slice>,
    /// Held during an exchange with the account.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Billionths of a USD that waiting calls still need.
    pub(super) missing: Mutex<u64>,
}

impl PeriodSlice {
    pub(super) fn lock(&self) -> MutexGuard<'_, Slice> {
        lock(&self.slice)
    }

    /// Notes a call that waits and lacks this amount, for as long as the guard lives.
    pub(super) fn wait_for(self: &Arc<Self>, lack: u64) -> Waiting {
        let mut missing = lock(&self.missing);
        *missing = missing.saturating_add(lack);
        drop(missing);
        Waiting {
            slice: Arc::clone(self),
            lack,
        }
    }

    /// Billionths of a USD that waiting calls still need.
    pub(super) fn lack(&self) -> u64 {
        *lock(&self.missing)
    }
}

/// A call that waits for an exchange.
pub(super) struct Waiting {
    slice: Arc<PeriodSlice>,
    lack: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut missing = lock(&self.slice.missing);
        *missing = missing.saturating_sub(self.lack);
    }
}

impl KnownBudget {
    fn of(workspace: WorkspaceId, stored: StoredBudget, before: Option<&Self>) -> Self {
        let slices = match before {
            Some(before) => {
                if before.stored != stored {
                    before.all().iter().for_each(|slice| slice.lock().invalidate());
                }
                Arc::clone(&before.slices)
            }
            None => Arc::default(),
        };
        Self {
            workspace,
            place: stored.place(),
            stored,
            slices,
        }
    }

    pub(super) fn refuses(&self) -> bool {
        self.stored.limit().refuses
    }

    /// The slice of the period that a moment is in.
    pub(super) fn at(&self, now: Timestamp) -> Arc<PeriodSlice> {
        let name = period::name(self.stored.period, now);
        let mut slices = lock(&self.slices.0);
        if let Some(found) = slices.get(&name) {
            return Arc::clone(found);
        }
        // Slices of earlier periods end with their last calls.
        slices.retain(|_, slice| Arc::strong_count(slice) > 1 || !slice.lock().is_empty());
        let new = Arc::new(PeriodSlice {
            workspace: self.workspace,
            place: self.place.clone(),
            budget: self.stored.id,
            period: name.clone(),
            slice: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            missing: Mutex::default(),
        });
        slices.insert(name, Arc::clone(&new));
        new
    }

    /// The slices of all periods.
    pub(super) fn all(&self) -> Vec<Arc<PeriodSlice>> {
        let slices = lock(&self.slices.0);
        slices.values().cloned().collect()
    }
}

impl BudgetPlace {
    /// Whether it covers the calls as an agent by an API key or a user.
    pub(super) fn covers(&self, agent_id: &str, key: Option<&str>, user: Option<&str>) -> bool {
        let is = |found: Option<&str>| found.is_some() && self.scope_id.as_deref() == found;
        match self.scope {
            BudgetScope::Workspace => true,
            BudgetScope::Agent => is(Some(agent_id)),
            BudgetScope::Key => is(key),
            BudgetScope::User => is(user),
            BudgetScope::Unknown => false,
        }
    }

    /// Whether it covers the calls of this group.
    pub(super) fn covers_group(&self, group: &CallGroup) -> bool {
        self.covers(&group.agent_id, group.key.as_deref(), group.user.as_deref())
    }
}

impl StoredBudget {
    pub(super) fn limit(&self) -> Limit {
        Limit {
            nanos: u64::try_from(self.limit_usd.nanos()).unwrap_or(u64::MAX),
            refuses: self.action != BudgetAction::Warn,
        }
    }
}

/// All budgets that a process knows.
#[derive(Default)]
pub(in crate::service) struct Budgets {
    known: Mutex<HashMap<WorkspaceId, Arc<KnownBudgets>>>,
    /// Locked by what ends a call or makes a report, before the slices.
    pub(super) order: Mutex<EndOrder>,
    pub(super) wake: Arc<tokio::sync::Notify>,
    pub(super) upkeep: std::sync::OnceLock<()>,
}

impl Drop for Budgets {
    /// Ends the task that reports.
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl Budgets {
    /// The budgets of a workspace as this process knows them.
    pub(super) fn of(&self, workspace: WorkspaceId) -> Option<Arc<KnownBudgets>> {
        lock(&self.known).get(&workspace).cloned()
    }

    /// The slices of all workspaces.
    pub(super) fn slices(&self) -> Vec<Arc<PeriodSlice>> {
        let known = lock(&self.known);
        let budgets = known.values().flat_map(|known| &known.budgets);
        budgets.flat_map(|budget| budget.all()).collect()
    }
}

impl AgentCfg {
    /// The budgets of a workspace at this revision or a later one.
    pub(in crate::service) async fn budgets_at(
        &self,
        workspace: WorkspaceId,
        revision: u64,
    ) -> Result<Arc<KnownBudgets>, Error> {
        match self.inner.budgets.of(workspace) {
            Some(known) if known.revision >= revision => Ok(known),
            _ => self.read_budgets(workspace).await,
        }
    }

    /// The budgets of a workspace as they are stored now.
    pub(super) async fn read_budgets(&self, workspace: WorkspaceId) -> Result<Arc<KnownBudgets>, Error> {
        let (found, head) = self
            .scan_with(records::budgets(workspace), records::budgets_head(workspace))
            .await?;
        let stored: Vec<StoredBudget> = found.into_values()?;
        let revision = head.map_or(0, |head| head.value.revision);
        let mut all = lock(&self.inner.budgets.known);
        let before = all.entry(workspace).or_default();
        if before.revision < revision {
            let budget = |stored: StoredBudget| {
                let same = before.budgets.iter().find(|known| known.stored.id == stored.id);
                Arc::new(KnownBudget::of(workspace, stored, same.map(|known| &**known)))
            };
            let budgets = stored.into_iter().map(budget).collect();
            *before = Arc::new(KnownBudgets { revision, budgets });
        }
        Ok(Arc::clone(before))
    }
}
