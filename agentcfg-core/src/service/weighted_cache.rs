//! A cache that is bounded by the total weight of its entries. A single entry may take most of it.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// A cache for about so many entries, of this weight together. It has one shard: shards divide the capacity, and an
/// entry that is heavier than its shard is not kept.
pub(super) fn weighted_cache<K, V, W>(items: usize, weight: u64, weighter: W) -> Cache<K, V, W>
where
    K: Eq + Hash,
    V: Clone,
    W: Weighter<K, V> + Clone,
{
    let mut options = OptionsBuilder::new();
    options
        .estimated_items_capacity(items)
        .weight_capacity(weight)
        .shards(1);
    match options.build() {
        Ok(options) => Cache::with_options(
            options,
            weighter,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        // Fails only without a capacity.
        Err(_) => Cache::with_weighter(items, weight, weighter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct ByValue;

    impl Weighter<u8, u64> for ByValue {
        fn weight(&self, _: &u8, value: &u64) -> u64 {
            *value
        }
    }

    #[test]
    fn one_entry_can_have_most_of_the_capacity() {
        let cache = weighted_cache(1024, 1 << 20, ByValue);
        cache.insert(1, 1_000_000);
        assert_eq!(cache.get(&1), Some(1_000_000));
        cache.insert(2, (1 << 20) + 1);
        assert_eq!(cache.get(&2), None, "more than the capacity");
    }
}
