//! Master keys: the check that the keyring belongs to the store, and rotation.
//!
//! The store lists, by check values, the master keys that something in it may be sealed under; the
//! first one seals. A rotation has three steps, each with a consistent state as its result, so that it can be killed at
//! any point and be resumed:
//!
//! 1. The new key is put before the old ones in that list. From this commit on nothing is sealed under
//!    an old key, because each save checks the list in its commit.
//! 2. Each provider key and each secret of a webhook is opened and sealed under the new key.
//! 3. The old keys are taken off the list.

use super::AgentCfg;
use super::chunked_reads::Chunks;
use super::records::{self, Encoded, Entries, SealedKey, Stored, StoredMasterKeys, Transaction, WebhookPlace};
use super::retry::{Attempt, Rounds};
use crate::error::{Error, ErrorKind};
use crate::model::{Provider, WorkspaceId};
use crate::vault::{KeyId, Sealed, Vault};

/// How many records one commit seals again at most.
const BATCH: usize = 64;

/// The master keys that a store needs.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let needed = service.master_keys_needed().await?;
/// for id in &needed.keys {
///     println!("needs the master key {id}");
/// }
/// # Ok(()) }) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MasterKeysNeeded {
    /// The keys that something may be sealed under, the sealing one first. Empty for a store that was
    /// never used with a master key.
    pub keys: Vec<KeyId>,
    /// Whether any provider key or webhook's secret is saved.
    pub any_sealed: bool,
}

