//! What a model call can cost at most, and its reservation.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::cache::{KnownBudget, PeriodSlice};
use super::exchange::{Exchanged, PAUSE};
use super::period;
use super::reservation::{Part, Reservation};
use super::slice::Wish;
use crate::error::{Error, ErrorKind};
use crate::model::into_field::settable;
use crate::model::{ActorType, BudgetPeriod, BudgetScope, ModelPrices, Timestamp};
use crate::service::AgentCfg;
use crate::service::model_calls::ModelCall;
use crate::service::records::StoredBudget;

/// How often a call that waits for other processes to give back reads the account again, every [`PAUSE`].
const PATIENCE: usize = 60;
/// After so many waits for a budget a call holds what it has of the others.
const HOLDS_AFTER: usize = 8;
/// How often a call takes again what another call of its process has reserved first.
const OVERTAKEN: usize = 100;
/// The output tokens of a model whose greatest number is not known, where the call names no cap.
const DEFAULT_OUTPUT_TOKENS: u64 = 4096;
/// A cap is lowered to this many tokens at least.
const LEAST_OUTPUT_TOKENS: u64 = 256;

/// The cap of a call on the tokens of its output.
///
/// ```
/// use agentcfg_core::service::OutputCap;
/// assert_eq!(OutputCap::Given(256), OutputCap::Given(256));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputCap {
    /// The call has no output that costs something, such as one of embeddings.
    NoOutput,
    /// The body names none.
    Absent,
    /// The body names this one.
    Given(u64),
}

/// Counts the tokens of the input of a call, where its body is sent with this cap on its output or as it is.
pub type InputTokens<'a> = dyn Fn(Option<u64>) -> u64 + Send + Sync + 'a;

settable! {
    /// What a model call can cost at most.
    ///
    /// ```
    /// use agentcfg_core::service::{CostBound, OutputCap};
    /// let body = r#"{"model":"gpt-5.5","input":"Hello","max_output_tokens":1000}"#;
    /// let tokens = |_| (body.len() as u64).div_ceil(3);
    /// let bound = CostBound::new(&["gpt-5.5"], &tokens).output_cap(OutputCap::Given(1000));
    /// assert_eq!((bound.input_tokens)(None), 20);
    /// ```
    CostBound<'a> {
        /// The model that is asked, and those that may be asked after it.
        models: &'a [&'a str],
        /// The greatest number of input tokens.
        input_tokens: &'a InputTokens<'a>,
        /// The cap of the call on the tokens of each answer.
        output_cap: OutputCap,
        /// How many answers are asked for.
        answers: u64,
        /// Whether another model is asked because one has failed: where the budgets do not pay for it, it is passed
        /// over, and no call is refused.
        is_fallback: bool,
    }
}

impl<'a> CostBound<'a> {
    /// The bound of a call of one answer, whose body names no cap on its output.
    ///
    /// ```
    /// use agentcfg_core::service::{CostBound, OutputCap};
    /// let bound = CostBound::new(&["gpt-5.5"], &|_| 20);
    /// assert_eq!((bound.answers, bound.output_cap), (1, OutputCap::Absent));
    /// ```
    pub fn new(models: &'a [&'a str], input_tokens: &'a InputTokens<'a>) -> Self {
        Self {
            models,
            input_tokens,
            output_cap: OutputCap::Absent,
            answers: 1,
            is_fallback: false,
        }
    }
}

impl fmt::Debug for CostBound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostBound")
            .field("models", &self.models)
            .field("output_cap", &self.output_cap)
            .field("answers", &self.answers)
            .field("is_fallback", &self.is_fallback)
            .finish_non_exhaustive()
    }
}

/// The cost of a call by the prices of one model.
struct Rate {
    prices: ModelPrices,
    /// Billionths of a USD for a token of input, and for one of output of all answers.
    input: u64,
    output: u64,
    /// The cap of the call, or the greatest number of output tokens of the model.
    cap: u64,
    has_output: bool,
}

