//! What one process keeps of a subject between its requests.

use std::sync::atomic::{AtomicI64, Ordering};

use super::AtomicWindow;
use crate::model::Timestamp;

/// A subject's window, and when somebody was last told that the subject is there. Both are looked at on every request,
/// so that they share a line of the processor's cache.
///
/// ```
/// use agentcfg_core::model::Timestamp;
/// use agentcfg_core::rate_limit::Tally;
/// let tally = Tally::default();
/// let now = Timestamp::from_unix_millis(1_000_000);
/// assert!(tally.window().hit(1, now).allowed);
/// assert!(tally.is_due(15_000, now));
/// assert!(!tally.is_due(15_000, now.plus_millis(14_999)));
/// assert!(tally.is_due(15_000, now.plus_millis(15_000)));
/// ```
#[derive(Debug)]
pub struct Tally {
    window: AtomicWindow,
    /// In milliseconds since the Unix epoch.
    noted: AtomicI64,
}

impl Default for Tally {
    /// A window that has ended long ago, of a subject that was never there.
    fn default() -> Self {
        Self {
            window: AtomicWindow::default(),
            noted: AtomicI64::new(i64::MIN),
        }
    }
}

impl Tally {
    /// Where requests are counted.
    pub fn window(&self) -> &AtomicWindow {
        &self.window
    }

    /// Whether nobody was told `true` by this in so many milliseconds. Of several who ask at once, one is.
    pub fn is_due(&self, every_millis: i64, now: Timestamp) -> bool {
        let at = now.unix_millis();
        let last = self.noted.load(Ordering::Relaxed);
        let is_due = last == i64::MIN || at.saturating_sub(last) >= every_millis;
        is_due
            && self
                .noted
                .compare_exchange(last, at, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}
