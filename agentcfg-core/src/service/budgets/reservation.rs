//! What a model call has reserved of the budgets that cover it.

use std::fmt;
use std::sync::Arc;

use super::cache::{KnownBudget, KnownBudgets, PeriodSlice};
use crate::model::{ModelPrices, Timestamp, Usd, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::records::CallGroup;
use crate::sync::lock;

/// What a model call has reserved of the budgets that cover it, until its end.
///
/// [`CallMeter::reserved`](crate::service::CallMeter::reserved) takes it. Dropped without a meter, it is given back.
///
/// ```
/// use agentcfg_core::service::Reservation;
/// fn cap(reservation: &Reservation) -> String {
///     match reservation.output_cap() {
///         Some(tokens) => format!("at most {tokens} tokens of output"),
///         None => "as many tokens as the call asks for".to_owned(),
///     }
/// }
/// ```
#[must_use = "a reservation that is dropped is given back"]
pub struct Reservation {
    service: AgentCfg,
    parts: Vec<Part>,
    pub(super) output_cap: Option<u64>,
    /// The prices that the amount is made of.
    pub(super) prices: Option<ModelPrices>,
}

/// What is reserved of one budget.
pub(super) struct Part {
    pub(super) slice: Arc<PeriodSlice>,
    pub(super) amount: u64,
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("amount", &self.amount())
            .field("output_cap", &self.output_cap)
            .finish_non_exhaustive()
    }
}

impl Reservation {
    pub(super) fn new(service: AgentCfg) -> Self {
        Self {
            service,
            parts: Vec::new(),
            output_cap: None,
            prices: None,
        }
    }

    /// The greatest number of output tokens of each answer that is paid for; `None` where no budget limits it. The body
    /// of the call must say so to the provider.
    pub fn output_cap(&self) -> Option<u64> {
        self.output_cap
    }

    /// What is reserved: the cost of the call at most.
    pub fn amount(&self) -> Usd {
        self.limit().unwrap_or(Usd::ZERO)
    }

    /// What the call is charged at most where its cost is estimated; `None` where nothing is reserved.
    pub(in crate::service) fn limit(&self) -> Option<Usd> {
        let most = self.parts.iter().map(|part| part.amount).max();
        most.map(|most| Usd::from_nanos(most.into()))
    }

    /// The prices of the model when this was reserved. Its call is charged by them, so that a change of the catalogue
    /// meanwhile makes no call dearer than its reservation.
    pub(in crate::service) fn prices(&self) -> Option<ModelPrices> {
        self.prices
    }

    pub(super) fn push(&mut self, part: Part) {
        self.parts.push(part);
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Gives back what is reserved.
    pub(super) fn give_back(&mut self) {
        for part in std::mem::take(&mut self.parts) {
            self.end(&part, 0);
        }
    }

    /// Gives back what is more than this amount.
    pub(super) fn shrink(&mut self, amount: u64) {
        for part in &mut self.parts {
            part.slice.lock().shrink(part.amount, amount);
            part.amount = part.amount.min(amount);
        }
    }

    /// Replaces what is reserved by the cost.
    pub(in crate::service) fn settle(mut self, cost: Usd) {
        for part in std::mem::take(&mut self.parts) {
            self.end(&part, nanos(cost));
        }
    }

    fn end(&self, part: &Part, cost: u64) {
        if part.slice.lock().settle(part.amount, cost) {
            self.service.inner.budgets.wake.notify_one();
        }
    }

    fn has(&self, budget: &KnownBudget) -> bool {
        self.parts.iter().any(|part| part.slice.budget == budget.stored.id)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl AgentCfg {
    /// Counts a call that ends now in the budgets that cover it: in those that it has reserved of, and in those that
    /// this process knows to be made since.
    pub(in crate::service) fn settle_call(
        &self,
        workspace: WorkspaceId,
        call: &EndedCost<'_>,
        reservation: Option<Reservation>,
    ) -> SettledCall {
        let known = self.inner.budgets.of(workspace);
        // No report is made meanwhile.
        let mut order = lock(&self.inner.budgets.order);
        let ended_at = order.end(self.inner.clock.now().unix_millis());
        if let Some(known) = &known {
            let has_reserved = |budget: &KnownBudget| reservation.as_ref().is_some_and(|parts| parts.has(budget));
            self.charge(known.budgets.iter().filter(|budget| !has_reserved(budget)), call);
        }
        if let Some(reservation) = reservation {
            reservation.settle(call.cost);
        }
        SettledCall {
            ended_at,
            revision: known.map_or(0, |known| known.revision),
        }
    }

    /// Counts a call in the budgets that were made between these revisions: when it was settled, and when it was
    /// written.
    pub(in crate::service) fn settle_since(
        &self,
        known: &KnownBudgets,
        (settled, written): (u64, u64),
        call: &EndedCost<'_>,
    ) {
        let is_between = |made_at: u64| settled < made_at && made_at <= written;
        let made_since = known.budgets.iter().filter(|budget| is_between(budget.stored.made_at));
        self.charge(made_since, call);
    }

    fn charge<'a>(&self, budgets: impl Iterator<Item = &'a Arc<KnownBudget>>, call: &EndedCost<'_>) {
        if call.cost <= Usd::ZERO {
            return;
        }
        for budget in budgets.filter(|budget| budget.place.covers_group(call.group)) {
            budget.at(call.began).lock().charge(nanos(call.cost));
            self.keep_up_budgets();
        }
    }
}

/// A call that was counted in the budgets that cover it.
pub(in crate::service) struct SettledCall {
    /// When it ended, in milliseconds: after each report of what budgets have spent that does not have it.
    pub(in crate::service) ended_at: i64,
    /// The revision of the budgets that it counts in.
    pub(in crate::service) revision: u64,
}

/// What a call that has ended cost, and who made it.
pub(in crate::service) struct EndedCost<'a> {
    pub(in crate::service) group: &'a CallGroup,
    pub(in crate::service) cost: Usd,
    /// When it began: it belongs to the period of this moment.
    pub(in crate::service) began: Timestamp,
}

pub(super) fn nanos(amount: Usd) -> u64 {
    u64::try_from(amount.nanos()).unwrap_or(u64::MAX)
}
