//! Response headers about the caller's rate limit.

use std::time::Duration;

use agentcfg_core::model::{RateStatus, Timestamp};
use hyper::HeaderMap;
use hyper::header::{DATE, RETRY_AFTER};

/// The state of the caller's rate limit as of one response.
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// client.list_workspaces().await?;
/// if client.rate_limit().is_some_and(|rate| rate.remaining < 10) {
///     println!("slow down");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// The number of requests allowed in a window.
    pub limit: u32,
    /// The number of requests left in the window.
    pub remaining: u32,
    /// When the window ends.
    pub reset: Timestamp,
}

impl RateLimit {
    /// Reads the three headers; `None` unless all of them are present and valid.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
        let [limit, remaining, reset] = RateStatus::HEADERS;
        Some(Self {
            limit: number(limit)?.try_into().ok()?,
            remaining: number(remaining)?.try_into().ok()?,
            reset: Timestamp::from_unix_millis(number(reset)?.saturating_mul(1000)),
        })
    }
}

/// The delay that `Retry-After` asks for. A date is compared with the response's own `Date`, so
/// that the two clocks need not agree.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_rate_limit_needs_all_three_headers() {
        let whole = [
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "1700000000"),
        ];
        let expected = RateLimit {
            limit: 100,
            remaining: 99,
            reset: "2023-11-14T22:13:20Z".parse().unwrap(),
        };
        assert_eq!(RateLimit::read(&headers(&whole)), Some(expected));
        assert_eq!(RateLimit::read(&headers(&whole[..2])), None);
        let wrong = [whole[0], ("x-ratelimit-remaining", "-1"), whole[2]];
        assert_eq!(RateLimit::read(&headers(&wrong)), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let wait = |pairs: &[(&'static str, &'static str)]| retry_after(&headers(pairs));
        assert_eq!(wait(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        let date = ("retry-after", "Fri, 20 Nov 2026 09:30:30 GMT");
        assert_eq!(
            wait(&[date, ("date", "Fri, 20 Nov 2026 09:30:00 GMT")]),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            wait(&[date, ("date", "Fri, 20 Nov 2026 10:00:00 GMT")]),
            Some(Duration::ZERO)
        );
        assert_eq!(wait(&[date]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[]), None);
    }
}
