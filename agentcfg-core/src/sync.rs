//! Locks whose values stay valid where a thread panics: each change is made as a whole, or what it leaves is checked
//! again.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks a mutex, also after a panic of another thread that held it.
///
/// ```
/// let numbers = std::sync::Mutex::new(vec![1]);
/// agentcfg_core::sync::lock(&numbers).push(2);
/// ```
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], for reading.
///
/// ```
/// let number = std::sync::RwLock::new(1);
/// assert_eq!(*agentcfg_core::sync::read_lock(&number), 1);
/// ```
pub fn read_lock<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], for writing.
///
/// ```
/// let number = std::sync::RwLock::new(1);
/// *agentcfg_core::sync::write_lock(&number) = 2;
/// ```
pub fn write_lock<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
