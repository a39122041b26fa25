//! Durations in ranges, from which percentiles are read.
//!
//! Up to 15 ms each millisecond is a range; then each power of two has 8 ranges. The middle of a range is within 6.25 %
//! of each duration in it.

use std::collections::BTreeMap;

const EXACT: u64 = 16;
const IN_A_POWER: u64 = 8;

/// The number of the range of a duration.
pub(super) fn range_of(millis: u64) -> u16 {
    if millis < EXACT {
        return millis as u16;
    }
    let power = u64::from(millis.ilog2());
    let within = (millis >> (power - 3)) & (IN_A_POWER - 1);
    (EXACT + (power - 4) * IN_A_POWER + within) as u16
}

/// The middle of a range.
fn middle(range: u16) -> u64 {
    let range = u64::from(range);
    if range < EXACT {
        return range;
    }
    let (power, within) = ((range - EXACT) / IN_A_POWER + 4, (range - EXACT) % IN_A_POWER);
    let width = 1 << (power.min(63) - 3);
    (IN_A_POWER + within) * width + width / 2
}

/// The duration that this share of the calls, in percent, took at most.
pub(super) fn percentile(durations: &BTreeMap<u16, u64>, percent: u64) -> u64 {
    let calls: u64 = durations.values().sum();
    let wanted = (u128::from(calls) * u128::from(percent)).div_ceil(100);
    let mut seen = 0;
    for (range, count) in durations {
        seen += u128::from(*count);
        if seen >= wanted {
            return middle(*range);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn percentiles_are_within_a_tenth(mut durations in proptest::collection::vec(0_u64..100_000_000, 1..300)) {
            let mut ranges = BTreeMap::new();
            for millis in &durations {
                *ranges.entry(range_of(*millis)).or_default() += 1;
            }
            durations.sort_unstable();
            for percent in [50, 95] {
                let exact = durations[(durations.len() * percent as usize).div_ceil(100) - 1];
                let read = percentile(&ranges, percent);
                prop_assert!(read.abs_diff(exact) * 10 <= exact, "{read} for {exact}");
            }
        }

        #[test]
        fn ranges_are_in_the_order_of_durations(a: u64, b: u64) {
            prop_assert_eq!(range_of(a.min(b)).cmp(&range_of(a.max(b))).is_gt(), false);
        }
    }

    #[test]
    fn each_length_has_a_range() {
        assert_eq!(range_of(u64::MAX), 16 + 59 * 8 + 7);
        assert!(middle(range_of(u64::MAX)) > 1 << 63);
        assert_eq!(percentile(&BTreeMap::new(), 95), 0);
    }
}
