//! The server as a process: command line, settings, data directory, engines, logs, metrics and signals.

pub mod backend;
pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
pub mod datadir;
pub mod master_keys;
pub mod server;
pub mod signals;
pub mod telemetry;
