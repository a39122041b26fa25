//! Points in time as the API shows them.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};

use crate::body::{from_text, serde_as_text};

/// A moment in UTC with millisecond precision, written as `2026-11-20T09:30:00.123Z`.
///
/// Any RFC 3339 offset is read; finer fractions are cut off.
///
/// ```
/// use agentcfg_core::model::Timestamp;
/// let at: Timestamp = "2026-11-20T10:30:00.1239+01:00".parse()?;
/// assert_eq!(at.to_string(), "2026-11-20T09:30:00.123Z");
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// A field, so that the path of a request reads it without a call.
    pub(crate) unix_millis: i64,
}

/// Why a string is not a [`Timestamp`].
///
/// ```
/// use agentcfg_core::model::{InvalidTimestamp, Timestamp};
/// assert_eq!("tomorrow".parse::<Timestamp>(), Err(InvalidTimestamp::Form));
/// assert_eq!("9999-12-31T23:59:59-01:00".parse::<Timestamp>(), Err(InvalidTimestamp::Range));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTimestamp {
    /// The text does not have the form of RFC 3339.
    #[error("must be an RFC 3339 timestamp such as 2026-11-20T09:30:00Z")]
    Form,
    /// In UTC the year does not have four digits, or is 0.
    #[error("must be in the years 0001 to 9999 in UTC")]
    Range,
}

impl Timestamp {
    /// The moment so many milliseconds after the Unix epoch. Moments that no four-digit year can
    /// show are moved to the nearest that can be shown.
    ///
    /// ```
    /// use agentcfg_core::model::Timestamp;
    /// assert_eq!(Timestamp::from_unix_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    /// ```
    pub fn from_unix_millis(millis: i64) -> Self {
        const FIRST: i64 = -62_135_596_800_000; // 0001-01-01T00:00:00Z
        const LAST: i64 = 253_402_300_799_999; // 9999-12-31T23:59:59.999Z
        Self {
            unix_millis: millis.clamp(FIRST, LAST),
        }
    }

    /// Milliseconds since the Unix epoch.
    ///
    /// ```
    /// use agentcfg_core::model::Timestamp;
    /// let at: Timestamp = "1970-01-01T00:00:01.5Z".parse()?;
    /// assert_eq!(at.unix_millis(), 1500);
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn unix_millis(self) -> i64 {
        self.unix_millis
    }

    /// The same moment as a `chrono` value.
    ///
    /// ```
    /// use agentcfg_core::model::Timestamp;
    /// let at: Timestamp = "2026-11-20T09:30:00Z".parse()?;
    /// assert_eq!(at.as_datetime().timestamp_millis(), at.unix_millis());
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    pub fn as_datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.unix_millis).unwrap_or_default()
    }

    /// This moment moved by so many milliseconds.
    ///
    /// ```
    /// use agentcfg_core::model::Timestamp;
    /// let at: Timestamp = "2026-11-20T09:30:00Z".parse()?;
    /// assert_eq!(at.plus_millis(90_000).to_string(), "2026-11-20T09:31:30.000Z");
    /// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
    /// ```
    #[must_use]
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_unix_millis(self.unix_millis().saturating_add(millis))
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(at: DateTime<Utc>) -> Self {
        Self::from_unix_millis(at.timestamp_millis())
    }
}

from_text!(Timestamp);

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let parsed = DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTimestamp::Form)?;
        let utc = parsed.with_timezone(&Utc);
        if !(1..=9999).contains(&utc.year()) {
            return Err(InvalidTimestamp::Range);
        }
        // A leap second becomes the second after it, which every reader can show.
        Ok(utc.into())
    }
}

impl Timestamp {
    /// The moment as text. Every record and every audit entry has some, and a general formatter takes many times as long.
    fn text(self) -> [u8; 24] {
        let at = self.as_datetime();
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |place: std::ops::Range<usize>, mut number: u32| {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        put(0..4, at.year().unsigned_abs());
        put(5..7, at.month());
        put(8..10, at.day());
        put(11..13, at.hour());
        put(14..16, at.minute());
        put(17..19, at.second());
        put(20..23, at.timestamp_subsec_millis());
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

serde_as_text!(read Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_that_do_not_fit_are_refused() {
        assert!("9999-12-31T23:59:59.999Z".parse::<Timestamp>().is_ok());
        for text in [
            "9999-12-31T23:59:59-23:59",
            "0001-01-01T00:00:00+01:00",
            "0000-06-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp::Range), "{text}");
        }
        for text in ["2026-11-20", "2026-11-20T09:30:00", "tomorrow", "", "1700000000"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp::Form), "{text}");
        }
    }

    #[test]
    fn finer_fractions_are_cut_off_and_a_leap_second_is_the_moment_after() {
        for (text, shown) in [
            ("2026-11-20T09:30:00.9999Z", "2026-11-20T09:30:00.999Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("2026-11-20t10:30:00+01:00", "2026-11-20T09:30:00.000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.250Z"),
        ] {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(at.to_string(), shown, "{text}");
            assert_eq!(at, Timestamp::from_unix_millis(at.unix_millis()), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_text_is_that_of_rfc_3339(millis: i64) {
            for millis in [millis, millis % (1 << 48)] {
                let at = Timestamp::from_unix_millis(millis);
                let expected = at.as_datetime().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
                proptest::prop_assert_eq!(at.to_string(), expected);
            }
        }
    }

    #[test]
    fn extremes_stay_printable() {
        assert_eq!(
            Timestamp::from_unix_millis(i64::MAX).to_string(),
            "9999-12-31T23:59:59.999Z"
        );
        assert_eq!(
            Timestamp::from_unix_millis(i64::MIN).to_string(),
            "0001-01-01T00:00:00.000Z"
        );
    }
}
