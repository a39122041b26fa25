//! The failures of model calls.

use std::error::Error;
use std::time::Duration;

use agentcfg_core::model::Provider;

use crate::http::errors::Failure;
use crate::outbound::OutboundError;

/// The kind of the failure of a call whose caller has left.
pub(super) const CALLER_LEFT: &str = "caller_left";

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No connection to the provider could be made.
    #[error("{0} cannot be reached")]
    Unreachable(Provider, #[source] OutboundError),
    /// The connection broke before the answer began. The provider may or may not have run the call.
    #[error("{0} broke the connection before it answered")]
    Broken(Provider, #[source] OutboundError),
    /// The answer did not begin in time.
    #[error("{0} did not answer within {seconds} s", seconds = .1.as_secs())]
    TimedOut(Provider, Duration),
    /// The provider answered with a switch to another protocol.
    #[error("{0} answered in another protocol")]
    Protocol(Provider),
    /// The caller closed the connection, so the call was cancelled.
    #[error("the caller closed its side of the connection before the provider answered")]
    CallerLeft,
    /// The request cannot be encoded as HTTP.
    #[error("internal error")]
    Request(#[source] Box<dyn Error + Send + Sync>),
}

impl CallError {
    /// Whether it is the provider that failed.
    pub(super) fn is_of_provider(&self) -> bool {
        !matches!(self, Self::CallerLeft | Self::Request(_))
    }

    /// The kind of the failure, for traces.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(..) => "unreachable",
            Self::Broken(..) => "connection_broken",
            Self::TimedOut(..) => "timeout",
            Self::Protocol(_) => "protocol",
            Self::CallerLeft => CALLER_LEFT,
            Self::Request(_) => "internal",
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        let failure = match error {
            CallError::Unreachable(..) | CallError::Broken(..) | CallError::Protocol(_) => Self::bad_gateway(message),
            CallError::TimedOut(..) => Self::gateway_timeout(message),
            CallError::CallerLeft => Self::client_closed(message),
            CallError::Request(cause) => return Self::internal(cause),
        };
        match error.source() {
            Some(cause) => failure.because(cause),
            None => failure,
        }
    }
}
