//! The attempts of a call: when a provider fails before it answers, the agent's next fallback model is tried.

use agentcfg_core::service::{ModelAttempt, ModelCall};
use hyper::Response;

use super::answer_fields::named;
use super::error::CallError;
use super::relay::Relay;
use super::usage::{Measured, MeteredBody, MeteredCall, UsagePath};
use super::{ModelCalls, Sent};
use crate::http::Disconnect;
use crate::http::errors::Failure;
use crate::http::response::SHOULD_RETRY;

/// An attempt that is ready to be sent.
struct Prepared<'a> {
    attempt: &'a ModelAttempt,
    model: Option<&'a str>,
    body: MeteredBody,
    metered: MeteredCall,
}

impl ModelCalls {
    /// Sends a call to its first provider, and where that fails to the fallbacks in turn. The first answer that is no
    /// failure is returned as soon as its head has arrived, else the last failure as it came.
    ///
    /// Nothing of an answer is passed on before it is chosen, so that two are never mixed.
    ///
    /// # Errors
    ///
    /// When the last provider that was asked cannot be reached, breaks off or does not answer in time, the caller
    /// leaves, or a budget does not pay for the call. A fallback that the budgets do not pay for is passed over.
    pub(crate) async fn send(
        &self,
        call: &ModelCall,
        sent: &Sent<'_>,
        disconnect: &Disconnect,
    ) -> Result<Response<Measured<Relay>>, Failure> {
        let attempts: Vec<_> = call.attempts().collect();
        let mut maybe_bought = false;
        let mut next = prepared(call, sent, &attempts, 1).await.map(Some)?;
        let mut later = attempts.get(1..).unwrap_or_default();
        let mut tried = 0;
        while let Some(current) = next {
            tried += 1;
            let Prepared {
                attempt,
                model,
                body,
                mut metered,
            } = current;
            let result = self.send_to(attempt, sent, body, &mut metered, disconnect).await;
            let is_failure = is_failure(&result);
            let failed = is_failure.then(|| text(&result));
            let is_bought = result.is_err() && metered.may_be_bought;
            // A failure costs nothing, or an estimate: what it had reserved is free for the next attempt.
            let outcome = match result {
                Ok(answer) => Ok(metered.answered(answer)),
                Err(error) => {
                    let kind = error.kind();
                    // An SDK would wait as long again after a timeout, whatever was sent.
                    let is_retried = !is_bought && !matches!(error, CallError::TimedOut(..));
                    let failure = match error.is_of_provider() {
                        true => Failure::from(error).should_retry(is_retried),
                        false => Failure::from(error),
                    };
                    metered.failed(failure.status.as_u16(), kind);
                    Err(failure)
                }
            };
            next = None;
            if let Some(failed) = failed {
                let provider = attempt.provider;
                tracing::warn!(%provider, model = model.unwrap_or_default(), failed, "a model call failed");
                while next.is_none() && tried < ModelCall::MAX_ATTEMPTS && !later.is_empty() {
                    let refused = |refusal: &Failure| {
                        tracing::warn!(refusal = refusal.message, "a fallback model is passed over")
                    };
                    next = prepared(call, sent, later, tried + 1).await.inspect_err(refused).ok();
                    later = &later[1..];
                }
            }
            if next.is_some() {
                maybe_bought |= is_bought;
                continue;
            }
            return match outcome {
                Ok(mut answer) => {
                    let fields = answer.headers_mut();
                    if maybe_bought {
                        // The provider knows nothing of the attempts before, one of which may have been bought.
                        fields.remove(SHOULD_RETRY);
                    }
                    fields.extend(named(model, tried));
                    Ok(answer)
                }
                Err(failure) => {
                    let failure = failure.with_fields(named(model, tried));
                    Err(match maybe_bought {
                        true => failure.should_retry(false),
                        false => failure,
                    })
                }
            };
        }
        Err(Failure::internal("a call without a provider"))
    }
}

/// Fills in the body of the first of these attempts, and reserves what it can cost of the budgets that cover the call.
/// `number` counts the attempts that are sent, from 1.
async fn prepared<'a>(
    call: &'a ModelCall,
    sent: &'a Sent<'_>,
    attempts: &[&'a ModelAttempt],
    number: usize,
) -> Result<Prepared<'a>, Failure> {
    let Some((attempt, later)) = attempts.split_first() else {
        return Err(Failure::internal("an attempt without a provider"));
    };
    let persona = call.persona_prompt.as_deref();
    let body = sent.draft.fill(attempt.model.as_deref(), persona, &call.model_settings);
    let model = attempt.model.as_deref().or_else(|| sent.draft.requested_model());
    let body = MeteredBody::read(UsagePath::of(&sent.method, sent.path), body);
    let mut body = body.map_err(|failure| failure.with_fields(named(model, 0)))?;
    let mut models: Vec<_> = model.into_iter().collect();
    models.extend(later.iter().filter_map(|attempt| attempt.model.as_deref()));
    let reserved = sent
        .metering
        .reserve(call, attempt, (&models, number > 1), &mut body)
        .await;
    let reservation = reserved.map_err(|failure| failure.with_fields(named(model, 0)))?;
    let metered = sent
        .metering
        .begin(call, attempt, (model, sent.path, number), &body, reservation);
    Ok(Prepared {
        attempt,
        model,
        body,
        metered,
    })
}

/// Whether another model may answer in place of this one: the provider cannot be reached, breaks off, is silent, or
/// refuses for a reason that passes.
fn is_failure(result: &Result<Response<Relay>, CallError>) -> bool {
    match result {
        Ok(answer) => matches!(answer.status().as_u16(), 408 | 429 | 500..),
        Err(error) => error.is_of_provider(),
    }
}

/// How an attempt has failed, for the log.
fn text(result: &Result<Response<Relay>, CallError>) -> String {
    match result {
        Ok(answer) => format!("status {}", answer.status().as_u16()),
        Err(error) => error.to_string(),
    }
}
