//! Values that requests share while any of them holds one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use crate::sync::lock;

/// The values in use, by key.
pub(super) struct WeakMap<K, V>(Mutex<HashMap<K, Weak<V>>>);

impl<K, V> Default for WeakMap<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, V> WeakMap<K, V> {
    /// The value of a key if it is in use, or a new one.
    pub(super) fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut values = lock(&self.0);
        if let Some(known) = values.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        // Values that are in use no longer are removed before the table would grow.
        if values.len() == values.capacity() {
            values.retain(|_, value| value.strong_count() > 0);
        }
        let made = Arc::new(make());
        values.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shared_while_it_is_held() {
        let map = WeakMap::default();
        let one = map.get_or_insert_with("a", || 1);
        assert_eq!(*map.get_or_insert_with("a", || 2), 1);
        drop(one);
        assert_eq!(*map.get_or_insert_with("a", || 3), 3);
    }

    #[test]
    fn values_that_are_not_held_are_removed() {
        let map = WeakMap::default();
        for key in 0..1000 {
            map.get_or_insert_with(key, || ());
        }
        assert!(map.0.lock().unwrap().len() < 16);
    }
}
