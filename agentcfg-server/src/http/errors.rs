//! From failures to status codes: the only file of the server that chooses them.

use std::fmt;

use agentcfg_core::rate_limit::RateLimited;
use agentcfg_core::service::EntryError;
use agentcfg_core::validate::Invalid;
use agentcfg_core::{Error, ErrorKind};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

use crate::http::fault_fields::fault_fields;

/// A request that is answered with an error. The constructors are named after their status codes.
#[derive(Debug)]
pub struct Failure {
    /// The status code.
    pub status: StatusCode,
    /// The message for the caller.
    pub message: String,
    /// The cause, for the log alone.
    pub cause: Option<String>,
    /// After how many seconds a client should try again, for a temporary failure.
    pub retry_after: Option<u32>,
    /// The methods that the path has, when the request's method is not among them.
    pub allow: Option<String>,
    /// Whether SDKs of the model providers should send the request again, in `X-Should-Retry`. Without it they repeat
    /// every 5xx.
    pub should_retry: Option<bool>,
    /// Header fields of the answer beyond those of each failure.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Whether it is what the server was asked for, so that it is no line of the log.
    pub is_meant: bool,
}

/// The client closed the connection: no client reads this status, but it identifies such requests in the metrics.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            cause: None,
            retry_after: None,
            allow: None,
            should_retry: None,
            fields: Vec::new(),
            is_meant: false,
        }
    }

    /// 400: the request breaks a rule.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400: a query parameter breaks a rule.
    pub fn parameter(parameter: impl fmt::Display, rule: impl fmt::Display) -> Self {
        Invalid::new(format_args!("the query parameter {parameter}"), rule).into()
    }

    /// 400: a query parameter is missing.
    pub fn required(parameter: &str) -> Self {
        Self::parameter(parameter, "is required")
    }

    /// 401: the request has no valid credential.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// 403: the request comes from a page of another origin, or has a cookie where cookies are refused.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: the path does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 405: the path has these methods and not that of the request.
    pub fn method_not_allowed(message: impl Into<String>, allow: impl Into<String>) -> Self {
        Self {
            allow: Some(allow.into()),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
        }
    }

    /// 408: the request did not arrive in time.
    pub fn request_timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, message)
    }

    /// 413: the body is too long.
    pub fn payload_too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// 414: the request line is too long.
    pub fn uri_too_long(message: impl Into<String>) -> Self {
        Self::new(StatusCode::URI_TOO_LONG, message)
    }

    /// 415: the body has an unsupported content type or encoding.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// 429: the rate window, the caller's share of the body budget, or the streams of the caller or the server are
    /// exhausted.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }

    /// 431: the header fields are too long or too many.
    pub fn headers_too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message)
    }

    /// 499: the client closed the connection before the answer.
    pub fn client_closed(message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::REQUEST_TIMEOUT);
        Self::new(status, message)
    }

    /// 500 with a message without internal detail; the cause is logged.
    pub fn internal(cause: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error").because(cause)
    }

    /// 502: another service cannot be reached, or its answer cannot be used.
    pub fn bad_gateway(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, message)
    }

    /// 503: something that this server needs is not available.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// 503 as the readiness of a server that is about to stop.
    pub fn leaving() -> Self {
        Self {
            is_meant: true,
            retry_after: Some(1),
            ..Self::unavailable("the server is shutting down")
        }
    }

    /// 503 as the readiness of a server whose storage takes too long.
    pub fn silent_storage() -> Self {
        Self {
            retry_after: Some(1),
            ..Self::unavailable("storage does not answer")
        }
    }

    /// 504: another service did not answer in time.
    pub fn gateway_timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, message)
    }

    /// Whether the request had no valid credential.
    pub fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    /// Whether something that the server needs is not available.
    pub fn is_unavailable(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// Adds the cause for the log.
    #[must_use]
    pub fn because(self, cause: impl ToString) -> Self {
        Self {
            cause: Some(cause.to_string()),
            ..self
        }
    }

    /// Adds header fields to the answer.
    #[must_use]
    pub fn with_fields(mut self, fields: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Tells clients whether to send the request again.
    #[must_use]
    pub fn should_retry(self, should_retry: bool) -> Self {
        Self {
            should_retry: Some(should_retry),
            ..self
        }
    }
}

/// The status code of a kind of error.
fn status(kind: ErrorKind) -> StatusCode {
    StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            cause: std::error::Error::source(&error).map(ToString::to_string),
            // A change whose outcome is unknown must not be repeated before the stored record was read.
            retry_after: matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TooManyRequests).then_some(1),
            fields: fault_fields(error.faults()).into_iter().collect(),
            ..Self::new(status(error.kind()), error.message())
        }
    }
}

impl From<EntryError> for Failure {
    fn from(error: EntryError) -> Self {
        match error {
            EntryError::Credential(error) => error.into(),
            EntryError::RateLimited { limited, .. } => limited.into(),
            other => Self::internal(other.to_string()),
        }
    }
}

impl From<RateLimited> for Failure {
    fn from(limited: RateLimited) -> Self {
        Self {
            retry_after: u32::try_from(limited.retry_after_seconds()).ok(),
            ..Self::too_many_requests(limited.to_string())
        }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self {
            fields: fault_fields(invalid.faults()).into_iter().collect(),
            ..Self::bad_request(invalid.to_string())
        }
    }
}
