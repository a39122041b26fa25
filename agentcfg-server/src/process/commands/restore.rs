//! `restore`: a data directory from a backup.
//!
//! The store is prepared beside its final path and appears there when it is whole and fit for its first start. So a run
//! that fails or is killed leaves a directory that the next run can fill.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::service::MasterKeysNeeded;
use agentcfg_core::vault::Vault;

use super::backup::decompressed;
use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::program::program;
use super::runtime::runtime;
use super::stdout::say;
use super::store::EnvVars;
use crate::process::backend::{DatabaseLocation, StagedStore};
use crate::process::cli::RestoreArgs;
use crate::process::config::{Config, Flags};
use crate::process::datadir::{DataDir, DataLock};
use crate::process::master_keys;

pub(super) fn run(args: &RestoreArgs, environment: impl EnvVars) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), environment)?;
    if let Some(location) = DatabaseLocation::of(&config) {
        return Err(format!(
            "{}, and restore fills a data directory: {}",
            location.is_set(),
            location.other_tools()
        )
        .into());
    }
    require_named_directory(&config)?;
    let input = input(&args.from)?;
    let is_new = !DataDir::is_there(&config.data)?;
    let dir = DataDir::open_or_create(&config.data)?;
    dir.require_no_store()?;
    // What a server has written into the lock file shows that there was a store.
    let had_lock = dir.has_lock();
    let lock = dir.lock_quietly()?;
    let told = match fill(&lock, input, &config, args.discard_provider_keys) {
        Ok(told) => told,
        Err(error) => {
            // The reason of the failed restore is more important than this error.
            if !had_lock {
                let _ = lock.remove();
            }
            if is_new {
                let _ = fs::remove_dir(dir.path());
            }
            return Err(format!("cannot restore {}: {}", args.from.display(), with_cause(&error)).into());
        }
    };
    for line in told {
        say!("{line}");
    }
    say!("start with: {} serve --data {}", program(), dir.path().display());
    Ok(ExitCode::SUCCESS)
}

/// The backup, which may be compressed.
fn input(from: &Path) -> Result<Box<dyn Read + Send>, CommandError> {
    let cannot = |error: io::Error| format!("cannot read {}: {error}", from.display());
    if from.as_os_str() == "-" {
        return Ok(decompressed(io::stdin()).map_err(cannot)?);
    }
    let input = File::open(from).map_err(cannot)?;
    if input.metadata()?.is_dir() {
        let shown = from.display();
        return Err(format!("{shown} is a directory; --from must name a file that `backup` has written").into());
    }
    Ok(decompressed(input).map_err(cannot)?)
}

/// Puts the store of a backup into the directory. Returns the lines to print.
fn fill(lock: &DataLock, input: impl Read, config: &Config, discard: bool) -> Result<Vec<String>, CommandError> {
    let staged = StagedStore::begin(lock)?;
    let records = staged.fill(input)?.records;
    let mut told = vec![format!(
        "restored {records} records into {}",
        lock.dir().path().display()
    )];
    let store = Arc::new(staged.open(config.cache_mb)?);
    let service = AgentCfg::builder(Arc::clone(&store)).build();
    told.extend(runtime()?.block_on(fit_master_keys(&service, lock.dir(), config, discard))?);
    drop(service);
    store.close();
    staged.publish()?;
    Ok(told)
}

/// An error with its cause, such as the error of the disk.
fn with_cause(error: &CommandError) -> String {
    match error.downcast_ref::<agentcfg_core::Error>().and_then(Error::source) {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

/// Leaves out the list of master keys of a store in which nothing is sealed. Then any key works: the configured one, the
/// one in the file, or one that the first start creates.
pub(super) async fn leave_out_unused_master_keys(
    service: &AgentCfg,
    needed: &MasterKeysNeeded,
) -> Result<Option<String>, CommandError> {
    if needed.any_sealed || needed.keys.is_empty() {
        return Ok(None);
    }
    service.forget_master_keys().await?;
    Ok(Some(
        "left out the list of master keys: nothing in the store is sealed under one".to_owned(),
    ))
}

/// Prepares a restored store for its first start, or refuses it for a missing master key: a backup does not contain the
/// key.
async fn fit_master_keys(
    service: &AgentCfg,
    dir: &DataDir,
    config: &Config,
    discard: bool,
) -> Result<Vec<String>, CommandError> {
    let mut told = Vec::new();
    if discard {
        let discarded = service.discard_provider_keys("agentcfg-server restore").await?;
        told.push(format!("deleted {discarded} saved provider keys and webhooks"));
    }
    let needed = service.master_keys_needed().await?;
    told.extend(leave_out_unused_master_keys(service, &needed).await?);
    if !needed.any_sealed {
        return Ok(told);
    }
    let file = dir.master_key_path();
    let given = master_keys::find(config, Some(dir), false)?;
    let place = match config.master_keys.is_empty() {
        true => file.display().to_string(),
        false => "the setting master_keys".to_owned(),
    };
    let opens = |vault: &Vault| needed.keys.iter().all(|id| vault.key_ids().any(|known| known == *id));
    if given.as_ref().is_some_and(opens) {
        told.push(format!(
            "{place} opens the saved provider keys and the secrets of webhooks"
        ));
        return Ok(told);
    }
    let names: Vec<String> = needed.keys.iter().map(ToString::to_string).collect();
    told.push(format!(
        "the backup holds provider keys or webhooks that are sealed under the master key {names}, which no backup contains\n\
         before you start: copy the file master.key of the old data directory to {file}, or set AGENTCFG_MASTER_KEYS_FILE \
         if the old server had it so\n\
         if that key is lost: remove {dir} and restore again with --discard-provider-keys",
        names = names.join(", "),
        file = file.display(),
        dir = dir.path().display(),
    ));
    if given.is_some() {
        told.push(format!("{place} has another key"));
    }
    Ok(told)
}