impl Rate {
    fn of(prices: ModelPrices, most: Option<u64>, bound: &CostBound<'_>) -> Self {
        let dearest = [Some(prices.input), prices.cached_input, prices.cache_write];
        let dearest = dearest.into_iter().flatten().max().unwrap_or_default();
        let output = u64::from(prices.output.unwrap_or_default().nano_usd_per_token());
        let (cap, has_output) = match bound.output_cap {
            OutputCap::NoOutput => (0, false),
            OutputCap::Absent => (most.unwrap_or(DEFAULT_OUTPUT_TOKENS), true),
            OutputCap::Given(cap) => (cap, true),
        };
        Self {
            prices,
            input: dearest.nano_usd_per_token().into(),
            output: output.saturating_mul(bound.answers.max(1)),
            cap,
            has_output,
        }
    }

    fn cost(&self, bound: &CostBound<'_>, cap: u64) -> u64 {
        let tokens = (bound.input_tokens)(self.has_output.then_some(cap));
        let input = tokens.saturating_mul(self.input);
        input.saturating_add(cap.saturating_mul(self.output))
    }

    /// The greatest cap that this amount pays for.
    fn cap_for(&self, bound: &CostBound<'_>, amount: u64) -> u64 {
        let cap_with = |tokens: u64| {
            let rest = amount.saturating_sub(tokens.saturating_mul(self.input));
            rest.checked_div(self.output).map_or(self.cap, |cap| cap.min(self.cap))
        };
        let tokens = |cap| (bound.input_tokens)(self.has_output.then_some(cap));
        let cap = cap_with(tokens(self.cap));
        // A smaller number may take fewer digits in the body, which leaves more for the output.
        let exact = cap_with(tokens(cap));
        match self.cost(bound, exact) <= amount {
            true => exact,
            false => cap,
        }
    }
}

impl AgentCfg {
    /// Reserves what a model call can cost at most of each budget that covers it. `None` where none does.
    ///
    /// Where the rest of a budget is smaller, the [cap](Reservation::output_cap) is lowered to what it pays for, if
    /// that is at least 256 tokens.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BudgetExceeded`] where a budget does not pay for the call, or refuses calls whose cost is not known
    /// and the model has no price; else when storage fails.
    ///
    /// ```
    /// use agentcfg_core::service::{CostBound, ModelCall, OutputCap};
    /// # use agentcfg_core::{AgentCfg, Error};
    /// async fn may_cost(service: &AgentCfg, call: &ModelCall, body: &str) -> Result<String, Error> {
    ///     let tokens = |_| (body.len() as u64).div_ceil(3);
    ///     let bound = CostBound::new(&["gpt-5.5"], &tokens).output_cap(OutputCap::Given(1000));
    ///     Ok(match service.reserve(call, &bound).await? {
    ///         Some(reservation) => format!("at most {} USD", reservation.amount()),
    ///         None => "no budget covers it".to_owned(),
    ///     })
    /// }
    /// ```
    pub async fn reserve(&self, call: &ModelCall, bound: &CostBound<'_>) -> Result<Option<Reservation>, Error> {
        let covering = self.covering(call).await?;
        if covering.is_empty() {
            return Ok(None);
        }
        self.keep_up_budgets();
        let catalogue = self.catalogue();
        let rate = |model: &&str| {
            let most = catalogue.model(model).and_then(|model| model.max_output_tokens);
            catalogue.prices(model).map(|prices| Rate::of(prices, most, bound))
        };
        let mut reservation = Reservation::new(self.clone());
        let model = bound.models.first();
        let Some(own) = model.and_then(rate).filter(|_| !call.lists_models) else {
            if let Some(budget) = covering.iter().find(|budget| budget.refuses()) {
                let why = unknown_cost(model, call.lists_models);
                return Err(not_known(&budget.stored, &why, self.now()));
            }
            return Ok(Some(reservation));
        };
        reservation.prices = Some(own.prices);
        // The dearest of the models that may be asked. Each of them reserves again before it is asked.
        let dearest = bound
            .models
            .iter()
            .filter_map(rate)
            .map(|rate| rate.cost(bound, rate.cap))
            .max();
        let mut amount = dearest.unwrap_or_default();
        let least = own.cost(bound, own.cap.min(LEAST_OUTPUT_TOKENS)).min(amount);
        let is_noted = !bound.is_fallback;
        let is_capped = self
            .reserve_of_all(&covering, &mut reservation, (&mut amount, least), is_noted)
            .await?;
        if is_capped && own.has_output {
            let cap = own.cap_for(bound, amount);
            reservation.output_cap = Some(cap);
            if cap < own.cap {
                amount = own.cost(bound, cap).min(amount);
            }
        }
        reservation.shrink(amount);
        Ok(Some(reservation))
    }

