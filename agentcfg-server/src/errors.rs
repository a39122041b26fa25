//! From failures to status codes: the only place that chooses them.

use agentcfg_core::rate_limit::RateLimited;
use agentcfg_core::service::EntryError;
use agentcfg_core::validate::Invalid;
use agentcfg_core::{Error, ErrorKind};
use hyper::StatusCode;

use crate::model_calls::CallError;

/// A request that is answered with an error.
#[derive(Debug)]
pub struct Failure {
    /// The status code.
    pub status: StatusCode,
    /// The message for the caller.
    pub message: String,
    /// The cause, for the log alone.
    pub cause: Option<String>,
    /// After how many seconds it makes sense to try again, where the failure is a passing one.
    pub retry_after: Option<u32>,
}

impl Failure {
    /// A failure with a message and no hidden cause.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            cause: None,
            retry_after: None,
        }
    }

    /// A request that breaks a rule.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Precondition => StatusCode::PRECONDITION_FAILED,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::PlanLimit => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Unavailable | ErrorKind::OutcomeUnknown | ErrorKind::NotConfigured => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // `Internal`, and whatever kind a later release of the core adds.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        // Of a change that may have been made, nobody should try again without a look.
        let retry_after = (error.kind() == ErrorKind::Unavailable).then_some(1);
        Self {
            retry_after,
            status: status(error.kind()),
            message: error.message().to_owned(),
            cause,
        }
    }
}

impl From<EntryError> for Failure {
    fn from(error: EntryError) -> Self {
        match error {
            EntryError::Credential(error) => error.into(),
            EntryError::RateLimited(limited) => limited.into(),
        }
    }
}

impl From<RateLimited> for Failure {
    fn from(limited: RateLimited) -> Self {
        Self {
            retry_after: u32::try_from(limited.retry_after_seconds()).ok(),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, limited.to_string())
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let status = match error {
            CallError::Unreachable(..) | CallError::Broken(..) | CallError::Protocol(_) => StatusCode::BAD_GATEWAY,
            CallError::TimedOut(..) => StatusCode::GATEWAY_TIMEOUT,
            // Nobody reads it, but the metrics tell it apart.
            CallError::CallerLeft => StatusCode::from_u16(499).unwrap_or(StatusCode::REQUEST_TIMEOUT),
            CallError::Request(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            cause: std::error::Error::source(&error).map(ToString::to_string),
            ..Self::new(status, error.to_string())
        }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::bad_request(invalid.to_string())
    }
}
