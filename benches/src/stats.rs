//! Medians and their spread.

use std::fmt;

/// Measurements of one figure over several rounds.
#[derive(Debug, Clone, Default)]
pub struct Series(Vec<f64>);

impl Series {
    /// An empty series.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds the measurement of one round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The median of the measurements.
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    /// This series divided by another, round by round.
    pub fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }

    /// This series less another, round by round.
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a - b).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

/// The median with the minimum and the maximum: `0.97 (0.95–0.99)`.
impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return f.write_str("none");
        };
        let digits = match self.median().abs() {
            m if m >= 1000.0 => 0,
            m if m >= 10.0 => 1,
            m if m >= 0.1 => 2,
            _ => 3,
        };
        write!(f, "{:.digits$} ({min:.digits$}–{max:.digits$})", self.median())
    }
}

/// The number of rounds from the environment variable `ROUNDS`, or this default.
pub fn rounds(default: usize) -> usize {
    setting("ROUNDS", default)
}

/// The seconds of one measurement from the environment variable `SECONDS_PER_ROUND`, or this default.
pub fn seconds(default: f64) -> f64 {
    setting("SECONDS_PER_ROUND", default)
}

/// A number from an environment variable, or this default.
pub fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