    /// Reserves an amount of each of these budgets, or what the one with the smallest rest pays for if that is at least
    /// `least`. Returns whether one of them limits the call.
    ///
    /// While one is waited for, nothing is held of the others: a call that is refused at last would refuse others
    /// meanwhile.
    async fn reserve_of_all(
        &self,
        covering: &[Arc<KnownBudget>],
        reservation: &mut Reservation,
        (amount, least): (&mut u64, u64),
        is_noted: bool,
    ) -> Result<bool, Error> {
        let now = self.now();
        let mut open: Vec<_> = covering.iter().map(|budget| (budget, budget.at(now))).collect();
        let mut waits = 0;
        loop {
            let steady = self.inner.clock.steady_millis();
            while let Some((_, slice)) = open.get(reservation.parts().len()) {
                if *amount > 0 && !slice.lock().reserve(*amount, steady) {
                    break;
                }
                let (slice, amount) = (Arc::clone(slice), *amount);
                reservation.push(Part { slice, amount });
            }
            let lacking = reservation.parts().len();
            let Some((budget, slice)) = open.get(lacking) else {
                return Ok(open.iter().any(|(budget, _)| budget.refuses()));
            };
            let holds = waits >= HOLDS_AFTER || open.len() == 1;
            if !holds {
                reservation.give_back();
            }
            let slice = Arc::clone(slice);
            match self.reserve_of(&slice, *amount, least, is_noted).await? {
                None if budget.refuses() => return Err(exceeded(&budget.stored, now)),
                None => drop(open.remove(lacking)),
                Some(granted) => {
                    *amount = granted;
                    reservation.push(Part { slice, amount: granted });
                    // What was taken from the account is with this process now, and is reserved again with all others.
                    if !holds {
                        reservation.give_back();
                    }
                }
            }
            waits += 1;
        }
    }

