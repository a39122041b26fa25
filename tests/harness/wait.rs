//! Waiting for events.

use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Polls until there is a value; fails when none comes in good time.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Polls until something is true; fails when it does not come true in good time.
#[track_caller]
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}
