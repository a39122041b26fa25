//! End-to-end tests of agentcfg through the real binary.
//!
//! The tests live in the test binaries beside this file; what they share is [`harness`].

// Tests watch real processes, and these live in real time.
#![allow(clippy::disallowed_methods)]

pub mod harness;
