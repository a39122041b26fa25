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
///
/// ```
/// use agentcfg_core::rate_limit::Subject;
/// assert_ne!(Subject::ApiKey("ada"), Subject::User("ada"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// An API key, by its identifier.
    ApiKey(&'a str),
    /// A user, by identifier.
    User(&'a str),
}

/// The decision on one request.
///
/// ```
/// use agentcfg_core::clock::{Moment, SystemClock};
/// use agentcfg_core::rate_limit::Window;
/// let decision = Window::default().hit(100, Moment::of(&SystemClock));
/// assert!(decision.allowed);
/// assert_eq!(decision.status.remaining, 99);
/// ```
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
    ///
    /// ```
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::Window;
    /// let mut window = Window::default();
    /// let now = Moment::of(&SystemClock);
    /// assert_eq!(window.hit(1, now).into_result()?.remaining, 0);
    /// assert!(window.hit(1, now).into_result().is_err());
    /// # Ok::<(), agentcfg_core::rate_limit::RateLimited>(())
    /// ```
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
///
/// ```
/// use agentcfg_core::model::RateStatus;
/// use agentcfg_core::rate_limit::RateLimited;
/// let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_000 };
/// let limited = RateLimited { status, retry_after_millis: 1200 };
/// assert_eq!(limited.to_string(), "rate limit of 100 requests per minute exceeded, try again in 2 s");
/// ```
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
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// use agentcfg_core::rate_limit::RateLimited;
    /// # let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_000 };
    /// let limited = RateLimited { status, retry_after_millis: 1200 };
    /// assert_eq!(limited.retry_after_seconds(), 2);
    /// ```
    pub fn retry_after_seconds(&self) -> i64 {
        (self.retry_after_millis + 999) / 1000
    }
}

/// Counts requests.
///
/// ```
/// use agentcfg_core::clock::Moment;
/// use agentcfg_core::model::RateStatus;
/// use agentcfg_core::rate_limit::{RateDecision, RateLimiter, Subject};
///
/// /// For an app that counts requests elsewhere.
/// struct Unlimited;
///
/// #[async_trait::async_trait]
/// impl RateLimiter for Unlimited {
///     async fn hit(&self, _: Subject<'_>, limit: u32, at: Moment) -> RateDecision {
///         let reset_unix_millis = at.now.unix_millis() + 60_000;
///         let status = RateStatus { limit, remaining: limit, reset_unix_millis };
///         RateDecision { allowed: true, status, retry_after_millis: 60_000 }
///     }
/// }
/// ```
#[async_trait]
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts one request of this subject and decides whether it is within the limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::clock::{Moment, SystemClock};
    /// use agentcfg_core::rate_limit::{MemoryLimiter, RateLimiter, Subject};
    /// let limiter = MemoryLimiter::default();
    /// let decision = limiter.hit(Subject::User("ada"), 600, Moment::of(&SystemClock)).await;
    /// assert!(decision.allowed);
    /// # Ok(())
    /// # }
    /// ```
    async fn hit(&self, subject: Subject<'_>, limit: u32, at: Moment) -> RateDecision;
}
