//! Master keys of a server: their source, the check that they belong to the store, and their rotation.
//!
//! They come from the setting `master_keys`, else from the file `master.key` in the data directory. That file is made
//! at the first start, of a new store or of a restored one in which nothing is sealed, and never later: a store that
//! needs a key that is missing gets an error, not a new key.

#[cfg(test)]
mod tests;

use agentcfg_core::service::{MasterKeyError, RewrapProgress};
use agentcfg_core::vault::{KeyId, MasterKey, Vault};
use agentcfg_core::{AgentCfg, Error, ErrorKind};

use crate::process::config::Config;
use crate::process::datadir::{DataDir, DataDirError};

/// Why the master keys cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MasterKeyFault {
    /// The store needs keys, and the data directory has none.
    #[error(
        "the store in {dir} needs the master key {}, and {file} is missing: copy the file back from where it is kept (a \
         backup of the store does not contain it), or set AGENTCFG_MASTER_KEYS_FILE; {}",
        shown(.needed), lost(.dir)
    )]
    FileMissing {
        /// The data directory.
        dir: String,
        /// The key file.
        file: String,
        /// The keys that the store needs.
        needed: Vec<KeyId>,
    },
    /// The key file of a running server is missing, and the configuration has no keys.
    #[error(
        "{file} is missing, and the store of the running server needs it: copy the file back from where it is kept, or set \
         AGENTCFG_MASTER_KEYS_FILE, else the next start is refused"
    )]
    FileRemoved {
        /// The key file.
        file: String,
    },
    /// The store in a database needs keys, and the configuration has none.
    #[error(
        "the store in the database needs the master key {}: set AGENTCFG_MASTER_KEYS_FILE to a file with it, the same for \
         every server; {LOST_OF_DATABASE}",
        shown(.needed)
    )]
    NotConfigured {
        /// The keys that the store needs.
        needed: Vec<KeyId>,
    },
    /// The given keys are not those that the store needs.
    #[error(
        "the store in {dir} needs the master key {}, and {place} has {}: put back the key that belongs to this store; {}",
        shown(.needed), shown(.given), lost(.dir)
    )]
    Wrong {
        /// The data directory.
        dir: String,
        /// The source of the keys.
        place: String,
        /// The keys that the store needs.
        needed: Vec<KeyId>,
        /// The keys that were given.
        given: Vec<KeyId>,
    },
    /// The keys in the configuration are not those that the store in a database needs.
    #[error(
        "the store in the database needs the master key {}, and the setting master_keys has {}: put back the key that belongs \
         to this store, the same for every server; {LOST_OF_DATABASE}",
        shown(.needed), shown(.given)
    )]
    WrongForDatabase {
        /// The keys that the store needs.
        needed: Vec<KeyId>,
        /// The keys that were given.
        given: Vec<KeyId>,
    },
    /// The keys come from the configuration, which only its owner changes.
    #[error(
        "the master keys come from the setting master_keys (AGENTCFG_MASTER_KEYS), so they are replaced there: add a new key \
         behind the others (`openssl rand -hex 32` makes one) and restart every instance; move it to the first place and \
         restart every instance, which seals everything under it; when the log says that this is done, take the old keys \
         out and restart. A key that is still needed is asked for at the start"
    )]
    FromConfiguration,
    /// The configured keys are not a valid keyring.
    #[error("master_keys: {0}")]
    Configured(String),
    /// The data directory failed.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store failed, or its list of master keys is damaged.
    #[error("cannot check the master keys: {0}")]
    Store(String),
}

