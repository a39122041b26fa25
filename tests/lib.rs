//! End-to-end tests of agentcfg through the real binary.
//!
//! Each test binary is a folder beside this file; they share [`harness`].

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

pub mod harness;
