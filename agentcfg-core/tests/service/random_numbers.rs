//! Random numbers that a run is repeated with by its seed.

/// SplitMix64.
pub struct Numbers(u64);

impl Numbers {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a bound.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
