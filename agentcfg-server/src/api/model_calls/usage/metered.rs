//! The meter of a call on its way: it is ended once, however the call ends.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use agentcfg_core::AgentCfg;
use agentcfg_core::service::{CallFacts, CallMeter, CostBound, ModelAttempt, ModelCall, Reservation};
use agentcfg_core::{Error, ErrorKind};
use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_ENCODING, HeaderValue};

use super::answer::{AnswerScanner, is_identity};
use super::extra_chunk::ExtraChunk;
use super::output_cap::{ChatCap, OutputMembers};
use super::path::UsagePath;
use super::request::MeteredBody;
use super::traced::CallTrace;
use crate::api::model_calls::relay::BrokenAnswer;
use crate::api::observer::Observer;
use crate::api::request_trace::RequestTrace;
use crate::http::errors::Failure;

/// The status of a call whose caller left before the answer.
const CALLER_LEFT: u16 = 499;

/// A call that was begun. When it is dropped, it has ended: the ledger has it, and the observer of metrics.
pub struct MeteredCall {
    meter: Option<CallMeter>,
    /// The number of the attempt, from 1.
    pub number: usize,
    observer: Option<Arc<dyn Observer>>,
    /// The path, if its answers report usage.
    path: Option<UsagePath>,
    asks_for_usage: bool,
    sent: u64,
    received: u64,
    status: u16,
    /// Whether the provider may bill the call, so that what is not reported is estimated: it may have got the request,
    /// and has not refused it.
    pub may_be_bought: bool,
    scanner: Option<AnswerScanner>,
    /// Whether the answer has not come to its end.
    is_cut: bool,
    /// The most output tokens that are bought after the answer.
    output_after: Option<u64>,
    /// The span of the attempt, if it is traced.
    trace: Option<Box<CallTrace>>,
}

/// What the ledger has to know of a call before its attempts.
pub struct Metering<'a> {
    /// The core.
    pub service: &'a AgentCfg,
    /// The identifier of the request.
    pub request_id: &'a str,
    /// Observes the end of each attempt.
    pub observer: Option<&'a Arc<dyn Observer>>,
    /// Where the request is in a trace, if it is traced.
    pub trace: Option<&'a RequestTrace>,
}

impl fmt::Debug for Metering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metering")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

impl Metering<'_> {
    /// Reserves what an attempt can cost of the budgets that cover the call, and puts the cap of its output into the
    /// body. The first of the models is asked, because another one has failed or not, and the others may be asked after
    /// it.
    ///
    /// # Errors
    ///
    /// 402 where a budget does not pay for the attempt, and 400 where the body does not say what it can cost.
    pub async fn reserve(
        &self,
        call: &ModelCall,
        attempt: &ModelAttempt,
        (models, is_fallback): (&[&str], bool),
        sent: &mut MeteredBody,
    ) -> Result<Option<Reservation>, Failure> {
        let Some(path) = sent.path.filter(|_| call.may_have_budgets()) else {
            return Ok(None);
        };
        let members = match OutputMembers::read(path, ChatCap::of(attempt), &sent.body) {
            Ok(members) => members,
            // What no budget covers may cost what it wants.
            Err(_) if !self.service.is_budgeted(call).await? => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        let body = &sent.body;
        let input_tokens = |cap| (members.length_with(body, cap) as u64).div_ceil(3);
        let bound = CostBound::new(models, &input_tokens)
            .output_cap(members.cap())
            .answers(members.answers)
            .is_fallback(is_fallback);
        let reservation = self.service.reserve(call, &bound).await.map_err(refused)?;
        if let Some(cap) = reservation.as_ref().and_then(Reservation::output_cap) {
            sent.body = members.with_cap(std::mem::take(&mut sent.body), cap);
        }
        Ok(reservation)
    }

    /// Begins an attempt that is sent now: the model, the path at the provider, and the number of the attempt.
    pub fn begin(
        &self,
        call: &ModelCall,
        attempt: &ModelAttempt,
        (model, path, number): (Option<&str>, &str, usize),
        sent: &MeteredBody,
        reservation: Option<Reservation>,
    ) -> MeteredCall {
        let facts = CallFacts::default()
            .model(model.map(str::to_owned))
            .path(path)
            .is_stream(sent.is_stream)
            .attempt(u32::try_from(number).unwrap_or(u32::MAX))
            .request_id(self.request_id);
        let trace = || {
            let trace = CallTrace::begin(self.trace?, &**self.observer?, call, attempt)?;
            Some(Box::new(trace.of((path, sent.path), number, self.request_id)))
        };
        MeteredCall {
            meter: Some(self.service.meter(call, attempt, facts).reserved(reservation)),
            number,
            observer: self.observer.map(Arc::clone),
            path: sent.path,
            asks_for_usage: sent.asks_for_usage,
            sent: sent.body.len() as u64,
            received: 0,
            status: CALLER_LEFT,
            may_be_bought: false,
            scanner: None,
            is_cut: true,
            output_after: sent.output_after_the_answer(),
            trace: trace(),
        }
    }
}

