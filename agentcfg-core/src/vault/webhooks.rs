//! Sealing of the secrets of webhooks.

use super::{KeyId, OpenError, Purpose, SealError, Sealed, Vault, open, seal};
use crate::clock::Entropy;
use crate::model::{WebhookId, WorkspaceId};
use crate::webhook::SigningSecret;

impl Vault {
    /// Seals a webhook's secret under the key with this identifier; `None` when it is not in the keyring.
    pub(crate) fn seal_webhook_secret(
        &self,
        id: KeyId,
        (workspace, webhook): (WorkspaceId, WebhookId),
        secret: &SigningSecret,
        entropy: &dyn Entropy,
    ) -> Result<Option<Sealed>, SealError> {
        let purpose = Purpose::WebhookSecret(workspace, webhook);
        let key = self.keys.iter().find(|key| key.id() == id);
        key.map(|key| seal(key, purpose, secret.expose(), entropy)).transpose()
    }

    /// Opens a secret that was sealed for this webhook under any of the keys.
    pub(crate) fn open_webhook_secret(
        &self,
        (workspace, webhook): (WorkspaceId, WebhookId),
        sealed: &Sealed,
    ) -> Result<SigningSecret, OpenError> {
        let key = self.key_of(sealed)?;
        let plaintext = open(key, Purpose::WebhookSecret(workspace, webhook), sealed)?;
        SigningSecret::from_bytes(&plaintext).ok_or(OpenError::Refused(key.id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;
    use crate::vault::MasterKey;

    #[test]
    fn a_secret_opens_for_its_webhook_alone() {
        let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy).unwrap()]).unwrap();
        let workspace = |n| WorkspaceId::new(uuid::Uuid::from_u128(n));
        let webhook = |n| WebhookId::new(uuid::Uuid::from_u128(n));
        let secret = SigningSecret::generate(&SystemEntropy).unwrap();
        let place = (workspace(1), webhook(2));
        let sealed = vault
            .seal_webhook_secret(vault.sealing_key(), place, &secret, &SystemEntropy)
            .unwrap()
            .unwrap();
        assert_eq!(
            vault.open_webhook_secret(place, &sealed).unwrap().expose(),
            secret.expose()
        );
        for other in [
            (workspace(1), webhook(1)),
            (workspace(2), webhook(2)),
            (workspace(2), webhook(1)),
        ] {
            assert!(matches!(
                vault.open_webhook_secret(other, &sealed),
                Err(OpenError::Refused(_))
            ));
        }
    }
}
