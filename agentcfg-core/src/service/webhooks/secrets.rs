//! Secrets of webhooks: opening, rotation, and sealing again under another master key.

use super::deliveries::Secrets;
use super::{changed, with_secret};
use crate::clock::DAY;
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Actor, Success, Webhook, WebhookId, WebhookWithSecret, WorkspaceId};
use crate::service::access::Access;
use crate::service::records::{self, StoredSecret, StoredWebhook, Transaction};
use crate::service::retry::Attempt;
use crate::service::{AgentCfg, Caller};
use crate::vault::Vault;
use crate::webhook::SigningSecret;

/// How long a secret that was replaced goes on signing, in milliseconds.
const OVERLAP: i64 = DAY;

/// The greatest number of secrets that a webhook keeps.
const MAX_SECRETS: usize = 5;

impl AgentCfg {
    /// Gives a webhook a new secret, which is in the answer and in no other. For 24 hours the one before signs too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for a webhook that does not exist, or of a workspace that the caller has no part in;
    /// [`ErrorKind::Forbidden`] without `webhooks:manage`; [`ErrorKind::NotConfigured`] without a master key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::NewWebhook;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # service.set_vault(Vault::new(vec![MasterKey::generate(&agentcfg_core::clock::SystemEntropy)?])?);
    /// let created = service.create_webhook(&ada, NewWebhook::new(studio, "https://example.com/")).await?;
    /// let rotated = service.rotate_webhook_secret(&ada, created.webhook.id).await?;
    /// assert_ne!(rotated.secret, created.secret);
    /// # Ok(()) }) }
    /// ```
    pub async fn rotate_webhook_secret(&self, caller: &Caller, id: WebhookId) -> Result<WebhookWithSecret, Error> {
        let secret = SigningSecret::generate(self.entropy())?;
        let webhook = self
            .retry_lost_races(|| self.try_rotate_secret(caller, id, &secret))
            .await?;
        Ok(with_secret(webhook, &secret))
    }

    async fn try_rotate_secret(
        &self,
        caller: &Caller,
        id: WebhookId,
        secret: &SigningSecret,
    ) -> Result<Attempt<Webhook>, Error> {
        let (access, found) = self.webhook_to_redirect(caller, id).await?;
        let epoch = self.epoch().await?;
        let before = &found.webhook.value;
        let list = self.read(records::master_keys()).await?;
        let sealing = self.sealing(list, "secrets of webhooks")?;
        let place = (before.workspace_id, id);
        let sealed = sealing
            .vault
            .seal_webhook_secret(sealing.key, place, secret, self.entropy())?;
        let Some(sealed) = sealed else {
            return self.lacks_sealing_key(sealing).await;
        };
        let now = self.now();
        let newest = StoredSecret {
            sealed,
            expires_at: None,
        };
        let replaced = before.secrets.iter().cloned().map(|secret| StoredSecret {
            expires_at: secret.expires_at.or(Some(now.plus_millis(OVERLAP))),
            ..secret
        });
        let valid = replaced.filter(|secret| secret.expires_at.is_none_or(|end| now < end));
        let after = StoredWebhook {
            updated_at: now.max(before.updated_at.plus_millis(1)),
            secrets: std::iter::once(newest).chain(valid).take(MAX_SECRETS).collect(),
            ..before.clone()
        };
        let change = changed(&access, now, Action::WebhookSecretRotated, id)
            .audit_diff(Some(&before.audited()), Some(&after.audited()))?
            .check(found.webhook.unchanged())
            .put(found.webhook.key, &after)?;
        let change = sealing.guard(change, self.entropy())?;
        let outcome = self.apply(change).await?;
        outcome.attempt(after.listed(epoch, &found.state.value))
    }

    /// Opens the secrets of a webhook, each with its end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotConfigured`] without a master key, [`ErrorKind::Internal`] when a secret does not open.
    pub(super) fn open_secrets(&self, webhook: &StoredWebhook) -> Result<Secrets, Error> {
        let vault = self.vault().ok_or_else(|| {
            Error::new(
                ErrorKind::NotConfigured,
                "this server has no master key to open the webhook's secret with; its operator can configure one",
            )
        })?;
        let place = (webhook.workspace_id, webhook.id);
        let open = |secret: &StoredSecret| match vault.open_webhook_secret(place, &secret.sealed) {
            Ok(opened) => Ok((opened, secret.expires_at)),
            Err(error) => Err(Error::new(ErrorKind::Internal, "the webhook's secret does not open").because(error)),
        };
        webhook.secrets.iter().map(open).collect()
    }

    /// Seals the secrets of some webhooks under the keyring's first key, in one commit. Returns how many webhooks were
    /// changed, and how many have a secret that does not open; `None` when another key has become the sealing one.
    pub(in crate::service) async fn try_rewrap_webhooks(
        &self,
        vault: &Vault,
        places: &[(WorkspaceId, WebhookId)],
    ) -> Result<Attempt<Option<(u64, u64)>>, Error> {
        let keys = places.iter().map(|(workspace, id)| records::webhook(*workspace, *id));
        let (list, found) = self.read((records::master_keys(), keys.collect::<Vec<_>>())).await?;
        let Some(list) = list.filter(|list| list.value.sealing_key() == Some(vault.sealing_key())) else {
            return Ok(Attempt::Done(None));
        };
        let mut transaction = Transaction::default().check(list.unchanged());
        let (mut rewrapped, mut unreadable) = (0, 0);
        // A webhook that was deleted since the scan is skipped.
        for found in found.into_iter().flatten() {
            let webhook = &found.value;
            let place = (webhook.workspace_id, webhook.id);
            let is_old = |secret: &StoredSecret| secret.sealed.key_id() != vault.sealing_key();
            if !webhook.secrets.iter().any(is_old) {
                continue;
            }
            let mut after = webhook.clone();
            let (mut opens, mut is_changed) = (true, false);
            for secret in after.secrets.iter_mut().filter(|secret| is_old(secret)) {
                match vault.open_webhook_secret(place, &secret.sealed) {
                    Ok(opened) => {
                        let sealed = vault.seal_webhook_secret(vault.sealing_key(), place, &opened, self.entropy())?;
                        secret.sealed = sealed.unwrap_or_else(|| secret.sealed.clone());
                        is_changed = true;
                    }
                    Err(error) => {
                        let (workspace, webhook) = place;
                        tracing::error!(%workspace, %webhook, %error, "a webhook's secret does not open and is left as it is");
                        opens = false;
                    }
                }
            }
            unreadable += u64::from(!opens);
            if is_changed {
                rewrapped += 1;
                transaction = transaction.check(found.unchanged()).put(found.key, &after)?;
            }
        }
        if transaction.is_empty() {
            return Ok(Attempt::Done(Some((0, unreadable))));
        }
        self.commit(transaction).await?.attempt(Some((rewrapped, unreadable)))
    }

    /// Deletes a webhook in the name of an operator, who needs no membership: its secret cannot be opened any more.
    pub(in crate::service) async fn try_discard_webhook(
        &self,
        id: WebhookId,
        operator: &str,
    ) -> Result<Attempt<Success>, Error> {
        let Some(place) = self.read(records::webhook_place(id)).await? else {
            return Ok(Attempt::Done(Success::OK));
        };
        let Some(found) = self.find_webhook(place.value.workspace_id, id).await? else {
            return Ok(Attempt::Raced);
        };
        let actor = Actor::operator(operator);
        let access = Access::without_membership(place.value.workspace_id, actor, place.unchanged());
        self.remove_webhook(&access, found).await
    }
}