/// The refusal of a call that was not sent. A retry does not help while a budget is used up.
fn refused(error: Error) -> Failure {
    let is_final = error.kind() == ErrorKind::BudgetExceeded;
    let failure = Failure::from(error);
    match is_final {
        true => failure.should_retry(false),
        false => failure,
    }
}

impl MeteredCall {
    /// The header field that continues the trace at the provider, if the call is traced.
    pub fn traceparent(&self) -> Option<HeaderValue> {
        self.trace.as_ref().and_then(|trace| trace.traceparent())
    }

    /// The call has failed in this way, and is answered with this status.
    pub fn failed(mut self, status: u16, kind: &'static str) {
        self.status = status;
        if let Some(trace) = &mut self.trace {
            trace.error = Some(kind);
        }
    }

    /// The head of the answer has arrived. The call ends with its body.
    pub fn answered<B: Body>(mut self, answer: Response<B>) -> Response<Measured<B>> {
        self.status = answer.status().as_u16();
        // The provider charges nothing for a refusal.
        self.may_be_bought = self.status < 400;
        if let Some(meter) = self.meter.as_mut().filter(|_| !self.may_be_bought) {
            meter.costs_nothing();
        }
        if let Some(path) = self.path.filter(|_| self.may_be_bought) {
            self.scanner = Some(AnswerScanner::new(path, answer.headers(), self.trace.is_some()));
        }
        let is_stream = self.scanner.as_ref().is_some_and(|scanner| scanner.is_stream);
        if let Some(meter) = &mut self.meter {
            meter.answered(is_stream);
        }
        if let Some(trace) = &mut self.trace {
            trace.answer_began(answer.body().is_end_stream());
        }
        // A provider may compress although it was asked not to: its events are not seen then.
        let is_plain = answer.headers().get(CONTENT_ENCODING).is_none_or(is_identity);
        let filter = (self.asks_for_usage && is_stream && is_plain).then(ExtraChunk::default);
        answer.map(|body| Measured {
            body,
            filter,
            has_ended: false,
            broken: None,
            call: Some(self),
        })
    }
}

impl Drop for MeteredCall {
    fn drop(&mut self) {
        let Some(meter) = self.meter.take() else { return };
        let mut used = match (&self.scanner, self.path) {
            (Some(scanner), _) if self.is_cut => Some(scanner.usage_of_cut(self.sent, self.received)),
            (Some(scanner), _) => Some(scanner.usage(self.sent, self.received)),
            (None, Some(path)) if self.may_be_bought => Some(path.estimate(self.sent, self.received)),
            _ => None,
        };
        let is_estimated = used.is_some_and(|(_, is_estimated)| is_estimated);
        if let (Some((usage, true)), Some(cap)) = (&mut used, self.output_after) {
            usage.output = usage.output.max(cap);
        }
        let ended = meter.end(self.status, used.map(|(usage, _)| usage), is_estimated);
        if let Some(observer) = &self.observer {
            observer.model_call_ended(&ended);
            if let Some(trace) = &self.trace {
                let model = self.scanner.as_ref().and_then(AnswerScanner::model);
                observer.model_call_traced(&trace.ended(&ended, model, used.map(|_| is_estimated)));
            }
        }
    }
}

/// The body of an answer whose usage is measured while it passes.
pub struct Measured<B> {
    body: B,
    /// Takes out what the caller did not ask for.
    filter: Option<ExtraChunk>,
    /// Whether the body has ended. The filter may hold some of it still.
    has_ended: bool,
    /// How the body broke off. The caller gets what came before.
    broken: Option<BrokenAnswer>,
    call: Option<MeteredCall>,
}

impl<B> Measured<B> {
    /// The answer has ended, or broken off in this way.
    fn end(&mut self, error: Option<&'static str>) {
        let Some(mut call) = self.call.take() else { return };
        call.is_cut = error.is_some();
        if let Some(trace) = &mut call.trace {
            (trace.is_whole, trace.error) = (true, error);
        }
    }
}

impl<B: Body<Data = Bytes, Error = BrokenAnswer> + Unpin> Body for Measured<B> {
    type Data = Bytes;
    type Error = BrokenAnswer;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenAnswer>>> {
        loop {
            if self.has_ended {
                let rest = self.filter.take().map(|mut filter| filter.rest());
                let rest = rest.filter(|rest| !rest.is_empty()).map(|rest| Ok(Frame::data(rest)));
                return Poll::Ready(rest.or_else(|| self.broken.take().map(Err)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => {
                    self.has_ended = true;
                    self.end(None);
                }
                Some(Err(error)) => {
                    self.has_ended = true;
                    self.end(Some(error.kind()));
                    self.broken = Some(error);
                }
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let Self { body, call, .. } = &mut *self;
                    if let Some(call) = call {
                        call.received += data.len() as u64;
                        call.is_cut = !body.is_end_stream();
                        if let Some(trace) = &mut call.trace {
                            trace.is_whole = !call.is_cut;
                        }
                        if let Some(scanner) = &mut call.scanner {
                            scanner.read(&data);
                        }
                    }
                    let passed = match &mut self.filter {
                        None => data,
                        Some(filter) => filter.pass(&data),
                    };
                    if !passed.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(passed))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.filter {
            None => self.broken.is_none() && self.body.is_end_stream(),
            Some(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.filter {
            None => self.body.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}
