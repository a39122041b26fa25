//! A value that is replaced while others read it.

use std::sync::RwLock;

use crate::sync::{read_lock, write_lock};

/// A value of which each reader gets a clone, such as an [`Arc`](std::sync::Arc) of what may be replaced.
#[derive(Debug)]
pub(super) struct Swapped<T>(RwLock<T>);

impl<T: Clone> Swapped<T> {
    pub(super) fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub(super) fn get(&self) -> T {
        read_lock(&self.0).clone()
    }

    pub(super) fn set(&self, value: T) {
        *write_lock(&self.0) = value;
    }
}
