//! `rotate-master-key`: adds a new master key and seals everything under it.

use std::process::ExitCode;

use agentcfg_core::AgentCfg;

use super::error::CommandError;
use super::preconditions::require_named_directory;
use super::runtime::runtime;
use super::stdout::{Said, say};
use crate::process::backend::{DatabaseLocation, open_store};
use crate::process::cli::RotateArgs;
use crate::process::config::{Config, Flags};
use crate::process::control::{self, Order};
use crate::process::datadir::{DataDir, DataDirError};
use crate::process::master_keys::{self, MasterKeyFault};

pub(super) fn run(args: &RotateArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    if !config.master_keys.is_empty() {
        return Err(MasterKeyFault::FromConfiguration.into());
    }
    if let Some(location) = DatabaseLocation::of(&config).filter(|_| args.data.is_none()) {
        return Err(format!(
            "{}, and the keys of a store in a database are those of the setting master_keys; to replace the key of a data directory \
             all the same, name it with --data",
            location.is_set()
        )
        .into());
    }
    require_named_directory(&config)?;
    let dir = DataDir::open(&config.data)?;
    dir.require_store()?;
    let drop_old = args.drop_old;
    match dir.lock() {
        Ok(lock) => runtime()?.block_on(async {
            let vault = master_keys::find(&config, Some(&dir), false)?;
            let mut builder = AgentCfg::builder(open_store(&lock, config.cache_mb)?);
            if let Some(vault) = vault {
                builder = builder.vault(vault);
            }
            let service = builder.build();
            master_keys::check_against_store(&service, &config, Some(&dir)).await?;
            let mut say = |line: String| say!("{line}");
            master_keys::rotate(&service, &dir, drop_old, &mut say).await?;
            Ok(ExitCode::SUCCESS)
        }),
        // A running server has the store open and must use the new key, so it runs the rotation.
        Err(DataDirError::Locked { path, holder }) => {
            let order = Order::RotateMasterKey { drop_old };
            control::request(&dir, &order, &mut Said).map_err(|error| {
                format!(
                    "{} is in use by {holder}, and it did not finish the rotation: {error}",
                    path.display()
                )
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.into()),
    }
}
