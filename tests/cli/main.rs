//! The command `agentcfg` against the real server.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod account;
mod changes;
mod desk;
mod edit;
mod files;
mod killed;
mod output;
mod random;
mod terminal;
