//! The server as a process: command line, settings, data directory, engines, logs, metrics and signals.

#![deny(clippy::print_stdout)]

mod backend;
mod certificate;
mod certificate_expiry;
mod cli;
mod commands;
mod config;
mod control;
mod datadir;
mod files;
mod maintenance;
mod master_keys;
mod outbound_options;
mod parts;
mod server;
mod service_manager;
#[cfg(feature = "dashboard")]
mod sign_in;
mod signals;
mod start_checks;
mod start_error;
mod store_health;
mod telemetry;

pub use cli::Cli;
pub use commands::{CommandError, run};
pub use config::{
    Config, ConfigError, DEFAULT_TOML, Flags, LogFormat, SETTINGS, Secret, SessionProvider, Setting, Statements,
};
pub use server::{Server, StartError};
