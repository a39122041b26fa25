//! The figures of a rate limit after one request.

/// The state of a caller's window after a request.
///
/// ```
/// use agentcfg_core::model::RateStatus;
/// let status = RateStatus { limit: 100, remaining: 0, reset_unix_millis: 1_795_167_060_001 };
/// if status.remaining == 0 {
///     println!("{} requests were made, wait until {}", status.limit, status.reset_unix_seconds());
/// }
/// ```
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
    /// The names of the header fields: of the limit, of what remains, and of the reset.
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// let [limit, remaining, reset] = RateStatus::HEADERS;
    /// assert_eq!((limit, remaining, reset), ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"));
    /// ```
    pub const HEADERS: [&'static str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

    /// The header fields that tell a caller of HTTP, as the API does.
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// let status = RateStatus { limit: 100, remaining: 99, reset_unix_millis: 1_795_167_060_001 };
    /// assert_eq!(status.headers()[1], ("x-ratelimit-remaining", 99.into()));
    /// ```
    pub fn headers(&self) -> [(&'static str, i64); 3] {
        let [limit, remaining, reset] = Self::HEADERS;
        [
            (limit, self.limit.into()),
            (remaining, self.remaining.into()),
            (reset, self.reset_unix_seconds()),
        ]
    }

    /// When the window ends, in seconds since the Unix epoch, rounded up.
    ///
    /// ```
    /// use agentcfg_core::model::RateStatus;
    /// let status = RateStatus { limit: 100, remaining: 99, reset_unix_millis: 1_795_167_060_001 };
    /// assert_eq!(status.reset_unix_seconds(), 1_795_167_061);
    /// ```
    pub fn reset_unix_seconds(&self) -> i64 {
        self.reset_unix_millis.div_euclid(1000) + i64::from(self.reset_unix_millis.rem_euclid(1000) > 0)
    }
}
