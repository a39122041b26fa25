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
use crate::model::{RateStatus, Timestamp};

/// Who is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// An API key, by its identifier.
    ApiKey(&'a str),
    /// A user, by identifier.
    User(&'a str),
}

/// Whether a request may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// Whether the request is within the limit.
    pub allowed: bool,
    /// What to tell the caller.
    pub status: RateStatus,
    /// How long until the window ends, in milliseconds, at least 1.
    pub retry_after_millis: i64,
}

/// Counts requests.
#[async_trait]
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts one request of this subject and says whether it is within the limit.
    async fn hit(&self, subject: Subject<'_>, limit: u32, now: Timestamp) -> RateDecision;
}
