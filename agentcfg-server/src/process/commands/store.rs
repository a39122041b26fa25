//! `check`, and what it has in common with `backup` and `compact`.

use std::ffi::OsString;
use std::process::ExitCode;

use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::program::program;
use super::stdout::say;
use crate::process::backend::{self, BackendError, DatabaseLocation, OpenError};
use crate::process::cli::CheckArgs;
use crate::process::config::{Config, Flags};
use crate::process::datadir::DataDir;

/// The environment variables, which tests leave out.
pub(super) trait EnvVars: IntoIterator<Item = (OsString, OsString)> {}

impl<I: IntoIterator<Item = (OsString, OsString)>> EnvVars for I {}

/// The advice to check a store.
pub(super) fn check_hint(dir: &DataDir) -> String {
    format!("{} check --data {} says what is wrong", program(), dir.path().display())
}

pub(super) fn check(args: &CheckArgs, environment: impl EnvVars) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    require_named_directory(&config)?;
    let dir = directory_with_store(&config, args.data.is_some())?;
    let _lock = dir.lock_to_read()?;
    let report = backend::check(dir.store_path()).map_err(|error| match error {
        OpenError::Damaged(_) => format!(
            "the store in {} is not sound: {error}; restore a backup into a new directory with `agentcfg-server restore`",
            dir.path().display()
        ),
        // The error does not concern the store itself.
        source => BackendError::in_dir(&dir, source).to_string(),
    })?;
    for problem in &report.problems {
        say!("{problem}");
    }
    for (workspace, left) in &report.removals {
        say!(
            "the workspace {workspace} was deleted, and {left} records of it are left; a server removes them once it runs"
        );
    }
    let records: u64 = report.records.values().sum();
    if report.is_sound() {
        say!("sound: {records} records in {}", dir.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} problems, {records} sound records in {}; restore a backup into a new directory with `agentcfg-server restore`",
        report.problems.len(),
        dir.path().display()
    );
    Ok(ExitCode::FAILURE)
}

/// The data directory, which must have a store. With `database_url` or `etcd_endpoints` the store is in the database,
/// unless the command line names a directory that has one, such as from before a migration.
pub(super) fn directory_with_store(config: &Config, is_named: bool) -> Result<DataDir, CommandError> {
    let dir = DataDir::open(&config.data).and_then(|dir| dir.require_store().map(|()| dir));
    match (dir, DatabaseLocation::of(config)) {
        (Ok(dir), None) => Ok(dir),
        (Ok(dir), Some(_)) if is_named => Ok(dir),
        (Err(error), None) => Err(error.into()),
        (Err(error), Some(location)) if is_named => {
            Err(format!("{error}; {}, and {}", location.is_set(), location.other_tools()).into())
        }
        (_, Some(location)) => Err(format!("{}, and {}", location.is_set(), location.other_tools()).into()),
    }
}
