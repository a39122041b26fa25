//! A value that is replaced while others read it.

use std::sync::{PoisonError, RwLock};

/// A value of which each reader gets a clone, such as an [`Arc`](std::sync::Arc) of what may be replaced.
#[derive(Debug)]
pub(super) struct Swapped<T>(RwLock<T>);

impl<T: Clone> Swapped<T> {
    pub(super) fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub(super) fn get(&self) -> T {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}