/// Why the master keys of a service are not usable with its store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MasterKeyError {
    /// The keyring lacks keys that the store needs: records that are sealed under them could not be opened.
    #[error("the store needs the master keys {}, and was given {}", shown(.needed), shown(.given))]
    Missing {
        /// The keys that the store needs, the sealing one first.
        needed: Vec<KeyId>,
        /// The keys that the service has.
        given: Vec<KeyId>,
    },
    /// The store's check value of a key does not open, although the key has the same name.
    #[error("the check value of the master key {0} does not open: the store's list of master keys is damaged")]
    Damaged(KeyId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Checks that a keyring has the keys of these check values, and that they are the same keys.
fn verify(vault: &Vault, check_values: &[Sealed]) -> Result<(), MasterKeyError> {
    let given: Vec<KeyId> = vault.key_ids().collect();
    let needed: Vec<KeyId> = check_values.iter().map(Sealed::key_id).collect();
    if needed.iter().any(|id| !given.contains(id)) {
        return Err(MasterKeyError::Missing { needed, given });
    }
    for check_value in check_values {
        vault
            .verify(check_value)
            .map_err(|_| MasterKeyError::Damaged(check_value.key_id()))?;
    }
    Ok(())
}

fn shown(ids: &[KeyId]) -> String {
    if ids.is_empty() {
        return "none".into();
    }
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The progress of [`AgentCfg::rewrap_provider_keys`].
///
/// ```
/// use agentcfg_core::service::RewrapProgress;
/// let progress = RewrapProgress::default();
/// println!("{} of {} sealed again", progress.rewrapped, progress.examined);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrapProgress {
    /// Provider keys and webhooks that were checked.
    pub examined: u64,
    /// Provider keys and webhooks that were sealed again.
    pub rewrapped: u64,
    /// Provider keys and webhooks that open under no key. They are left as they are.
    pub unreadable: u64,
}

impl AgentCfg {
    /// The master keys that the store needs.
    ///
    /// # Errors
    ///
    /// When storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let needed = service.master_keys_needed().await?;
    /// assert!(needed.keys.is_empty() && !needed.any_sealed);
    /// # Ok(()) }) }
    /// ```
    pub async fn master_keys_needed(&self) -> Result<MasterKeysNeeded, Error> {
        let webhooks = self.scan(records::webhook_places().limit(1)).await?;
        let (sealed, list) = self.scan_with(sealed_keys().limit(1), records::master_keys()).await?;
        Ok(MasterKeysNeeded {
            keys: list.iter().flat_map(|list| list.value.ids()).collect(),
            any_sealed: !sealed.is_empty() || !webhooks.is_empty(),
        })
    }

    /// Checks that the keyring has the keys that the store needs, and makes its first key the sealing one. A store that
    /// was never used with a master key adopts the keyring.
    ///
    /// Call it before requests are served, so that a wrong master key is detected at the start. It does
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
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
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
            return self.verify_master_keys().await;
        };
        let mut rounds = Rounds::default();
        while let Attempt::Raced = self.try_adopt(&vault).await? {
            rounds.lost().await?;
        }
        Ok(())
    }

    /// Checks that the keyring has the keys that the store needs, and changes nothing. A process that is not sure of
    /// its keys asks this of a store that was [opened for reading](crate::store::redb::RedbStore::open_to_read), and
    /// leaves one that they do not fit as it is.
    ///
    /// # Errors
    ///
    /// As [`Self::adopt_master_keys`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.verify_master_keys().await?;
    /// # Ok(()) }) }
    /// ```
    pub async fn verify_master_keys(&self) -> Result<(), MasterKeyError> {
        let Some(vault) = self.vault() else {
            let needed = self.master_keys_needed().await?.keys;
            let given = Vec::new();
            return match needed.is_empty() {
                true => Ok(()),
                false => Err(MasterKeyError::Missing { needed, given }),
            };
        };
        let list = self.read(records::master_keys()).await?;
        verify(&vault, list.as_ref().map_or(&[], |list| &list.value.keys))
    }

    async fn try_adopt(&self, vault: &Vault) -> Result<Attempt<()>, MasterKeyError> {
        let list = self.read(records::master_keys()).await?;
        let mut keys = list.as_ref().map_or_else(Vec::new, |list| list.value.keys.clone());
        verify(vault, &keys)?;
        let sealing = vault.sealing_key();
        if keys.first().map(Sealed::key_id) == Some(sealing) {
            return Ok(Attempt::Done(()));
        }
        keys.retain(|check_value| check_value.key_id() != sealing);
        keys.insert(0, vault.check_value(self.entropy()).map_err(Error::from)?);
        Ok(self.put_list(list.as_ref(), &StoredMasterKeys { keys }).await?)
    }

    /// Seals every provider key and every secret of a webhook under the keyring's first key, and then takes the other
    /// keys off the store's list. The service goes on serving meanwhile. `progress` is called after each step.
    ///
    /// After an error, or a kill, a later call resumes the work.
    ///
    /// # Errors
    ///
    /// As [`Self::adopt_master_keys`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// let old = MasterKey::generate(&SystemEntropy)?;
    /// # service.set_vault(Vault::new(vec![old.clone()])?);
    /// # service.adopt_master_keys().await?;
    /// let new = MasterKey::generate(&SystemEntropy)?;
    /// service.set_vault(Vault::new(vec![new.clone(), old])?);
    /// service.rewrap_provider_keys(&mut |progress| println!("{} sealed again", progress.rewrapped)).await?;
    /// assert_eq!(service.master_keys_needed().await?.keys, [new.id()]);
    /// # Ok(()) }) }
    /// ```
    pub async fn rewrap_provider_keys(
        &self,
        progress: &mut (dyn FnMut(RewrapProgress) + Send),
    ) -> Result<RewrapProgress, MasterKeyError> {
        self.adopt_master_keys().await?;
        let mut done = RewrapProgress::default();
        let Some(vault) = self.vault() else {
            return Ok(done);
        };
        let mut pieces = Chunks::of(sealed_keys().limit(BATCH));
        while let Some(found) = pieces.next(self).await? {
            let places = found
                .into_keys()
                .map(|key| key.place())
                .collect::<Result<Vec<_>, _>>()?;
            let Some((rewrapped, unreadable)) = self.retry_lost_races(|| self.try_rewrap(&vault, &places)).await?
            else {
                // Another rotation has begun meanwhile, and will seal these again too.
                return Ok(done);
            };
            done.examined += places.len() as u64;
            done.rewrapped += rewrapped;
            done.unreadable += unreadable;
            progress(done);
        }
        let mut pieces = Chunks::of(records::webhook_places().limit(BATCH));
        while let Some(found) = pieces.next(self).await? {
            let place = |found: Encoded<WebhookPlace>| Ok((found.value()?.workspace_id, found.key().webhook()?));
            let places = found.into_iter().map(place).collect::<Result<Vec<_>, Error>>()?;
            let Some((rewrapped, unreadable)) = self
                .retry_lost_races(|| self.try_rewrap_webhooks(&vault, &places))
                .await?
            else {
                return Ok(done);
            };
            done.examined += places.len() as u64;
            done.rewrapped += rewrapped;
            done.unreadable += unreadable;
            progress(done);
        }
        let mut rounds = Rounds::default();
        loop {
            let Some(list) = self.read(records::master_keys()).await? else {
                return Ok(done);
            };
            if list.value.sealing_key() != Some(vault.sealing_key()) || list.value.keys.len() == 1 {
                return Ok(done);
            }
            let sealing = StoredMasterKeys {
                keys: list.value.keys.iter().take(1).cloned().collect(),
            };
            if let Attempt::Done(()) = self.put_list(Some(&list), &sealing).await? {
                return Ok(done);
            }
            rounds.lost().await?;
        }
    }

    /// Seals some provider keys again in one commit. Returns how many, and how many do not open; `None` when
    /// another key than this keyring's first has become the sealing one.
    async fn try_rewrap(
        &self,
        vault: &Vault,
        places: &[(WorkspaceId, Provider)],
    ) -> Result<Attempt<Option<(u64, u64)>>, Error> {
        let keys: Vec<_> = places
            .iter()
            .map(|(workspace, provider)| records::provider_key(*workspace, *provider))
            .collect();
        let (list, found) = self.read((records::master_keys(), keys)).await?;
        let Some(list) = list.filter(|list| list.value.sealing_key() == Some(vault.sealing_key())) else {
            return Ok(Attempt::Done(None));
        };
        let mut transaction = Transaction::default().check(list.unchanged());
        let (mut rewrapped, mut unreadable) = (0, 0);
        for ((workspace, provider), found) in places.iter().zip(found) {
            // A key that was deleted since the scan is skipped.
            let Some(mut found) = found else { continue };
            if found.value.sealed.key_id() == vault.sealing_key() {
                continue;
            }
            match vault.open(*workspace, *provider, &found.value.sealed) {
                Ok(credential) => {
                    found.value.sealed = vault.seal(*workspace, *provider, &credential, self.entropy())?;
                    transaction = transaction.check(found.unchanged()).put(found.key, &found.value)?;
                    rewrapped += 1;
                }
                Err(error) => {
                    tracing::error!(%workspace, %provider, %error, "a saved provider key does not open and is left as it is");
                    unreadable += 1;
                }
            }
        }
        if transaction.is_empty() {
            return Ok(Attempt::Done(Some((0, unreadable))));
        }
        let outcome = self.commit(transaction).await?;
        outcome.attempt(Some((rewrapped, unreadable)))
    }

    /// Deletes every saved provider key and every webhook, for a store whose master keys are lost. Each deletion is in
    /// its workspace's audit log, in the name of the operator `by`. Returns how many there were.
    ///
    /// # Errors
    ///
    /// When storage fails; a later call goes on.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let discarded = service.discard_provider_keys("root").await?;
    /// println!("{discarded} provider keys have to be saved again");
    /// # Ok(()) }) }
    /// ```
    pub async fn discard_provider_keys(&self, by: &str) -> Result<u64, Error> {
        let mut discarded = 0;
        loop {
            let found = self.scan(sealed_keys().limit(BATCH)).await?;
            if found.is_empty() {
                break;
            }
            for key in found.into_keys() {
                let (workspace, provider) = key.place()?;
                self.retry_lost_races(|| self.try_discard_provider_key(workspace, provider, by))
                    .await?;
                discarded += 1;
            }
        }
        loop {
            let found = self.scan(records::webhook_places().limit(BATCH)).await?;
            if found.is_empty() {
                return Ok(discarded);
            }
            for key in found.into_keys() {
                let id = key.webhook()?;
                self.retry_lost_races(|| self.try_discard_webhook(id, by)).await?;
                discarded += 1;
            }
        }
    }

    /// Removes the list of master keys from a store without provider keys and webhooks, so that it can adopt any
    /// keyring. No other process may use the store meanwhile.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when a provider key or a webhook is saved.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.forget_master_keys().await?;
    /// assert!(service.master_keys_needed().await?.keys.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn forget_master_keys(&self) -> Result<(), Error> {
        if self.master_keys_needed().await?.any_sealed {
            return Err(Error::new(
                ErrorKind::Conflict,
                "there are saved provider keys or webhooks",
            ));
        }
        let transaction = Transaction::default().delete(records::master_keys());
        self.commit(transaction).await.map(drop)
    }

    /// Replaces the list of master keys that was found.
    async fn put_list(
        &self,
        before: Option<&Stored<StoredMasterKeys>>,
        list: &StoredMasterKeys,
    ) -> Result<Attempt<()>, Error> {
        let key = records::master_keys();
        let transaction = Transaction::default().check(key.unchanged(before)).put(key, list)?;
        self.commit(transaction).await?.attempt(())
    }
}

/// The index entries of all saved provider keys, of every workspace.
fn sealed_keys() -> Entries<SealedKey> {
    Entries::of(records::sealed_keys())
}
