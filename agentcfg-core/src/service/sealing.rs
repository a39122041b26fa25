//! Which master key seals a new secret, and the guard that it is still the one that seals when the secret is saved.

use std::sync::Arc;

use super::AgentCfg;
use super::change::Change;
use super::records::{self, Stored, StoredMasterKeys};
use super::retry::Attempt;
use crate::clock::Entropy;
use crate::error::{Error, ErrorKind};
use crate::vault::{KeyId, Vault};

/// The master key that seals, and the stored list that names it.
pub(super) struct Sealing {
    pub(super) vault: Arc<Vault>,
    pub(super) key: KeyId,
    list: Option<Stored<StoredMasterKeys>>,
}

impl AgentCfg {
    /// The master key that seals now, by the store's list as it was just read.
    ///
    /// The keyring is read after the list, and a commit with [`Sealing::guard`] succeeds only while that list is the
    /// current one: once a rotation has named its new key, nothing is sealed under an old one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotConfigured`] without a master key; the message names `what` cannot be sealed.
    pub(super) fn sealing(&self, list: Option<Stored<StoredMasterKeys>>, what: &str) -> Result<Sealing, Error> {
        let vault = self.vault().ok_or_else(|| {
            Error::new(
                ErrorKind::NotConfigured,
                format!("this server has no master key to seal {what} with; its operator can configure one"),
            )
        })?;
        let listed = list.as_ref().and_then(|list| list.value.sealing_key());
        Ok(Sealing {
            key: listed.unwrap_or(vault.sealing_key()),
            vault,
            list,
        })
    }

    /// The outcome when the key that seals is not in the keyring.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotConfigured`] when the server was not given the key.
    pub(super) async fn lacks_sealing_key<T>(&self, sealing: Sealing) -> Result<Attempt<T>, Error> {
        let now = self.read(records::master_keys().encoded()).await?;
        if now.map(|now| now.version()) != sealing.list.map(|list| list.version) {
            // A whole rotation has passed between the read of the list and that of the keyring.
            return Ok(Attempt::Raced);
        }
        Err(Error::new(
            ErrorKind::NotConfigured,
            "this server was not given the master key that seals now; its operator can configure it",
        ))
    }
}

impl Sealing {
    /// Makes a change depend on the list of master keys, which it creates if there is none.
    pub(super) fn guard<'a>(&self, change: Change<'a>, entropy: &dyn Entropy) -> Result<Change<'a>, Error> {
        let key = records::master_keys();
        let change = change.check(key.unchanged(self.list.as_ref()));
        if self.list.is_some() {
            return Ok(change);
        }
        let first = StoredMasterKeys {
            keys: vec![self.vault.check_value(entropy)?],
        };
        change.put(key, &first)
    }
}
