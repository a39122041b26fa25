//! The failures of a call, and what each reveals about the processing of the request.

use std::io;

use agentcfg_core::error::causes;
use rustls::CertificateError;

use super::{BoxError, Error, Inner, Kind, ResponseFacts};
use crate::attempt_outcome::AttemptOutcome;
use crate::proxy::ProxyFailure;

impl Error {
    fn new(kind: Kind, outcome: AttemptOutcome, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            outcome,
            message: message.into(),
            maybe_applied: false,
            timed_out: false,
            by_proxy: false,
            is_foreign: false,
            facts: ResponseFacts::default(),
            source: None,
        }))
    }

    fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    fn with_facts(mut self, facts: ResponseFacts) -> Self {
        self.0.facts = facts;
        self
    }

    /// Settings or arguments that do not make a valid request.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Kind::Input, AttemptOutcome::Final, message)
    }

    /// A stream that this client cannot decode.
    pub(crate) fn of_stream(message: impl Into<String>) -> Self {
        Self::new(Kind::Answer, AttemptOutcome::Final, message)
    }

    /// No response within the timeout.
    pub(crate) fn timed_out() -> Self {
        let mut error = Self::new(Kind::Exchange, AttemptOutcome::Unknown, "no answer came in time");
        error.0.timed_out = true;
        error
    }

    /// The transport failed before the head of a response arrived.
    pub(crate) fn transport(error: hyper_util::client::legacy::Error) -> Self {
        let unsent = causes(&error).any(|cause| {
            cause
                .downcast_ref::<hyper::Error>()
                .is_some_and(hyper::Error::is_canceled)
        });
        let timed_out = causes(&error).any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        });
        let by_proxy = causes(&error).find_map(|cause| cause.downcast_ref::<ProxyFailure>());
        let mut failed = if let Some(failure) = by_proxy {
            let outcome = match failure.is_final() {
                true => AttemptOutcome::Final,
                false => AttemptOutcome::NotApplied,
            };
            Self::new(Kind::Connect, outcome, failure.to_string())
        } else if error.is_connect() {
            match causes(&error).find_map(refused_certificate) {
                Some(fault) => Self::new(Kind::Connect, AttemptOutcome::Final, of_certificate(fault)),
                None => Self::new(Kind::Connect, AttemptOutcome::NotApplied, "no connection could be made"),
            }
        } else if unsent {
            let message = "the connection closed before the request was sent";
            Self::new(Kind::Exchange, AttemptOutcome::NotApplied, message)
        } else {
            let message = "the connection broke before an answer came";
            Self::new(Kind::Exchange, AttemptOutcome::Unknown, message)
        };
        failed.0.timed_out = timed_out;
        failed.0.by_proxy = by_proxy.is_some();
        failed.because(error)
    }

    /// The connection broke within a response.
    pub(crate) fn cut_off(facts: ResponseFacts, source: BoxError) -> Self {
        Self::new(
            Kind::Exchange,
            AttemptOutcome::Unknown,
            "the connection broke within the answer",
        )
        .with_facts(facts)
        .because(source)
    }

    /// A response that this client cannot decode.
    pub(crate) fn unreadable(facts: ResponseFacts, message: impl Into<String>) -> Self {
        Self::new(Kind::Answer, AttemptOutcome::Final, message).with_facts(facts)
    }

    /// A response without the requested record. Its status reports a success, so the error has none.
    pub(crate) fn absent(facts: ResponseFacts, message: impl Into<String>) -> Self {
        let facts = ResponseFacts { status: None, ..facts };
        Self::new(Kind::Absent, AttemptOutcome::Final, message).with_facts(facts)
    }

    /// A response of the server with a status other than success. A 503 with `Retry-After` means that nothing was
    /// changed.
    pub(crate) fn refused(status: u16, facts: ResponseFacts, message: impl Into<String>) -> Self {
        let is_promised = facts.retry_after.is_some() && facts.request_id.is_some();
        match status {
            503 if is_promised => Self::new(Kind::Status, AttemptOutcome::NotApplied, message).with_facts(facts),
            _ => Self::of_status(status, facts, message),
        }
    }

    /// A response with a status other than success that is not one of the server.
    pub(crate) fn foreign(status: u16, facts: ResponseFacts, message: impl Into<String>) -> Self {
        let mut error = Self::of_status(status, facts, message);
        error.0.is_foreign = true;
        error
    }

    /// A response with a status other than success that may be a proxy's, so that after a 502, 503 or 504 the outcome
    /// is unknown.
    fn of_status(status: u16, facts: ResponseFacts, message: impl Into<String>) -> Self {
        let outcome = match status {
            429 => AttemptOutcome::NotApplied,
            502..=504 => AttemptOutcome::Unknown,
            _ => AttemptOutcome::Final,
        };
        Self::new(Kind::Status, outcome, message).with_facts(facts)
    }

    /// Marks the failed call as one that requested a change.
    pub(crate) fn of_a_change(mut self) -> Self {
        self.0.maybe_applied = match (self.0.kind, self.0.outcome, self.status()) {
            (Kind::Input | Kind::Connect, ..) | (_, AttemptOutcome::NotApplied, _) => false,
            (Kind::Status, _, Some(status)) => !(400..500).contains(&status),
            _ => true,
        };
        self
    }

    /// Whether the service itself, and no proxy in front of it, refuses the credential or the request.
    pub(crate) fn is_refusal(&self) -> bool {
        self.is_answer_of_service() && matches!(self.status(), Some(400 | 401 | 403))
    }

    /// Whether the service itself, and no proxy in front of it, has answered with a status other than success.
    pub(crate) fn is_answer_of_service(&self) -> bool {
        self.0.kind == Kind::Status && !self.0.is_foreign && self.request_id().is_some()
    }

    /// Whether something else than the service may have answered.
    pub(crate) fn is_of_another(&self) -> bool {
        let is_unmarked = self.status().is_some() && self.request_id().is_none();
        self.0.is_foreign || (self.0.kind == Kind::Answer && is_unmarked)
    }

    pub(crate) fn outcome(&self) -> AttemptOutcome {
        self.0.outcome
    }
}

type Cause = dyn std::error::Error + 'static;

/// Why the server's certificate was refused, if it was: then retries will hardly help.
fn refused_certificate(cause: &Cause) -> Option<&CertificateError> {
    match cause.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(fault)) => Some(fault),
        _ => None,
    }
}

fn of_certificate(fault: &CertificateError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext, Other,
        UnknownIssuer,
    };
    match fault {
        UnknownIssuer => "the server's certificate is of an authority that is not trusted here".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => "the server's certificate is for another name".to_owned(),
        Expired | ExpiredContext { .. } => "the server's certificate has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "the server's certificate is not valid yet".to_owned(),
        // rustls has no variant for it.
        Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "the server's certificate is one of an authority (CA:TRUE), which no server may use".to_owned()
        }
        other => format!("the server's certificate was refused: {other}"),
    }
}
