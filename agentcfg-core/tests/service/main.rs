//! The rules of the service, noun by noun, through its public interface alone.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod faults;
mod sessions;
mod support;
