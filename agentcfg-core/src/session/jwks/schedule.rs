//! When keys may be fetched: a pure rule over the times of earlier fetches.

use crate::model::Timestamp;

/// How old keys get before they are fetched again, in milliseconds.
const KEEP: i64 = 10 * 60 * 1000;
/// The least time between two fetches for unknown keys.
const UNKNOWN_EVERY: i64 = 30 * 1000;
/// The least time between two fetches while there are no keys at all.
const FIRST_EVERY: i64 = 1000;
/// The least time between two fetches that only show whether the provider can be reached.
const PROBE_EVERY: i64 = 5 * 1000;
/// The least time between two tries to replace old keys.
const AGAIN_EVERY: i64 = 30 * 1000;
/// A clock that is behind by more than this was set back. A smaller difference comes from a caller that read the clock
/// a while ago.
const SET_BACK: i64 = 60 * 1000;

/// The reason for a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NoKeys,
    OldKeys,
    UnknownKey,
    Probe,
}

/// The times of the fetches so far.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    running: bool,
    last: Option<Timestamp>,
    last_for_unknown: Option<Timestamp>,
}

impl Schedule {
    /// Whether a fetch is to start now; if so, it counts as started.
    pub(super) fn start(&mut self, reason: Reason, now: Timestamp) -> bool {
        let (last, every) = match reason {
            Reason::NoKeys => (self.last, FIRST_EVERY),
            Reason::OldKeys => (self.last, AGAIN_EVERY),
            Reason::Probe => (self.last, PROBE_EVERY),
            Reason::UnknownKey => (self.last_for_unknown, UNKNOWN_EVERY),
        };
        if self.running || !last.is_none_or(|last| has_passed(every, last, now)) {
            return false;
        }
        self.running = true;
        self.last = Some(now);
        if reason == Reason::UnknownKey {
            self.last_for_unknown = Some(now);
        }
        true
    }

    pub(super) fn stop(&mut self) {
        self.running = false;
    }

    pub(super) fn is_running(&self) -> bool {
        self.running
    }
}

/// Whether keys of this age must be fetched again.
pub(super) fn is_stale(since: Timestamp, now: Timestamp) -> bool {
    has_passed(KEEP, since, now)
}

fn has_passed(millis: i64, since: Timestamp, now: Timestamp) -> bool {
    let passed = now.unix_millis().saturating_sub(since.unix_millis());
    passed >= millis || passed < -SET_BACK
}