    /// Reserves an amount of a budget, or the rest if that is at least `least`; `None` where the budget does not pay
    /// for it, which is noted as a refusal or not. A budget that is removed meanwhile pays for everything.
    async fn reserve_of(
        &self,
        slice: &Arc<PeriodSlice>,
        amount: u64,
        least: u64,
        is_noted: bool,
    ) -> Result<Option<u64>, Error> {
        if amount == 0 {
            return Ok(Some(0));
        }
        let steady = || self.inner.clock.steady_millis();
        let (own, mut asked, mut overtaken) = (self.process_tag()?, 0, 0);
        let lack = {
            let mut held = slice.lock();
            if held.reserve(amount, steady()) {
                return Ok(Some(amount));
            }
            held.lacks(amount)
        };
        let _waiting = slice.wait_for(lack);
        loop {
            {
                let _turn = slice.turn.lock().await;
                if slice.lock().reserve(amount, steady()) {
                    return Ok(Some(amount));
                }
                let lack = slice.lock().lacks(amount);
                let take = Wish::Take {
                    least: lack,
                    lack,
                    waiting: slice.lack(),
                };
                let Some(Exchanged { mut account, rest }) = self.exchange(slice, take, false).await? else {
                    return Ok(Some(amount));
                };
                if slice.lock().reserve(amount, steady()) {
                    return Ok(Some(amount));
                }
                // Another call of this process has reserved what was taken for this one.
                if slice.lock().lacks(amount) <= rest && overtaken < OVERTAKEN {
                    overtaken += 1;
                    continue;
                }
                let has_asked = slice.lock().has_asked(steady());
                if account.has_others(own, self.gone()) && !account.awaits_others(own, self.gone()) && !has_asked {
                    slice.lock().note_asking(steady());
                    account = match self.exchange(slice, Wish::Keep, true).await? {
                        Some(exchanged) => exchanged.account,
                        None => return Ok(Some(amount)),
                    };
                }
                let waits = account.awaits_others(own, self.gone()) && asked < PATIENCE;
                if !waits || Handle::try_current().is_err() {
                    let granted = self.reserve_rest(slice, least, amount, rest).await?;
                    if granted.is_none() && is_noted {
                        slice.lock().note_refusal();
                        self.exchange(slice, Wish::Keep, false).await?;
                    }
                    return Ok(granted);
                }
            }
            asked += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reserves what there is, if that is at least `least`. The caller has the turn of the slice, and `rest` was the
    /// rest of the account at its last exchange.
    async fn reserve_rest(
        &self,
        slice: &PeriodSlice,
        least: u64,
        amount: u64,
        rest: u64,
    ) -> Result<Option<u64>, Error> {
        let lacks = |amount| slice.lock().lacks(amount);
        let (least_lack, lack) = (lacks(least), lacks(amount));
        if rest > 0 && least_lack <= rest {
            let take = Wish::Take {
                least: least_lack,
                lack,
                waiting: lack,
            };
            if self.exchange(slice, take, false).await?.is_none() {
                return Ok(Some(amount));
            }
        }
        let steady = self.inner.clock.steady_millis();
        Ok(slice.lock().reserve_rest(least, amount, steady))
    }

    /// Whether a budget covers a model call, so that it must say what it can cost.
    ///
    /// # Errors
    ///
    /// When storage fails.
    ///
    /// ```
    /// use agentcfg_core::service::ModelCall;
    /// # use agentcfg_core::{AgentCfg, Error};
    /// async fn must_say(service: &AgentCfg, call: &ModelCall) -> Result<bool, Error> {
    ///     service.is_budgeted(call).await
    /// }
    /// ```
    pub async fn is_budgeted(&self, call: &ModelCall) -> Result<bool, Error> {
        Ok(!self.covering(call).await?.is_empty())
    }

    /// The budgets that cover a model call.
    async fn covering(&self, call: &ModelCall) -> Result<Vec<Arc<KnownBudget>>, Error> {
        if call.budgets == 0 {
            return Ok(Vec::new());
        }
        let known = match self.inner.budgets.of(call.workspace) {
            Some(known) if known.revision >= call.budgets => known,
            _ => {
                let known = self.read_budgets(call.workspace).await?;
                // Calls that have ended here count in new budgets before the next one reserves.
                self.write_usage_of(call.workspace).await?;
                known
            }
        };
        let id = |kind| (call.actor.kind == kind).then_some(&*call.actor.id);
        let (key, user) = (id(ActorType::ApiKey), id(ActorType::User));
        let covers = |budget: &&Arc<KnownBudget>| budget.place.covers(&call.agent_id, key, user);
        Ok(known.budgets.iter().filter(covers).cloned().collect())
    }
}

/// The words for what a budget covers.
fn of(budget: &StoredBudget) -> String {
    let id = budget.scope_id.as_deref().unwrap_or_default();
    match budget.scope {
        BudgetScope::Agent => format!("the agent {id:?}"),
        BudgetScope::Key => format!("the API key {id:?}"),
        BudgetScope::User => format!("the user {id:?}"),
        BudgetScope::Workspace | BudgetScope::Unknown => "the workspace".to_owned(),
    }
}

/// The limit of a budget and its end, for messages.
fn limit_of(budget: &StoredBudget, now: Timestamp) -> String {
    let limit = budget.limit_usd;
    let (time, end) = match budget.period {
        BudgetPeriod::Day => ("a day", period::end(budget.period, now)),
        BudgetPeriod::Month => ("a month", period::end(budget.period, now)),
        BudgetPeriod::Total | BudgetPeriod::Unknown => ("in total", None),
    };
    match end {
        Some(end) => format!("its limit is {limit} USD {time}, it begins again at {end}"),
        None => format!("its limit is {limit} USD {time}, it has no end"),
    }
}

/// The refusal of a call that a budget does not pay for.
fn exceeded(budget: &StoredBudget, now: Timestamp) -> Error {
    let (budget, limit) = (of(budget), limit_of(budget, now));
    let message = format!("the budget of {budget} does not pay for this call: {limit}");
    Error::new(ErrorKind::BudgetExceeded, message)
}

/// Why the cost of a call is not known.
fn unknown_cost(model: Option<&&str>, lists_models: bool) -> String {
    match model {
        _ if lists_models => "the call has a list of models, and any of them may answer".to_owned(),
        Some(model) => format!("the model {model:?} has no price in the catalogue"),
        None => "the call names no model".to_owned(),
    }
}

/// The refusal of a call whose cost is not known.
fn not_known(budget: &StoredBudget, why: &str, now: Timestamp) -> Error {
    let (budget, limit) = (of(budget), limit_of(budget, now));
    let message = format!("{why}, and the budget of {budget} refuses calls whose cost is not known: {limit}");
    Error::new(ErrorKind::BudgetExceeded, message)
}
