//! The figures of a rate limit after one request.

/// The state of a caller's window after a request. (Interface specification, *Rate limit*.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    /// Requests allowed in a window.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// When the window ends, in milliseconds since the Unix epoch.
    pub reset_unix_millis: i64,
}

impl RateStatus {
    /// When the window ends, in seconds since the Unix epoch, rounded up.
    pub fn reset_unix_seconds(&self) -> i64 {
        self.reset_unix_millis.div_euclid(1000) + i64::from(self.reset_unix_millis.rem_euclid(1000) > 0)
    }
}
