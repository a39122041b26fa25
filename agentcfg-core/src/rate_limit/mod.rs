//! Rate limits: a fixed window for each API key and each user.
//!
//! A window opens with the first request and lasts a minute. (Interface specification, *Rate limit*.)

mod memory;
mod shared;
mod window;

use async_trait::async_trait;

pub use self::memory::MemoryLimiter;
pub use self::shared::{SharedLimiter, SharedState, SharedWindow, SharedWindows};
pub use self::window::{AtomicWindow, WINDOW_MILLIS, Window};
use crate::clock::Moment;
use crate::model::RateStatus;

/// The subject of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// An API key, by its identifier.
    ApiKey(&'a str),
    /// A user, by identifier.
    User(&'a str),
}

/// The decision on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a request that is over the limit must be refused"]
pub struct RateDecision {
    /// Whether the request is within the limit.
    pub allowed: bool,
    /// The figures for the caller.
    pub status: RateStatus,
    /// How long until the window ends, in milliseconds, at least 1.
    pub retry_after_millis: i64,
}

impl RateDecision {
    /// The figures of an allowed request, or the error of a refused one.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] over the limit.
    pub fn into_result(self) -> Result<RateStatus, RateLimited> {
        match self.allowed {
            true => Ok(self.status),
            false => Err(RateLimited {
                status: self.status,
                retry_after_millis: self.retry_after_millis,
            }),
        }
    }
}

/// The caller has made all the requests that the limit allows in this window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate limit of {} requests per minute exceeded, try again in {} s", .status.limit, self.retry_after_seconds())]
pub struct RateLimited {
    /// The figures for the caller; `remaining` is 0.
    pub status: RateStatus,
    /// How long until the window ends, in milliseconds, at least 1.
    pub retry_after_millis: i64,
}

impl RateLimited {
    /// How long until the window ends, in whole seconds, rounded up: the value of `Retry-After`.
    pub fn retry_after_seconds(&self) -> i64 {
        (self.retry_after_millis + 999) / 1000
    }
}

/// Counts requests.
#[async_trait]
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts one request of this subject and decides whether it is within the limit.
    async fn hit(&self, subject: Subject<'_>, limit: u32, at: Moment) -> RateDecision;
}