fn shown(ids: &[KeyId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The advice when a key for a store in a database is lost.
const LOST_OF_DATABASE: &str = "nothing was changed. If the key is lost for good, copy the store into a directory with \
     `agentcfg-server migrate --from postgres --to DIR` (or `--from etcd`), let `agentcfg-server backup --data DIR --out FILE` and \
     `agentcfg-server restore --from FILE --data NEW_DIR --discard-provider-keys` leave out the provider keys and the webhooks, and \
     `agentcfg-server migrate --from NEW_DIR --to …` the rest into an empty database";

fn lost(dir: &str) -> String {
    format!(
        "nothing was changed. If the key is lost for good, `agentcfg-server backup --data {dir} --out FILE` and \
         `agentcfg-server restore --from FILE --data NEW_DIR --discard-provider-keys` save all but the provider keys \
         and the webhooks"
    )
}

impl From<agentcfg_core::Error> for MasterKeyFault {
    fn from(error: agentcfg_core::Error) -> Self {
        Self::Store(format!("{error:?}"))
    }
}

impl From<MasterKeyError> for MasterKeyFault {
    fn from(error: MasterKeyError) -> Self {
        match error {
            MasterKeyError::Store(error) => error.into(),
            other => Self::Store(other.to_string()),
        }
    }
}

/// The master keys in the configuration; `None` when there are none.
///
/// # Errors
///
/// [`MasterKeyFault::Configured`] when one is not valid, or is there twice.
pub fn configured(config: &Config) -> Result<Option<Vault>, MasterKeyFault> {
    if config.master_keys.is_empty() {
        return Ok(None);
    }
    let keys = config.master_keys.iter().map(|text| text.expose().parse());
    let keys: Vec<MasterKey> = keys
        .collect::<Result<_, _>>()
        .map_err(|rule| MasterKeyFault::Configured(format!("each {rule}")))?;
    Vault::new(keys)
        .map(Some)
        .map_err(|error| MasterKeyFault::Configured(error.to_string()))
}

/// The master keys of the server. For a new store they are made when there are none.
///
/// # Errors
///
/// When the configured keys or the file are not valid.
pub fn find(config: &Config, dir: Option<&DataDir>, is_new: bool) -> Result<Option<Vault>, MasterKeyFault> {
    if let Some(vault) = configured(config)? {
        return Ok(Some(vault));
    }
    // Keys for a store in a database come from the configuration alone.
    let Some(dir) = dir else { return Ok(None) };
    let keys = match dir.master_keys()? {
        None if is_new => Some(dir.make_master_key()?),
        found => found,
    };
    keys.map(keyring).transpose()
}

/// As [`find`], for a command that makes and changes nothing.
///
/// # Errors
///
/// As [`find`].
pub fn find_unchanged(config: &Config, dir: &DataDir) -> Result<Option<Vault>, MasterKeyFault> {
    match configured(config)? {
        Some(vault) => Ok(Some(vault)),
        None => dir.master_keys_unchanged()?.map(keyring).transpose(),
    }
}

/// Checks that the keys are those that the store needs. A store that never had a master key gets one.
///
/// # Errors
///
/// When the store needs keys that are not there.
pub async fn check_against_store(
    service: &AgentCfg,
    config: &Config,
    dir: Option<&DataDir>,
) -> Result<(), MasterKeyFault> {
    if service.vault().is_none() {
        let Some(dir) = dir else {
            // Without a master key no provider key can be saved; all else works.
            let needed = service.master_keys_needed().await?;
            return match !needed.keys.is_empty() || needed.any_sealed {
                true => Err(MasterKeyFault::NotConfigured { needed: needed.keys }),
                false => Ok(()),
            };
        };
        missing_file(service, dir).await?;
        // The store was made by an app without master keys, or has just been restored.
        service.set_vault(keyring(dir.make_master_key()?)?);
    }
    match service.adopt_master_keys().await {
        // On a full disk a server serves reads, also if a rotation was cut off there.
        Err(MasterKeyError::Store(error)) if error.kind() == ErrorKind::Unavailable => {
            go_on_with_old_key(service, error).await
        }
        adopted => adopted,
    }
    .map_err(|error| fault_of(error, config, dir))
}

/// Seals under the key that the store names first, where the first of the keyring cannot be written there. The next
/// start tries again.
async fn go_on_with_old_key(service: &AgentCfg, error: Error) -> Result<(), MasterKeyError> {
    service.verify_master_keys().await?;
    let listed = service.master_keys_needed().await?.keys;
    let (Some(old), Some(vault)) = (listed.first(), service.vault()) else {
        return Err(error.into());
    };
    service.set_vault(vault.sealing_under(*old));
    tracing::warn!(
        ?error,
        "the first master key cannot be noted in the store, so the old one stays in use until the next start"
    );
    Ok(())
}

/// Checks that the master keys fit the store, and changes nothing.
///
/// # Errors
///
/// When keys are missing or wrong, or storage fails.
pub async fn verify_against_store(service: &AgentCfg, config: &Config, dir: &DataDir) -> Result<(), MasterKeyFault> {
    if service.vault().is_none() {
        return missing_file(service, dir).await;
    }
    let verified = service.verify_master_keys().await;
    verified.map_err(|error| fault_of(error, config, Some(dir)))
}

/// Refuses a store that needs master keys, whose file is not there.
async fn missing_file(service: &AgentCfg, dir: &DataDir) -> Result<(), MasterKeyFault> {
    let needed = service.master_keys_needed().await?;
    match !needed.keys.is_empty() || needed.any_sealed {
        false => Ok(()),
        true => Err(MasterKeyFault::FileMissing {
            dir: dir.path().display().to_string(),
            file: dir.master_key_path().display().to_string(),
            needed: needed.keys,
        }),
    }
}

fn fault_of(error: MasterKeyError, config: &Config, dir: Option<&DataDir>) -> MasterKeyFault {
    match error {
        MasterKeyError::Missing { needed, given } => match dir {
            Some(dir) => MasterKeyFault::Wrong {
                dir: dir.path().display().to_string(),
                place: match config.master_keys.is_empty() {
                    true => dir.master_key_path().display().to_string(),
                    false => "the setting master_keys".to_owned(),
                },
                needed,
                given,
            },
            None => MasterKeyFault::WrongForDatabase { needed, given },
        },
        other => other.into(),
    }
}

/// Whether provider keys may still be sealed under another key than the first.
///
/// # Errors
///
/// When storage fails.
pub async fn is_pending(service: &AgentCfg) -> Result<bool, MasterKeyFault> {
    let needed = service.master_keys_needed().await?.keys;
    let sealing = service.vault().map(|vault| vault.sealing_key());
    Ok(needed.len() > 1 || needed.first().copied() != sealing)
}

/// The result of [`reseal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resealed {
    /// Everything is sealed under the first master key. No other key is needed any more.
    Everything(RewrapProgress),
    /// Some records open under no master key and were left as they are.
    AllButUnreadable(RewrapProgress),
    /// Another key has become the sealing one meanwhile, so older keys are still needed.
    Superseded,
}

/// Seals every provider key and every secret of a webhook under the first master key, while `service` goes on serving.
///
/// # Errors
///
/// When the store fails; a later call resumes the work.
pub async fn reseal(
    service: &AgentCfg,
    report: &mut (dyn FnMut(RewrapProgress) + Send),
) -> Result<Resealed, MasterKeyFault> {
    let done = service.rewrap_provider_keys(report).await?;
    Ok(match done.unreadable {
        _ if is_pending(service).await? => Resealed::Superseded,
        0 => Resealed::Everything(done),
        _ => Resealed::AllButUnreadable(done),
    })
}

/// Replaces the master key in the data directory and seals every provider key under the new one, while `service` goes
/// on serving. Resumes a rotation that was interrupted. `say` is called with each progress message.
///
/// The old keys stay in the file until every provider key is sealed under the new one, and longer unless `drop_old`, so
/// that a kill at any point leaves a directory that serves.
///
/// # Errors
///
/// When the keys come from the configuration, or the file or the store fail.
pub async fn rotate(
    service: &AgentCfg,
    dir: &DataDir,
    drop_old: bool,
    say: &mut (dyn FnMut(String) + Send),
) -> Result<(), MasterKeyFault> {
    let mut keys = dir.master_keys()?.ok_or_else(|| DataDirError::Missing {
        path: dir.master_key_path(),
    })?;
    let needed = service.master_keys_needed().await?.keys;
    let given: Vec<KeyId> = keys.iter().map(MasterKey::id).collect();
    // The file may have changed since the server read it.
    if needed.iter().any(|id| !given.contains(id)) {
        return Err(MasterKeyFault::Wrong {
            dir: dir.path().display().to_string(),
            place: dir.master_key_path().display().to_string(),
            needed,
            given,
        });
    }
    service.set_vault(keyring(keys.clone())?);
    if is_pending(service).await? {
        say(format!("resuming the rotation to the master key {}", keys[0].id()));
    } else {
        keys = dir.add_master_key(keys)?;
        service.set_vault(keyring(keys.clone())?);
        say(format!("made the master key {}", keys[0].id()));
    }
    let mut report = |progress: RewrapProgress| {
        say(format!(
            "{} provider keys and webhooks checked, {} sealed again",
            progress.examined, progress.rewrapped
        ));
    };
    let outcome = reseal(service, &mut report).await?;
    let old = shown(&keys[1..].iter().map(MasterKey::id).collect::<Vec<_>>());
    match outcome {
        Resealed::Everything(_) => {}
        Resealed::AllButUnreadable(done) => {
            say(format!(
                "{} provider keys and webhooks open under no master key and were left as they are, and so were the master keys {old}; the log \
                 names the workspaces, which must save their keys again and rotate the secrets of their webhooks",
                done.unreadable
            ));
            return Ok(());
        }
        Resealed::Superseded => {
            say("another rotation has begun meanwhile, run this again to finish it".to_owned());
            return Ok(());
        }
    }
    say(format!(
        "done: everything is sealed under the master key {}",
        keys[0].id()
    ));
    // The path is absolute, because a server that carries out the order has another working directory than the command
    // that prints this.
    let file = std::path::absolute(dir.master_key_path()).unwrap_or_else(|_| dir.master_key_path());
    let file = file.display();
    if keys.len() > 1 && drop_old {
        keys.truncate(1);
        dir.replace_master_keys(&keys)?;
        service.set_vault(keyring(keys)?);
        say(format!("removed from {file}: {old}"));
    } else if keys.len() > 1 {
        say(format!(
            "still in {file}, for backups made before: {old} (--drop-old removes what a rotation replaced)"
        ));
    }
    say(format!("keep a new copy of {file} now"));
    Ok(())
}

fn keyring(keys: Vec<MasterKey>) -> Result<Vault, MasterKeyFault> {
    Vault::new(keys).map_err(|error| MasterKeyFault::Configured(error.to_string()))
}
