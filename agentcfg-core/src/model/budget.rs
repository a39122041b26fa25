//! Budgets: limits of what model calls may cost.

use uuid::Uuid;

use super::Timestamp;
use super::price::Usd;
use super::word_enum::word_enum;
use crate::body::{body, record};
use crate::rules;

word_enum! {
    /// Which calls a budget covers.
    BudgetScope {
        /// All calls of the workspace.
        Workspace = "workspace",
        /// The calls of one agent.
        Agent = "agent",
        /// The calls with one API key.
        Key = "key",
        /// The calls of one user.
        User = "user",
    } or Unknown
}

word_enum! {
    /// After which time a budget begins again.
    BudgetPeriod {
        /// Each day in UTC.
        Day = "day",
        /// Each month in UTC.
        Month = "month",
        /// Never.
        Total = "total",
    } or Unknown
}

word_enum! {
    /// What happens to calls that a budget does not pay for.
    BudgetAction {
        /// They are refused.
        Refuse = "refuse",
        /// They are made; the events of the thresholds say so.
        Warn = "warn",
    } or Unknown
}

record! {
    /// A limit of what model calls may cost in a period, and what is spent of it.
    ///
    /// ```
    /// use agentcfg_core::model::Budget;
    /// fn line(budget: &Budget) -> String {
    ///     format!("{} of {} USD this {}", budget.spent_usd, budget.limit_usd, budget.period)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    Budget {
        /// Identifier of the budget.
        id: required Uuid as rules::RecordId,
        /// Which calls it covers.
        scope: required BudgetScope,
        /// The agent, the API key or the user; null for the whole workspace.
        scope_id: nullable String,
        /// After which time it begins again.
        period: required BudgetPeriod,
        /// What the calls of a period may cost, in USD.
        limit_usd: required Usd,
        /// What happens to calls that it does not pay for.
        action: required BudgetAction,
        /// What the calls of this period have cost.
        spent_usd: required Usd,
        /// What calls in flight may cost at most.
        reserved_usd: required Usd,
        /// What servers had taken of it that ended without giving it back. It counts as spent until the period ends, or it is settled.
        unsettled_usd: required Usd,
        /// When it begins again; null for a total.
        resets_at: nullable Timestamp,
        /// Creation time.
        created_at: required Timestamp,
        /// Time of the latest change of limit or action.
        updated_at: required Timestamp,
    }
    examples: [{
        "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "scope": "agent",
        "scope_id": "release-writer",
        "period": "month",
        "limit_usd": "250",
        "action": "refuse",
        "spent_usd": "118.0416",
        "reserved_usd": "0.0312",
        "unsettled_usd": "0",
        "resets_at": "2026-12-01T00:00:00.000Z",
        "created_at": "2026-11-20T09:30:00.123Z",
        "updated_at": "2026-11-20T09:30:00.123Z",
    }],
}

body! {
    /// The limit of a budget.
    ///
    /// ```
    /// use agentcfg_core::model::{BudgetAction, BudgetLimit};
    /// let limit = BudgetLimit::new("250".parse()?).action(BudgetAction::Warn);
    /// assert_eq!(serde_json::to_string(&limit)?, r#"{"limit_usd":"250","action":"warn"}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create BudgetLimit {
        /// What the calls of a period may cost, in USD: a decimal text or a number with at most 9 decimals, up to 1,000,000,000.
        limit_usd: required Usd as rules::UsdLimit,
        /// What happens to calls that it does not pay for; left out, they are refused.
        action: nullable BudgetAction,
    }
    read_only: &[
        "id", "scope", "scope_id", "period", "spent_usd", "reserved_usd", "unsettled_usd", "resets_at", "created_at", "updated_at",
    ],
    examples: [{ "limit_usd": "250" }, { "limit_usd": 12.5, "action": "warn" }],
}

impl BudgetLimit {
    /// A limit beyond which calls are refused.
    ///
    /// ```
    /// use agentcfg_core::model::{BudgetLimit, Usd};
    /// assert_eq!(BudgetLimit::new(Usd::ZERO).action, None);
    /// ```
    pub fn new(limit_usd: Usd) -> Self {
        Self {
            limit_usd,
            action: None,
        }
    }
}
