//! Checkpoints: commits that also save the engine's record of its free pages, the allocator state.
//!
//! A start after a crash loads the allocator state of the last commit. If that commit has not saved it, the engine
//! reads the whole file twice to find it again, which takes more than a second for a gigabyte. To save it takes up to a
//! four-thousandth of the file's length, too much for each commit to a large file under load. So a commit is a
//! checkpoint unless the last one was a short while ago, and when no commit follows, the idle writer makes one.

use std::time::{Duration, Instant};

/// For how many times its own duration a checkpoint is followed by no other one.
const PAUSE_FACTOR: u32 = 3;

/// The bytes that checkpoints write in a second at most.
const BYTES_PER_SECOND: u64 = 32 << 20;

/// The pause after a checkpoint that the disk had no room for.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// When to make the next checkpoint.
#[derive(Debug)]
pub(super) struct Checkpoints {
    /// The length of a file from which it gets checkpoints, in bytes.
    min_file_bytes: u64,
    /// Whether the last commit may not have saved the allocator state.
    is_missing: bool,
    /// The earliest moment of the next checkpoint.
    next: Instant,
}

impl Checkpoints {
    /// For a file that was just opened, and may have been recovered.
    pub(super) fn new(min_file_bytes: u64, now: Instant) -> Self {
        Self {
            min_file_bytes,
            is_missing: true,
            next: now,
        }
    }

    /// Whether the commit that begins now is to be a checkpoint. `has_room` tells whether the disk has room for this
    /// many bytes.
    pub(super) fn is_due(&mut self, file_bytes: u64, has_room: impl FnOnce(u64) -> bool, now: Instant) -> bool {
        if file_bytes < self.min_file_bytes {
            self.is_missing = false;
            return false;
        }
        if now < self.next {
            return false;
        }
        let has_room = has_room(max_bytes(file_bytes));
        if !has_room {
            self.next = now + FULL_PAUSE;
        }
        has_room
    }

    /// Whether the last commit may not have saved the allocator state.
    pub(super) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Notes that a commit succeeded which was no checkpoint.
    pub(super) fn committed(&mut self, file_bytes: u64) {
        self.is_missing = file_bytes >= self.min_file_bytes;
    }

    /// Notes that a checkpoint succeeded.
    pub(super) fn made(&mut self, file_bytes: u64, began: Instant, now: Instant) {
        let written = Duration::from_secs(1).mul_f64(max_bytes(file_bytes) as f64 / BYTES_PER_SECOND as f64);
        self.is_missing = false;
        self.next = now + ((now - began) * PAUSE_FACTOR).max(written);
    }

    /// Notes a failure of the engine. Where its own tables are damaged, each checkpoint would fail again, so the idle
    /// writer makes none before the next commit.
    pub(super) fn engine_failed(&mut self) {
        self.is_missing = false;
    }

    /// How long an idle writer waits before it makes a checkpoint; `None` if none is missing.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.is_missing.then(|| self.next.saturating_duration_since(now))
    }
}

/// The bytes that a checkpoint of a file of this length writes at most.
fn max_bytes(file_bytes: u64) -> u64 {
    file_bytes / 4096
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between writes, not a time that a rule depends on"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = 256 << 20;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_small_file_gets_none() {
        let start = now();
        let mut checkpoints = Checkpoints::new(MIN, start);
        assert_eq!(checkpoints.wait(start), Some(Duration::ZERO));
        assert!(!checkpoints.is_due(MIN - 1, |_| unreachable!(), start));
        assert_eq!(checkpoints.wait(start), None);
    }

    #[test]
    fn a_pause_follows_that_bounds_the_time_and_the_bytes() {
        let start = now();
        let mut checkpoints = Checkpoints::new(MIN, start);
        for (took, pause) in [(MS / 2, MS * 125), (MS * 100, MS * 300)] {
            let begin = start + took * 10_000;
            assert!(checkpoints.is_due(16 << 30, |bytes| bytes == 4 << 20, begin));
            let end = begin + took;
            checkpoints.made(16 << 30, begin, end);
            assert_eq!(checkpoints.wait(end), None);

            // A commit soon after it is none, so the idle writer makes one later.
            assert!(!checkpoints.is_due(16 << 30, |_| unreachable!(), end + MS));
            checkpoints.committed(16 << 30);
            assert_eq!(checkpoints.wait(end + MS), Some(pause - MS));
            assert!(checkpoints.is_due(16 << 30, |_| true, end + pause));
        }
    }

    #[test]
    fn after_a_failure_it_waits_for_a_commit() {
        let start = now();
        let mut checkpoints = Checkpoints::new(MIN, start);
        assert!(checkpoints.is_due(MIN, |_| true, start));
        checkpoints.engine_failed();
        assert_eq!(checkpoints.wait(start), None);
        assert!(checkpoints.is_due(MIN, |_| true, start));
    }

    #[test]
    fn a_full_disk_delays_it() {
        let start = now();
        let mut checkpoints = Checkpoints::new(MIN, start);
        assert!(!checkpoints.is_due(MIN, |_| false, start));
        assert_eq!(checkpoints.wait(start), Some(FULL_PAUSE));
        assert!(checkpoints.is_due(MIN, |_| true, start + FULL_PAUSE));
    }
}
