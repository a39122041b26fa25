//! Master keys: whether the keyring fits the store, and sealing everything anew under another key.
//!
//! The store lists, by check values, the master keys that something in it may be sealed under; the
//! first one seals. Replacing a master key moves through three states, each of which a restart finds
//! complete, so that it can be killed at any point and be taken up again:
//!
//! 1. The new key is put before the old ones in that list. From this commit on nothing is sealed under
//!    an old key any more, because each save checks the list in its commit.
//! 2. Each provider key is opened and sealed under the new key.
//! 3. The old keys are taken off the list.

use super::AgentCfg;
use super::change::{Attempt, failed};
use super::schema::{self, StoredMasterKeys, StoredProviderKey};
use crate::error::{Error, ErrorKind};
use crate::model::{Provider, WorkspaceId};
use crate::store::{Batch, Check, CommitError, Key, Kind, Record, Scan, Write};
use crate::vault::{KeyId, Vault};

/// At most so many provider keys are sealed anew in one commit.
const BATCH: usize = 64;

/// What a store says of the master keys that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeysNeeded {
    /// The keys that something may be sealed under, the sealing one first. Empty for a store that was
    /// never used with a master key.
    pub keys: Vec<KeyId>,
    /// Whether any provider key is saved.
    pub any_sealed: bool,
}

