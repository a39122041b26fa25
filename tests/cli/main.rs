//! The command `agentcfg` against the real server.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod changes;
mod contexts;
mod edit;
mod files;
mod fixture;
mod import;
mod import_conflicts;
mod import_versions;
mod interrupted;
mod login;
mod operator;
mod output;
mod proxies;
mod prune;
mod random;
mod terminal;
mod validate;
