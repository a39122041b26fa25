//! The meter of one model call.

use std::sync::Arc;
use std::time::Duration;

use crate::model::into_field::settable;
use crate::model::{ActorType, Provider, TokenUsage, Usd};
use crate::service::AgentCfg;
use crate::service::budgets::{EndedCost, Reservation};
use crate::service::model_calls::{ModelAttempt, ModelCall};
use crate::service::records::{CallGroup, StoredCall};

settable! {
    /// What is known of a model call before it is sent, besides what [`ModelCall`] says.
    ///
    /// ```
    /// use agentcfg_core::service::CallFacts;
    /// let facts = CallFacts::default().model("gpt-5.5").path("v1/responses").is_stream(true);
    /// assert_eq!(facts.attempt, 1);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    CallFacts {
        /// The model that the provider is asked for.
        model: Option<String>,
        /// The path at the provider.
        path: String,
        /// Whether a stream is asked for.
        is_stream: bool,
        /// Which attempt of the request it is, from 1.
        attempt: u32,
        /// The identifier of the request.
        request_id: String,
    }
}

impl Default for CallFacts {
    fn default() -> Self {
        Self {
            model: None,
            path: String::new(),
            is_stream: false,
            attempt: 1,
            request_id: String::new(),
        }
    }
}

/// Measures one model call, from when it is sent to its end.
///
/// ```
/// use agentcfg_core::model::TokenUsage;
/// use agentcfg_core::service::{CallFacts, ModelCall};
/// # use agentcfg_core::AgentCfg;
/// fn one_call(service: &AgentCfg, call: &ModelCall) {
///     let mut meter = service.meter(call, &call.first, CallFacts::default().model("gpt-5.5").path("v1/responses"));
///     // … the head of the answer arrives, and then all of it.
///     meter.answered(false);
///     let usage = TokenUsage { input: 12, output: 5, ..TokenUsage::default() };
///     let ended = meter.end(200, Some(usage), false);
///     assert_eq!(ended.usage, usage);
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call that is not ended is not counted"]
pub struct CallMeter {
    service: AgentCfg,
    workspace: crate::model::WorkspaceId,
    group: CallGroup,
    path: String,
    is_stream: bool,
    attempt: u32,
    request_id: String,
    reservation: Option<Reservation>,
    /// Readings of the monotonic clock.
    started: i64,
    answered: Option<i64>,
}

/// A model call that has ended, for metrics.
///
/// ```
/// use agentcfg_core::service::EndedCall;
/// fn line(call: &EndedCall) -> String {
///     format!("{} {:?}: {} after {:?}", call.provider, call.model, call.status, call.duration)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedCall {
    /// The provider.
    pub provider: Provider,
    /// The model, where it is known.
    pub model: Option<String>,
    /// Whether the catalogue has the model.
    pub is_listed: bool,
    /// The status of the answer.
    pub status: u16,
    /// The tokens.
    pub usage: TokenUsage,
    /// The cost; `None` where the model has no price.
    pub cost: Option<Usd>,
    /// Time until the answer began, if it did.
    pub first_byte: Option<Duration>,
    /// Time in all.
    pub duration: Duration,
}

impl AgentCfg {
    /// Begins to measure an attempt of a model call that is sent now.
    pub fn meter(&self, call: &ModelCall, attempt: &ModelAttempt, facts: CallFacts) -> CallMeter {
        let id = |kind| (call.actor.kind == kind).then(|| call.actor.id.clone());
        CallMeter {
            service: self.clone(),
            workspace: call.workspace,
            group: CallGroup {
                agent_id: call.agent_id.clone(),
                version: call.version,
                label: call.label.clone(),
                key: id(ActorType::ApiKey),
                user: id(ActorType::User),
                provider: attempt.provider,
                model: facts.model,
                credential: attempt.source,
                status: 0,
            },
            path: facts.path,
            is_stream: facts.is_stream,
            attempt: facts.attempt,
            request_id: facts.request_id,
            reservation: None,
            started: self.inner.clock.steady_millis(),
            answered: None,
        }
    }
}

impl CallMeter {
    /// The call has reserved this of the budgets that cover it. Its end replaces the reservation by the cost.
    pub fn reserved(self, reservation: Option<Reservation>) -> Self {
        Self { reservation, ..self }
    }

    /// The call is refused by the provider and costs nothing: what it has reserved is given back before its end.
    pub fn costs_nothing(&mut self) {
        self.reservation = None;
    }

    /// The head of the provider's answer has arrived. A stream may come that was not asked for.
    pub fn answered(&mut self, is_stream: bool) {
        self.is_stream |= is_stream;
        self.answered = Some(self.service.inner.clock.steady_millis());
    }

    /// The call has ended with this status. `usage` is `None` for one that cost nothing, whatever its model: a refusal
    /// of the provider, or a path that reports no usage. The ledger has the call within a second.
    pub fn end(self, status: u16, usage: Option<TokenUsage>, is_estimated: bool) -> EndedCall {
        let inner = &self.service.inner;
        let millis = |until: i64| u64::try_from(until.saturating_sub(self.started)).unwrap_or_default();
        let catalogue = self.service.catalogue();
        let reserved = self.reservation.as_ref().and_then(Reservation::prices);
        let listed = || self.group.model.as_deref().and_then(|model| catalogue.prices(model));
        let prices = reserved.or_else(listed);
        let cost = match &usage {
            Some(usage) => prices.map(|prices| prices.cost(usage)),
            None => Some(Usd::ZERO),
        };
        // An estimate by the bytes may be many times what the provider can bill: the output cap is in the reservation.
        let most = self
            .reservation
            .as_ref()
            .filter(|_| is_estimated)
            .and_then(Reservation::limit);
        let cost = cost.map(|cost| most.map_or(cost, |most| cost.min(most)));
        let usage = usage.unwrap_or_default();
        let (first_byte_ms, duration_ms) = (self.answered.map(millis), millis(inner.clock.steady_millis()));
        let ended = EndedCall {
            provider: self.group.provider,
            model: self.group.model.clone(),
            is_listed: self
                .group
                .model
                .as_deref()
                .is_some_and(|model| catalogue.has_model(model)),
            status,
            usage,
            cost,
            first_byte: first_byte_ms.map(Duration::from_millis),
            duration: Duration::from_millis(duration_ms),
        };
        let group = Arc::new(CallGroup { status, ..self.group });
        let spent = cost.unwrap_or(Usd::ZERO);
        let call = EndedCost {
            group: &group,
            cost: spent,
            began: inner
                .clock
                .now()
                .plus_millis(-i64::try_from(duration_ms).unwrap_or(i64::MAX)),
        };
        let settled = self.service.settle_call(self.workspace, &call, self.reservation);
        self.service.note_call(
            self.workspace,
            StoredCall {
                ended_at: settled.ended_at,
                group,
                path: self.path,
                stream: self.is_stream,
                attempts: self.attempt,
                estimated: is_estimated,
                tokens: usage.into(),
                cost,
                first_byte_ms,
                duration_ms,
                request_id: self.request_id,
                process: self.service.process_tag().unwrap_or_default(),
            },
            settled.revision,
        );
        ended
    }
}
