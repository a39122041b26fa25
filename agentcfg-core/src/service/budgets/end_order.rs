//! The order of the ends of calls and of reports, by which others find out which calls a report has.

use crate::clock::MINUTE;

/// The times of the last end and of the last report of this process, in milliseconds of its clock. A report has exactly
/// the calls whose time is not after its own.
#[derive(Debug, Default)]
pub(super) struct EndOrder {
    ended: i64,
    reported: i64,
}

impl EndOrder {
    /// The time of a call that ends now: after that of each report which does not have it.
    pub(super) fn end(&mut self, now: i64) -> i64 {
        self.ended = not_before(self.reported.saturating_add(1), now.max(not_before(self.ended, now)));
        self.ended
    }

    /// The time of a report that is made now: not before that of a call which it has.
    pub(super) fn report(&mut self, now: i64) -> i64 {
        self.reported = not_before(self.ended, now);
        self.reported
    }
}

/// Now, or the time that it must not precede. A clock that was set back by more than a minute is followed.
fn not_before(earliest: i64, now: i64) -> i64 {
    match earliest.saturating_sub(now) <= MINUTE {
        true => now.max(earliest),
        false => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_calls_that_are_not_after_it() {
        let mut order = EndOrder::default();
        let first = order.end(1_000);
        let report = order.report(1_000);
        let second = order.end(1_000);
        assert!(first <= report && report < second);
        // The clock is set back, by little and by much.
        let third = order.end(990);
        let report = order.report(980);
        assert!(third <= report && report < order.end(970));
        let at = 1_000_000;
        assert_eq!((order.end(at), order.report(at)), (at, at));
        assert_eq!(order.end(1_000), 1_000);
        assert_eq!(order.report(2_000), 2_000);
    }
}
