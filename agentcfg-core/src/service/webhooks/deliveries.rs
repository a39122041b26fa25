//! Attempts at deliveries: their records and list, and the test of a webhook.

use super::webhook_with_state::WebhookWithState;
use crate::error::Error;
use crate::model::{Permission, Target, TargetType, Timestamp, WebhookDelivery, WebhookId, WorkspaceId};
use crate::service::records::{self, EntityKey, Outcome, StoredWebhook, Transaction};
use crate::service::retry::Attempt;
use crate::service::{AgentCfg, Caller};
use crate::webhook::{self, DeliveryAnswer, Outgoing, SigningSecret, Transport};

/// How many attempts are kept for each webhook.
pub(super) const KEPT: usize = 100;

/// The event type of a test.
const TEST: &str = "webhook.test";

/// The secrets that sign the messages of a webhook, each with its end.
pub(super) type Secrets = Vec<(SigningSecret, Option<Timestamp>)>;

/// A message that is ready to be sent.
pub(super) struct Prepared {
    pub(super) url: String,
    pub(super) id: String,
    pub(super) body: bytes::Bytes,
}

/// An attempt that has ended.
pub(super) struct Attempted {
    pub(super) at: Timestamp,
    pub(super) duration_ms: u64,
    pub(super) answer: DeliveryAnswer,
}

impl AgentCfg {
    /// The last 100 attempts to deliver to a webhook, the newest first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for a webhook that does not exist, or of a workspace that
    /// the caller has no part in; [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `webhooks:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::NewWebhook;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # service.set_vault(Vault::new(vec![MasterKey::generate(&agentcfg_core::clock::SystemEntropy)?])?);
    /// # let webhook = service.create_webhook(&ada, NewWebhook::new(studio, "https://example.com/")).await?.webhook;
    /// for attempt in service.webhook_deliveries(&ada, webhook.id).await? {
    ///     println!("{} {:?}", attempt.id, attempt.status);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn webhook_deliveries(&self, caller: &Caller, id: WebhookId) -> Result<Vec<WebhookDelivery>, Error> {
        let (access, _) = self.webhook_for(caller, id, Permission::WebhooksRead).await?;
        let workspace = access.workspace();
        // In one snapshot. Tests that run at the same time may leave some more than are kept.
        let found = self
            .scan(records::webhook_deliveries(workspace, id).limit(4 * KEPT))
            .await?;
        let (mut tests, mut attempts) = (Vec::new(), Vec::new());
        for found in found {
            match found.key() {
                key if key.is_test_of(id) => tests.push(found.value()?),
                key if key.is_attempt_of(id) => attempts.push(found.value()?),
                _ => break,
            }
        }
        let mut all: Vec<WebhookDelivery> = attempts.into_iter().chain(tests).collect();
        // The sort is stable, so attempts of one millisecond stay in the order of their numbers.
        all.sort_by_key(|delivery| std::cmp::Reverse(delivery.at));
        all.truncate(KEPT);
        Ok(all)
    }

    /// The recorded tests of a webhook, the newest first.
    pub(super) async fn recorded_tests(
        &self,
        workspace: WorkspaceId,
        id: WebhookId,
    ) -> Result<Vec<EntityKey<WebhookDelivery>>, Error> {
        let found = self
            .scan(records::webhook_deliveries(workspace, id).limit(2 * KEPT))
            .await?;
        Ok(found.into_keys().take_while(|key| key.is_test_of(id)).collect())
    }

    /// Sends the event of a test to a webhook, once and at once, and returns how it went. It works while the webhook is
    /// disabled, and its failure never disables one.
    ///
    /// # Errors
    ///
    /// As [`Self::webhook_deliveries`], with `webhooks:manage`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::NewWebhook;
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::webhook::{DeliveryAnswer, Outgoing, Transport};
    ///
    /// struct Taken;
    ///
    /// #[async_trait::async_trait]
    /// impl Transport for Taken {
    ///     async fn post(&self, message: Outgoing) -> DeliveryAnswer {
    ///         assert!(message.id.contains(".test-"));
    ///         DeliveryAnswer::default().status(204)
    ///     }
    /// }
    ///
    /// # service.set_vault(Vault::new(vec![MasterKey::generate(&agentcfg_core::clock::SystemEntropy)?])?);
    /// # let webhook = service.create_webhook(&ada, NewWebhook::new(studio, "https://example.com/")).await?.webhook;
    /// let attempt = service.test_webhook(&ada, webhook.id, &Taken).await?;
    /// assert_eq!((attempt.status, attempt.revision), (Some(204), None));
    /// # Ok(()) }) }
    /// ```
    pub async fn test_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        transport: &dyn Transport,
    ) -> Result<WebhookDelivery, Error> {
        let (access, found) = self.webhook_for(caller, id, Permission::WebhooksManage).await?;
        let webhook = &found.webhook.value;
        let secrets = self.open_secrets(webhook)?;
        let epoch = self.epoch().await?;
        let now = self.now();
        let target = Target {
            kind: TargetType::Webhook,
            id: id.to_string(),
        };
        let random = self.new_id(now)?.simple();
        let message = Prepared {
            url: webhook.url.clone(),
            id: format!("{id}.{epoch}.test-{random}"),
            body: webhook::test_body(webhook.workspace_id, TEST, now, access.actor(), target)?.into(),
        };
        let attempted = self.attempt(&message, &secrets, transport).await;
        let record = attempted.record(message.id, TEST.to_owned(), None, 1, None);
        // The message has been sent, so an error would ask for another one.
        if let Err(error) = self.retry_lost_races(|| self.try_record_test(&found, &record)).await {
            tracing::warn!(?error, webhook = %id, "a test of a webhook could not be recorded");
        }
        Ok(record)
    }

    async fn try_record_test(&self, found: &WebhookWithState, record: &WebhookDelivery) -> Result<Attempt<()>, Error> {
        let (workspace, id) = (found.webhook.value.workspace_id, found.webhook.value.id);
        let Some(webhook) = self.read(records::webhook(workspace, id).encoded()).await? else {
            // It was deleted meanwhile, and so were its attempts.
            return Ok(Attempt::Done(()));
        };
        let before = self.recorded_tests(workspace, id).await?;
        let test = self.new_id(record.at)?;
        let mut transaction = Transaction::default()
            .check(webhook.unchanged())
            .put(records::webhook_test(workspace, id, test), record)?;
        for old in before.into_iter().skip(KEPT - 1) {
            transaction = transaction.delete(old);
        }
        Ok(match self.commit(transaction).await? {
            Outcome::Done(_) => Attempt::Done(()),
            Outcome::Raced | Outcome::Limit => Attempt::Raced,
        })
    }

    /// Sends a message once, signed with each secret that is valid now.
    pub(super) async fn attempt(&self, message: &Prepared, secrets: &Secrets, transport: &dyn Transport) -> Attempted {
        let (at, started) = (self.now(), self.inner.clock.steady_millis());
        let timestamp = at.unix_millis().div_euclid(1000);
        let valid = secrets.iter().filter(|(_, end)| end.is_none_or(|end| at < end));
        let signatures = valid.map(|(secret, _)| secret.sign(&message.id, timestamp, &message.body));
        let outgoing = Outgoing {
            url: message.url.clone(),
            id: message.id.clone(),
            timestamp,
            signature: signatures.collect::<Vec<_>>().join(" "),
            body: message.body.clone(),
        };
        let answer = transport.post(outgoing).await;
        let took = self.inner.clock.steady_millis() - started;
        Attempted {
            at,
            duration_ms: u64::try_from(took).unwrap_or_default(),
            answer,
        }
    }
}

