//! `compact`: gives back the space of deleted and replaced records.

use std::process::ExitCode;
use std::sync::Arc;

use agentcfg_core::AgentCfg;

use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::runtime::runtime;
use super::stdout::{Said, say};
use super::store::{EnvVars, check_hint, directory_with_store};
use crate::process::backend::{CompactError, compact, finish_removals, open_store};
use crate::process::cli::CompactArgs;
use crate::process::config::{Config, Flags};
use crate::process::control::{self, Order};
use crate::process::datadir::DataDirError;

pub(super) fn run(args: &CompactArgs, environment: impl EnvVars) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    require_named_directory(&config)?;
    let dir = directory_with_store(&config, args.data.is_some())?;
    match dir.lock() {
        Ok(lock) => {
            let store = Arc::new(open_store(&lock, config.cache_mb)?);
            let service = AgentCfg::builder(Arc::clone(&store)).build();
            let removed = runtime()?.block_on(finish_removals(&service));
            let compacted = compact(&store, |line| say!("{line}"));
            let line = compacted.map_err(|error| match error {
                CompactError::Output(_) => {
                    format!("{error}; free some space there: it needs room for all records; the store was not changed")
                }
                error => format!("{error}; {}", check_hint(&dir)),
            })?;
            store.close();
            say!("{line}");
            removed?;
        }
        // A running server has the store open, so it replaces the file.
        Err(DataDirError::Locked { path, holder }) => {
            control::request(&dir, &Order::Compact, &mut Said).map_err(|error| {
                format!(
                    "{} is in use by {holder}, and it did not compact the store: {error}",
                    path.display()
                )
            })?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}
