//! `check-config`: the settings, without a start.

use std::process::ExitCode;

use super::error::CommandError;
use super::runtime::runtime;
use super::stdout::{note, say};
use crate::process::backend::DatabaseLocation;
use crate::process::certificate::Certificate;
use crate::process::cli::SettingsArgs;
use crate::process::config::{Config, Flags};
use crate::process::start_checks::start_faults;

pub(super) fn run(args: &SettingsArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    // One that cannot be used is among the faults.
    let certificate = Certificate::load(&config).ok().flatten();
    let of_certificate = certificate.and_then(|certificate| certificate.warning());
    for warning in config.warnings.iter().chain(&of_certificate) {
        note!("warning: {warning}");
    }
    let faults = runtime()?.block_on(start_faults(&config));
    if !faults.is_empty() {
        return Err(faults.join("\n").into());
    }
    let place = match DatabaseLocation::of(&config) {
        None => format!("in {}", config.data.display()),
        Some(DatabaseLocation::Postgres(_)) => "in PostgreSQL, which was not asked".to_owned(),
        Some(DatabaseLocation::Etcd(_)) => "in etcd, which was not asked".to_owned(),
    };
    say!(
        "the settings are good: {}://{}, the store {place}",
        config.scheme(),
        config.listen
    );
    Ok(ExitCode::SUCCESS)
}
