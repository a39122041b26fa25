//! The records of budgets: what is configured, and the account of each period.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entity::{Entity, EntityKey};
use super::read::Entries;
use crate::model::{BudgetAction, BudgetPeriod, BudgetScope, Timestamp, Usd, WorkspaceId};
use crate::store::Kind;

/// A budget as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct StoredBudget {
    pub(in crate::service) id: Uuid,
    pub(in crate::service) scope: BudgetScope,
    pub(in crate::service) scope_id: Option<String>,
    pub(in crate::service) period: BudgetPeriod,
    pub(in crate::service) limit_usd: Usd,
    pub(in crate::service) action: BudgetAction,
    pub(in crate::service) created_at: Timestamp,
    pub(in crate::service) updated_at: Timestamp,
    /// The revision of the workspace's budgets that made it.
    pub(in crate::service) made_at: u64,
}

impl Entity for StoredBudget {
    const KIND: Kind = Kind::Budget;
}

/// What a budget covers, and its period: what identifies it in its workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::service) struct BudgetPlace {
    pub(in crate::service) scope: BudgetScope,
    /// `None` for the whole workspace.
    pub(in crate::service) scope_id: Option<String>,
    pub(in crate::service) period: BudgetPeriod,
}

impl StoredBudget {
    pub(in crate::service) fn place(&self) -> BudgetPlace {
        BudgetPlace {
            scope: self.scope,
            scope_id: self.scope_id.clone(),
            period: self.period,
        }
    }
}

pub(in crate::service) fn budget(workspace: WorkspaceId, place: &BudgetPlace) -> EntityKey<StoredBudget> {
    let BudgetPlace {
        scope,
        scope_id,
        period,
    } = place;
    EntityKey::in_workspace(
        workspace,
        format!("{scope}/{period}/{}", scope_id.as_deref().unwrap_or_default()),
    )
}

/// All budgets of a workspace.
pub(in crate::service) fn budgets(workspace: WorkspaceId) -> Entries<StoredBudget> {
    // The head is the first record of the kind.
    Entries::in_workspace(workspace).after_item(Some("".into()))
}

/// The revision of a workspace's budgets, which each change of one raises, and their number. Each model call reads it,
/// so that a process notices a change by another one at the next call.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(in crate::service) struct BudgetsHead {
    pub(in crate::service) revision: u64,
    pub(in crate::service) count: u64,
}

impl Entity for BudgetsHead {
    const KIND: Kind = Kind::Budget;
}

pub(in crate::service) fn budgets_head(workspace: WorkspaceId) -> EntityKey<BudgetsHead> {
    EntityKey::in_workspace(workspace, "")
}

/// The account of a budget in one period. What is spent and what all processes hold never exceeds the limit, as far as
/// calls keep to what was reserved for them. Amounts are billionths of a USD.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct BudgetAccount {
    pub(in crate::service) spent: u64,
    /// The thresholds that an event was made for, a bit for each.
    pub(in crate::service) notified: u8,
    /// How often a process has asked the others to give back what they do not need.
    pub(in crate::service) asked: u64,
    /// The processes that hold a slice or have held one not long ago, by their tags.
    pub(in crate::service) holders: BTreeMap<ProcessTag, SliceHolder>,
}

impl Entity for BudgetAccount {
    const KIND: Kind = Kind::BudgetAccount;
}

/// A process that writes usage and holds slices of budgets, for as long as it runs.
pub(in crate::service) type ProcessTag = u32;

/// The slice of a budget that a process holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct SliceHolder {
    /// What it holds, with what it has spent since its last report.
    #[serde(rename = "h")]
    pub(in crate::service) held: u64,
    /// How much of it calls in flight had reserved at the last report.
    #[serde(rename = "o")]
    pub(in crate::service) open: u64,
    /// The number of its last report, by which it finds out whether a commit of unknown outcome was executed.
    #[serde(rename = "n")]
    pub(in crate::service) report: u64,
    /// The time of its last report, in milliseconds of its clock. All calls that had ended by then are in `spent`.
    #[serde(rename = "t")]
    pub(in crate::service) reported_at: i64,
    /// The last request to give back that it has answered.
    #[serde(rename = "a")]
    pub(in crate::service) answered: u64,
    /// What it has spent since that report, where that was settled because it was taken to be gone: it may have been
    /// slow, and must not report it again.
    #[serde(rename = "s", default, skip_serializing_if = "super::usage::is_zero")]
    pub(in crate::service) settled: u64,
}

impl SliceHolder {
    /// Takes away what it holds, because it is taken to be gone. It has spent this much since its last report.
    pub(in crate::service) fn settle(&mut self, spent: u64, now: i64) {
        (self.held, self.open) = (0, 0);
        self.settled = spent;
        // It is kept for a while after this moment.
        self.reported_at = now;
    }
}

/// The account of a budget in the period of this name.
pub(in crate::service) fn budget_account(
    workspace: WorkspaceId,
    budget: Uuid,
    period: &str,
) -> EntityKey<BudgetAccount> {
    EntityKey::in_workspace(workspace, format!("{}/{period}", budget.simple()))
}

/// The accounts of a budget, those of other budgets with greater identifiers after them.
pub(in crate::service) fn accounts_from(workspace: WorkspaceId, budget: Uuid) -> Entries<BudgetAccount> {
    Entries::in_workspace(workspace).after_item(Some(format!("{}/", budget.simple()).into()))
}

impl EntityKey<BudgetAccount> {
    /// The name of the period, if the account is one of this budget.
    pub(in crate::service) fn period_of(&self, budget: Uuid) -> Option<&str> {
        self.item().strip_prefix(&format!("{}/", budget.simple()))
    }
}
