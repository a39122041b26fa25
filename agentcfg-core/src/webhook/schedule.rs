//! The retries of failed deliveries.

use chrono::DateTime;

use crate::clock::{DAY, Entropy, EntropyError, HOUR, MINUTE, SECOND};
use crate::model::Timestamp;

/// The pauses after each attempt but the last, in milliseconds, as Standard Webhooks recommends them: three days in
/// all.
const PAUSES: [i64; 9] = [
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/// The number of the attempt after which an event is given up.
pub(crate) const LAST_ATTEMPT: u32 = PAUSES.len() as u32 + 1;

/// How long every delivery may fail before the webhook is disabled, in milliseconds.
const FAILING: i64 = 5 * DAY;

/// The pause in milliseconds after the failed attempt with this number. The receiver's `Retry-After` replaces the
/// planned pause, within a second and an hour; the planned one varies by a tenth, so that the retries of many events
/// spread.
pub(crate) fn pause(
    attempt: u32,
    retry_after: Option<&str>,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<i64, EntropyError> {
    if let Some(millis) = retry_after.and_then(|text| requested(text, now)) {
        return Ok(millis.clamp(SECOND, HOUR));
    }
    let index = usize::try_from(attempt).unwrap_or(usize::MAX).saturating_sub(1);
    let planned = PAUSES[index.min(PAUSES.len() - 1)];
    let mut random = [0; 8];
    entropy.fill(&mut random)?;
    let tenth = planned / 10;
    let spread = u64::from_le_bytes(random) % (2 * tenth).unsigned_abs();
    Ok(planned - tenth + spread.cast_signed())
}

/// `Retry-After` in milliseconds: seconds, or a date.
fn requested(text: &str, now: Timestamp) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: i64 = text.parse().unwrap_or(i64::MAX);
        return Some(seconds.saturating_mul(SECOND));
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some(date.timestamp_millis() - now.unix_millis())
}

/// When a webhook whose deliveries fail since this moment is disabled.
pub(crate) fn disables_at(failing_since: Timestamp) -> Timestamp {
    failing_since.plus_millis(FAILING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    fn after(attempt: u32, retry_after: Option<&str>) -> i64 {
        let now = "2026-11-20T09:30:00Z".parse().unwrap();
        pause(attempt, retry_after, now, &SystemEntropy).unwrap()
    }

    #[test]
    fn ten_attempts_take_three_days() {
        assert_eq!(LAST_ATTEMPT, 10);
        for _ in 0..100 {
            let pauses: Vec<i64> = (1..LAST_ATTEMPT).map(|attempt| after(attempt, None)).collect();
            assert!((4500..5500).contains(&pauses[0]), "{pauses:?}");
            let days = pauses.iter().sum::<i64>() as f64 / DAY as f64;
            assert!((2.8..3.6).contains(&days), "{days}");
        }
    }

    #[test]
    fn pauses_vary() {
        let pauses: std::collections::BTreeSet<i64> = (0..50).map(|_| after(5, None)).collect();
        assert!(pauses.len() > 40);
    }

    #[test]
    fn the_receiver_chooses_the_pause_within_bounds() {
        for (text, millis) in [
            ("7", 7_000),
            (" 120 ", 120_000),
            ("0", 1_000),
            ("3600", 3_600_000),
            ("3601", 3_600_000),
            ("99999999999999999999", 3_600_000),
            ("Fri, 20 Nov 2026 09:30:40 GMT", 40_000),
            ("Fri, 20 Nov 2026 09:00:00 GMT", 1_000),
            ("Sat, 21 Nov 2026 09:00:00 GMT", 3_600_000),
        ] {
            assert_eq!(after(3, Some(text)), millis, "{text}");
        }
        for text in ["", "soon", "-5", "1.5", "2026-11-20T09:30:40Z"] {
            assert!(after(1, Some(text)) < 5_500, "{text}");
            assert!(after(2, Some(text)) > 250_000, "{text}");
        }
    }
}