/// Why the master keys of a service do not fit its store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MasterKeyError {
    /// Keys that the store needs are not there: what is sealed under them could not be opened.
    #[error("the store needs the master keys {}, and was given {}", shown(.needed), shown(.given))]
    Missing {
        /// What the store needs, the sealing key first.
        needed: Vec<KeyId>,
        /// What the service has.
        given: Vec<KeyId>,
    },
    /// The store's check value of a key does not open, though the key has the right name.
    #[error("the check value of the master key {0} does not open: the store's list of master keys is damaged")]
    Damaged(KeyId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

fn shown(ids: &[KeyId]) -> String {
    if ids.is_empty() {
        return "none".into();
    }
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How far [`AgentCfg::rewrap_provider_keys`] has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewrapProgress {
    /// Provider keys looked at.
    pub examined: u64,
    /// Those of them that were sealed anew.
    pub rewrapped: u64,
    /// Those that do not open under any key. They are left as they are.
    pub unreadable: u64,
}

impl AgentCfg {
    /// What the store says of the master keys that it needs.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub async fn master_keys_needed(&self) -> Result<MasterKeysNeeded, Error> {
        let list = schema::master_keys();
        let scan = Scan {
            limit: 1,
            ..Scan::all(schema::sealed_keys(), Kind::SealedKey)
        };
        let scanned = self.store().scan(&scan.with([list.clone()])).await?;
        let listed = read_list(&list, scanned.with.first().and_then(Option::as_ref))?;
        Ok(MasterKeysNeeded {
            keys: listed.iter().flat_map(StoredMasterKeys::ids).collect(),
            any_sealed: !scanned.entries.is_empty(),
        })
    }

    /// Holds the keyring against the store, and makes its first key the sealing one. A store that was
    /// never used with a master key takes the keyring as its own.
    ///
    /// Call it before requests are served, so that a wrong master key is found out at once. It does
    /// nothing for a service and a store that both have no master key.
    ///
    /// # Errors
    ///
    /// [`MasterKeyError::Missing`] when the store needs keys that are not in the keyring.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::service::MasterKeyError;
    /// use agentcfg_core::store::MemoryStore;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::AgentCfg;
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let key = || MasterKey::generate(&SystemEntropy);
    /// let service = AgentCfg::builder(MemoryStore::new()).vault(Vault::new(vec![key()?])?).build();
    /// service.adopt_master_keys().await?;
    ///
    /// service.set_vault(Vault::new(vec![key()?])?);
    /// assert!(matches!(service.adopt_master_keys().await, Err(MasterKeyError::Missing { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn adopt_master_keys(&self) -> Result<(), MasterKeyError> {
        let Some(vault) = self.vault() else {
            let needed = self.master_keys_needed().await?.keys;
            let given = Vec::new();
            return if needed.is_empty() {
                Ok(())
            } else {
                Err(MasterKeyError::Missing { needed, given })
            };
        };
        loop {
            if let Attempt::Done(()) = self.try_adopt(&vault).await? {
                return Ok(());
            }
        }
    }

    async fn try_adopt(&self, vault: &Vault) -> Result<Attempt<()>, MasterKeyError> {
        let (key, record, listed) = self.master_key_list().await?;
        let mut keys = listed.keys;
        let needed: Vec<KeyId> = keys.iter().map(crate::vault::Sealed::key_id).collect();
        let given: Vec<KeyId> = vault.key_ids().collect();
        if needed.iter().any(|id| !given.contains(id)) {
            return Err(MasterKeyError::Missing { needed, given });
        }
        for check_value in &keys {
            vault
                .verify(check_value)
                .map_err(|_| MasterKeyError::Damaged(check_value.key_id()))?;
        }
        let sealing = vault.sealing_key();
        if needed.first() == Some(&sealing) {
            return Ok(Attempt::Done(()));
        }
        keys.retain(|check_value| check_value.key_id() != sealing);
        keys.insert(0, vault.check_value(self.entropy()).map_err(Error::from)?);
        Ok(self.put_list(key, record.as_ref(), &StoredMasterKeys { keys }).await?)
    }

    /// Seals every provider key under the keyring's first key, and then takes the other keys off the
    /// store's list. The service goes on serving meanwhile. `progress` is told after each step.
    ///
    /// After an error, or a kill, what was done stays and a later call takes it up.
    ///
    /// # Errors
    ///
    /// As [`Self::adopt_master_keys`].
    pub async fn rewrap_provider_keys(
        &self,
        progress: &mut (dyn FnMut(RewrapProgress) + Send),
    ) -> Result<RewrapProgress, MasterKeyError> {
        self.adopt_master_keys().await?;
        let mut done = RewrapProgress::default();
        let Some(vault) = self.vault() else {
            return Ok(done);
        };
        let mut after: Option<Box<str>> = None;
        loop {
            let scan = Scan {
                limit: BATCH,
                after: after.take(),
                ..Scan::all(schema::sealed_keys(), Kind::SealedKey)
            };
            let entries = self.store().scan(&scan).await.map_err(Error::from)?.entries;
            let Some((last, _)) = entries.last() else { break };
            after = Some(last.item().into());
            let places = entries
                .iter()
                .map(|(key, _)| place(key))
                .collect::<Result<Vec<_>, _>>()?;
            let Some((rewrapped, unreadable)) = self.settle(|| self.try_rewrap(&vault, &places)).await? else {
                // Somebody else began another replacement, which will seal these anew too.
                return Ok(done);
            };
            done.examined += places.len() as u64;
            done.rewrapped += rewrapped;
            done.unreadable += unreadable;
            progress(done);
        }
        loop {
            let (key, record, mut listed) = self.master_key_list().await?;
            if listed.sealing_key() != Some(vault.sealing_key()) || listed.keys.len() == 1 {
                return Ok(done);
            }
            listed.keys.truncate(1);
            if let Attempt::Done(()) = self.put_list(key, record.as_ref(), &listed).await? {
                return Ok(done);
            }
        }
    }

    /// Seals some provider keys anew in one commit. Gives how many, and how many do not open; `None` when
    /// another key than this keyring's first has become the sealing one.
    async fn try_rewrap(
        &self,
        vault: &Vault,
        places: &[(WorkspaceId, Provider)],
    ) -> Result<Attempt<Option<(u64, u64)>>, Error> {
        let mut keys: Vec<Key> = places
            .iter()
            .map(|(workspace, provider)| schema::provider_key(*workspace, *provider))
            .collect();
        keys.push(schema::master_keys());
        let mut records = self.store().get(&keys).await?;
        let (list, list_record) = (schema::master_keys(), records.pop().flatten());
        let (Some(listed), Some(list_record)) = (read_list(&list, list_record.as_ref())?, list_record) else {
            return Ok(Attempt::Done(None));
        };
        if listed.sealing_key() != Some(vault.sealing_key()) {
            return Ok(Attempt::Done(None));
        }
        let mut batch = Batch {
            checks: vec![Check::Version(list, list_record.version)],
            writes: Vec::new(),
        };
        let (mut rewrapped, mut unreadable) = (0, 0);
        for (((workspace, provider), key), record) in places.iter().zip(&keys).zip(&records) {
            // One that was deleted since the scan needs nothing.
            let Some(record) = record else { continue };
            let mut stored: StoredProviderKey = schema::decode(key, record)?;
            if stored.sealed.key_id() == vault.sealing_key() {
                continue;
            }
            match vault.open(*workspace, *provider, &stored.sealed) {
                Ok(credential) => {
                    stored.sealed = vault.seal(*workspace, *provider, &credential, self.entropy())?;
                    batch.checks.push(Check::Version(key.clone(), record.version));
                    batch.writes.push(Write::Put(key.clone(), schema::encode(&stored)?));
                    rewrapped += 1;
                }
                Err(error) => {
                    tracing::error!(%workspace, %provider, %error, "a saved provider key does not open and is left as it is");
                    unreadable += 1;
                }
            }
        }
        if batch.writes.is_empty() {
            return Ok(Attempt::Done(Some((0, unreadable))));
        }
        match self.store().commit(batch).await {
            Ok(_) => Ok(Attempt::Done(Some((rewrapped, unreadable)))),
            Err(CommitError::Conflict(_)) => Ok(Attempt::Raced),
            Err(error) => Err(failed(error)),
        }
    }

    /// Deletes every saved provider key, for a store whose master keys are lost. Each deletion is in its
    /// workspace's audit log, in the name of the operator `by`. Gives how many there were.
    ///
    /// # Errors
    ///
    /// When storage fails; a later call goes on.
    pub async fn discard_provider_keys(&self, by: &str) -> Result<u64, Error> {
        let mut discarded = 0;
        loop {
            let scan = Scan {
                limit: BATCH,
                ..Scan::all(schema::sealed_keys(), Kind::SealedKey)
            };
            let entries = self.store().scan(&scan).await?.entries;
            if entries.is_empty() {
                return Ok(discarded);
            }
            for (key, _) in &entries {
                let (workspace, provider) = place(key)?;
                self.settle(|| self.try_discard_provider_key(workspace, provider, by))
                    .await?;
                discarded += 1;
            }
        }
    }

    /// Makes a store without provider keys forget its master keys, so that any keyring fits it. Only for
    /// a store that nothing else uses meanwhile.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when a provider key is saved.
    pub async fn forget_master_keys(&self) -> Result<(), Error> {
        if self.master_keys_needed().await?.any_sealed {
            return Err(Error::new(ErrorKind::Conflict, "there are saved provider keys"));
        }
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Delete(schema::master_keys())],
        };
        self.store().commit(batch).await.map(drop).map_err(failed)
    }

    async fn master_key_list(&self) -> Result<(Key, Option<Record>, StoredMasterKeys), Error> {
        let key = schema::master_keys();
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let listed = read_list(&key, record.as_ref())?.unwrap_or(StoredMasterKeys { keys: Vec::new() });
        Ok((key, record, listed))
    }

    async fn put_list(&self, key: Key, before: Option<&Record>, list: &StoredMasterKeys) -> Result<Attempt<()>, Error> {
        let check = match before {
            Some(record) => Check::Version(key.clone(), record.version),
            None => Check::Absent(key.clone()),
        };
        let batch = Batch {
            checks: vec![check],
            writes: vec![Write::Put(key, schema::encode(list)?)],
        };
        match self.store().commit(batch).await {
            Ok(_) => Ok(Attempt::Done(())),
            Err(CommitError::Conflict(_)) => Ok(Attempt::Raced),
            Err(error) => Err(failed(error)),
        }
    }
}

fn read_list(key: &Key, record: Option<&Record>) -> Result<Option<StoredMasterKeys>, Error> {
    record.map(|record| schema::decode(key, record)).transpose()
}

/// The workspace and the provider that an entry of the list of sealed keys names.
fn place(key: &Key) -> Result<(WorkspaceId, Provider), Error> {
    let unreadable = || Error::new(ErrorKind::Internal, "stored data could not be read").because(format!("{key:?}"));
    let (workspace, provider) = key.item().split_once('/').ok_or_else(unreadable)?;
    Ok((
        workspace.parse().map_err(|_| unreadable())?,
        provider.parse().map_err(|_| unreadable())?,
    ))
}
