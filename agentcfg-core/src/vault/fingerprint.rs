//! Fingerprints of provider keys: people see whether a key is the one that they mean, and learn nothing of it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{KeyId, Vault};
use crate::model::WorkspaceId;
use crate::secret::ProviderCredential;

/// The bytes that are shown.
const LENGTH: usize = 4;

impl Vault {
    /// The beginning of a keyed hash of a credential, as hexadecimal digits. The key of the hash is the master key of
    /// this identifier; `None` when it is not in the keyring. A credential has another fingerprint in each workspace.
    pub(crate) fn fingerprint(
        &self,
        id: KeyId,
        workspace: WorkspaceId,
        credential: &ProviderCredential,
    ) -> Option<String> {
        let key = self.keys.iter().find(|key| key.id() == id)?;
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.bytes()).ok()?;
        for part in [
            b"agentcfg provider key fingerprint\0",
            &workspace.as_uuid().as_bytes()[..],
            credential.expose().as_bytes(),
        ] {
            mac.update(part);
        }
        Some(crate::hex::encode(&mac.finalize().into_bytes()[..LENGTH]))
    }
}
