//! Random delays, so that clients do not act all at once.

use std::time::Duration;

use agentcfg_core::clock::{Entropy, SystemEntropy};

/// A random time up to a maximum. Without randomness it is half of the maximum, so that streams end together but still
/// work.
pub(super) fn jitter(most: Duration) -> Duration {
    let mut bytes = [0; 4];
    match SystemEntropy.fill(&mut bytes) {
        Ok(()) => most.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)),
        Err(_) => most / 2,
    }
}
