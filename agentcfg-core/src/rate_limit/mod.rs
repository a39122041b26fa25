//! Rate limits: a fixed window for each API key and each user.
//!
//! A window opens with the first request and lasts a minute.

mod memory;
mod shared;
mod window;

use async_trait::async_trait;

pub use self::memory::MemoryLimiter;
pub use self::shared::{SharedLimiter, SharedState};
pub use self::window::{AtomicWindow, RateDecision, RateLimited, WINDOW_MILLIS, Window};
use crate::clock::Moment;
pub use crate::store::{SharedWindow, SharedWindows};

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
