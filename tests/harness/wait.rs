//! Waiting for events.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Polls until there is a value; panics after a timeout.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {TIMEOUT:?} in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Polls until a condition holds; panics after a timeout.
#[track_caller]
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || look().then_some(()));
}

/// Runs an action this many times concurrently and returns the results.
pub fn at_once<T: Send>(times: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(times);
    thread::scope(|scope| {
        let (start, act) = (&start, &act);
        let all: Vec<_> = (0..times)
            .map(|number| {
                scope.spawn(move || {
                    start.wait();
                    act(number)
                })
            })
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("none of them fails"))
            .collect()
    })
}
