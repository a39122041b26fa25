//! Errors and their responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

#[derive(Debug)]
pub enum Failure {
    Unauthorized,
    Forbidden,
    Invalid(&'static str),
    Taken,
    Full,
    TooMany,
    Internal(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation) => Self::Taken,
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// Internal errors of the server.
macro_rules! internal {
    ($($fault:ty),*) => {
        $(impl From<$fault> for Failure {
            fn from(error: $fault) -> Self {
                Self::Internal(error.to_string())
            }
        })*
    };
}

internal!(r2d2::Error, serde_json::Error, std::io::Error, tokio::task::JoinError);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, message) = match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "invalid credentials"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "another workspace"),
            Self::Invalid(message) => (StatusCode::BAD_REQUEST, message),
            Self::Taken => (StatusCode::CONFLICT, "agent_id is taken"),
            Self::Full => (StatusCode::UNPROCESSABLE_ENTITY, "the plan's limit is reached"),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded"),
            Self::Internal(cause) => {
                eprintln!("{cause}");
                (StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        };
        (status, Json(serde_json::json!({ "error": message }))).into_response()
    }
}
