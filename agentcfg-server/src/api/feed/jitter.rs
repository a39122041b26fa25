//! Random times, so that clients do not act all at once.

use std::time::Duration;

use agentcfg_core::clock::{Entropy, SystemEntropy};

/// A random time up to this one. Without randomness it is half of it, which only makes streams end together.
pub(super) fn jitter(most: Duration) -> Duration {
    let mut bytes = [0; 4];
    match SystemEntropy.fill(&mut bytes) {
        Ok(()) => most.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)),
        Err(_) => most / 2,
    }
}
