//! Reproducible random numbers, and the sizes of tests that have a short and a full form.

use std::env;
use std::str::FromStr;
use std::time::Duration;

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// From the seed `SEED` of the environment, or 1, which is printed with the name of the test.
    pub fn of(test: &str) -> Self {
        let seed = setting("SEED", 1);
        println!("{test}: SEED={seed}");
        Self::new(seed)
    }

    /// From this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Others that do not depend on how many numbers are taken from these.
    #[must_use]
    pub fn split(&mut self, number: usize) -> Self {
        Self(self.next() ^ number as u64)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A time below a bound in milliseconds.
    pub fn millis(&mut self, bound: usize) -> Duration {
        Duration::from_millis(self.below(bound) as u64)
    }

    /// Whether an event of this chance, one in `times`, happens.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A number of the environment, such as `CASES`, or the default. `scripts/fault.sh` sets the sizes of the full forms.
pub fn setting<T: FromStr>(name: &str, default: T) -> T {
    let set = env::var(name).ok();
    set.map_or(default, |text| {
        let parsed = text.parse().ok();
        parsed.unwrap_or_else(|| panic!("{name} is no number: {text}"))
    })
}
