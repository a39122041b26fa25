//! The attempts of a call: when a provider fails before it answers, the agent's next fallback model is tried.

use agentcfg_core::service::{ModelAttempt, ModelCall};
use hyper::Response;

use super::answer_fields::named;
use super::error::CallError;
use super::relay::Relay;
use super::usage::{Measured, MeteredBody, UsagePath};
use super::{ModelCalls, Sent};
use crate::http::Disconnect;
use crate::http::errors::Failure;

impl ModelCalls {
    /// Sends a call to its first provider, and where that fails to the fallbacks in turn. The first answer that is no failure is
    /// returned as soon as its head has arrived, else the last failure as it came.
    ///
    /// Nothing of an answer is passed on before it is chosen, so that two are never mixed.
    ///
    /// # Errors
    ///
    /// When the last provider that was asked cannot be reached, breaks off or does not answer in time, or the caller leaves.
    pub(crate) async fn send(
        &self,
        call: &ModelCall,
        sent: &Sent<'_>,
        disconnect: &Disconnect,
    ) -> Result<Response<Measured<Relay>>, Failure> {
        let mut tried = 0;
        let mut maybe_bought = false;
        let mut attempts = call.attempts();
        let mut next = attempts.next();
        while let Some(attempt) = next {
            tried += 1;
            next = attempts.next();
            let persona = call.persona_prompt.as_deref();
            let body = sent.draft.fill(attempt.model.as_deref(), persona, &call.model_settings);
            let model = attempt.model.as_deref().or_else(|| sent.draft.requested_model());
            let body = MeteredBody::read(UsagePath::of(&sent.method, sent.path), body)?;
            let metered = sent.metering.begin(call, attempt, (model, sent.path, tried), &body);
            let result = self.send_to(attempt, sent, body, disconnect).await;
            let is_last = next.is_none() || !is_failure(&result);
            if !is_last {
                maybe_bought |= matches!(&result, Err(error) if error.may_have_been_bought());
                log(attempt, &result);
            }
            match result {
                // The answer is dropped, and its call has ended.
                Ok(answer) if !is_last => drop(metered.answered(answer)),
                Ok(answer) => {
                    let mut answer = metered.answered(answer);
                    answer.headers_mut().extend(named(model, tried));
                    return Ok(answer);
                }
                Err(error) => {
                    let may_be_bought = error.may_have_been_bought() || matches!(error, CallError::CallerLeft);
                    let failure = Failure::from(error);
                    metered.failed(failure.status.as_u16(), may_be_bought);
                    if !is_last {
                        continue;
                    }
                    let failure = failure.with_fields(named(model, tried));
                    return Err(match maybe_bought {
                        true => failure.should_retry(false),
                        false => failure,
                    });
                }
            }
        }
        Err(Failure::internal("a call without a provider"))
    }
}

/// Whether another model may answer in place of this one: the provider cannot be reached, breaks off, is silent, or refuses for a
/// reason that passes.
fn is_failure(result: &Result<Response<Relay>, CallError>) -> bool {
    match result {
        Ok(answer) => matches!(answer.status().as_u16(), 408 | 429 | 500..),
        Err(error) => error.is_of_provider(),
    }
}

fn log(attempt: &ModelAttempt, result: &Result<Response<Relay>, CallError>) {
    let (provider, model) = (attempt.provider, attempt.model.as_deref().unwrap_or_default());
    match result {
        Ok(answer) => {
            let status = answer.status().as_u16();
            tracing::warn!(%provider, model, status, "a model call failed, the next model is tried");
        }
        Err(error) => tracing::warn!(%provider, model, %error, "a model call failed, the next model is tried"),
    }
}