impl Attempted {
    /// The record of the attempt.
    pub(super) fn record(
        self,
        id: String,
        kind: String,
        revision: Option<u64>,
        attempt: u32,
        next_attempt_at: Option<Timestamp>,
    ) -> WebhookDelivery {
        let answer = self.answer;
        let error = match answer.status {
            Some(_) if answer.is_success() => None,
            // 304 leads to no other place.
            Some(status @ 300..400) if status != 304 => {
                Some("the answer is a redirect, which is not followed".to_owned())
            }
            Some(_) => Some("the status of the answer is not 2xx".to_owned()),
            None => Some(answer.error.unwrap_or_else(|| "there was no answer".to_owned())),
        };
        WebhookDelivery {
            id,
            kind,
            revision,
            attempt,
            at: self.at,
            status: answer.status,
            error,
            duration_ms: self.duration_ms,
            // A database may refuse to store this character.
            response: answer.response.map(|text| text.replace('\0', "\u{fffd}")),
            next_attempt_at,
        }
    }
}

/// The numbers of the attempts that are kept after so many were recorded.
pub(super) fn kept_attempts(recorded: u64) -> std::ops::RangeInclusive<u64> {
    recorded.saturating_sub(KEPT as u64) + 1..=recorded
}

/// The `webhook-id` of an event's message.
pub(super) fn message_id(webhook: &StoredWebhook, epoch: crate::model::Epoch, revision: u64) -> String {
    format!("{}.{epoch}.{revision}", webhook.id)
}
