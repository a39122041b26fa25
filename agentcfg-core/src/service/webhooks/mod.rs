//! Webhooks: their creation, list, changes, deletion and replay.

mod deliveries;
mod event_log;
mod lease;
mod new_events;
mod queue;
mod secrets;
mod sender;
mod sender_memory;
mod sender_numbers;
mod session;
mod session_permits;
mod webhook_with_state;

use std::sync::Arc;

use self::deliveries::kept_attempts;
pub(super) use self::new_events::NewEvents;
pub use self::sender::WebhookSender;
pub use self::sender_numbers::SenderNumbers;
use self::webhook_with_state::{WebhookWithState, changed};
use super::access::Access;
use super::records::{
    self, EntityKey, Entries, Outcome, Previous, StoredSecret, StoredWebhook, Transaction, Turn, WebhookPlace,
    WebhookState,
};
use super::retry::Attempt;
use super::{AgentCfg, Caller, not_found};
use crate::body::Change as _;
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, CursorError, MAX_WEBHOOKS, NewWebhook, Permission, ReplayFrom, Success, Webhook, WebhookId, WebhookPatch,
    WebhookReplay, WebhookUrl, WebhookWithSecret, WorkspaceId,
};
use crate::validate::{IntoValid, Invalid};
use crate::webhook::SigningSecret;

impl AgentCfg {
    /// The webhooks of a workspace in the order of their creation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `webhooks:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for webhook in service.list_webhooks(&ada, studio).await? {
    ///     println!("{}: {}", webhook.url, webhook.cursor);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn list_webhooks(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<Webhook>, Error> {
        let access = self.access(caller, workspace, Permission::WebhooksRead).await?;
        let epoch = self.epoch().await?;
        let workspace = access.workspace();
        let states = |webhooks: &[EntityKey<StoredWebhook>]| {
            let states = webhooks.iter().map(|key| records::state_of_webhook(workspace, key));
            Ok(states.collect::<Vec<_>>())
        };
        let (webhooks, states) = self.scan_linked(Entries::in_workspace(workspace), states).await?;
        let both = webhooks.into_values()?.into_iter().zip(states);
        let listed = both.filter_map(|(webhook, state)| Some(webhook.listed(epoch, &state?.value)));
        Ok(listed.collect())
    }

    /// Creates a webhook, which gets the events after its creation. The secret is in the answer and in no other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field that breaks a rule and for a URL that this deployment sends nothing to,
    /// [`ErrorKind::Forbidden`] without `webhooks:manage`, and without `audit_log:read` for types that need it,
    /// [`ErrorKind::PlanLimit`] when the workspace has [`MAX_WEBHOOKS`], [`ErrorKind::NotConfigured`] without a master
    /// key.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::model::{NewWebhook, NewWorkspace};
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .vault(Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?)
    ///     .build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let new = NewWebhook::new(studio.id, "https://hooks.example.com/agentcfg");
    /// let created = service.create_webhook(&ada, new).await?;
    /// assert!(created.secret.starts_with("whsec_"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn create_webhook(
        &self,
        caller: &Caller,
        new: impl IntoValid<NewWebhook>,
    ) -> Result<WebhookWithSecret, Error> {
        let new = new.into_valid()?.into_inner();
        self.check_webhook_url(&new.url)?;
        let secret = SigningSecret::generate(self.entropy())?;
        let (service, caller) = (self.clone(), caller.clone());
        let made = Arc::new((new, secret));
        let both = Arc::clone(&made);
        let attempt = move |turn| {
            let (service, caller, made) = (service.clone(), caller.clone(), Arc::clone(&both));
            async move { service.try_create_webhook(&caller, &made.0, &made.1, &turn).await }
        };
        let webhook = self.retry_decision(made.0.workspace_id, attempt).await?;
        Ok(with_secret(webhook, &made.1))
    }

    async fn try_create_webhook(
        &self,
        caller: &Caller,
        new: &NewWebhook,
        secret: &SigningSecret,
        turn: &Turn,
    ) -> Result<Attempt<Webhook>, Error> {
        let access = self
            .access(caller, new.workspace_id, Permission::WebhooksManage)
            .await?;
        if new.types.need_audit_log() {
            access.require(Permission::AuditLogRead)?;
        }
        let epoch = self.epoch().await?;
        let workspace = access.workspace();
        let (list, head) = self
            .read((records::master_keys(), records::revision(workspace).guarded()))
            .await?;
        let sealing = self.sealing(list, "secrets of webhooks")?;
        let now = self.now();
        let id = WebhookId::new(self.new_id(now)?);
        let sealed = sealing
            .vault
            .seal_webhook_secret(sealing.key, (workspace, id), secret, self.entropy())?;
        let Some(sealed) = sealed else {
            return self.lacks_sealing_key(sealing).await;
        };
        let webhook = StoredWebhook {
            id,
            workspace_id: workspace,
            url: new.url.clone(),
            types: new.types.clone(),
            description: new.description.clone(),
            ordered: new.ordered,
            enabled: true,
            disabled_reason: None,
            created_at: now,
            updated_at: now,
            secrets: vec![StoredSecret {
                sealed,
                expires_at: None,
            }],
        };
        // The head of the log is checked, so the entry of this change gets the next number.
        let created = head.number + 1;
        let state = WebhookState {
            created,
            position: created,
            previous: Previous::None,
            pending: Vec::new(),
            failing_since: None,
            is_slow: false,
            recorded: 0,
            lease: None,
        };
        let key = records::webhook(workspace, id);
        let change = changed(&access, now, Action::WebhookCreated, id)
            .audit_diff(None, Some(&webhook.audited()))?
            .check(head.unchanged)
            .check(key.absent())
            .put(key, &webhook)?
            .put(records::webhook_state(workspace, id), &state)?
            .put(records::webhook_place(id), &webhook.place())?
            .add(records::webhooks_count(workspace), 1, Some(MAX_WEBHOOKS));
        let change = sealing.guard(change, self.entropy())?;
        match self.apply_in_turn(change, turn).await? {
            Outcome::Limit => Err(Error::new(
                ErrorKind::PlanLimit,
                format!("a workspace has at most {MAX_WEBHOOKS} webhooks, delete one first"),
            )),
            outcome => outcome.attempt(webhook.listed(epoch, &state)),
        }
    }

    /// Changes a webhook. One that is enabled again goes on from its cursor, with the events that were not delivered.
    ///
    /// # Errors
    ///
    /// As [`Self::create_webhook`]; [`ErrorKind::NotFound`] for a webhook that does not exist, or of a workspace that
    /// the caller has no part in.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::{NewWebhook, WebhookPatch};
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # service.set_vault(Vault::new(vec![MasterKey::generate(&agentcfg_core::clock::SystemEntropy)?])?);
    /// # let webhook = service.create_webhook(&ada, NewWebhook::new(studio, "https://example.com/")).await?.webhook;
    /// let pause = WebhookPatch::default().enabled(false);
    /// assert!(!service.update_webhook(&ada, webhook.id, pause).await?.enabled);
    /// # Ok(()) }) }
    /// ```
    pub async fn update_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        patch: impl IntoValid<WebhookPatch>,
    ) -> Result<Webhook, Error> {
        let patch = patch.into_valid()?.into_inner();
        if let Some(url) = &patch.url {
            self.check_webhook_url(url)?;
        }
        self.retry_lost_races(|| self.try_update_webhook(caller, id, &patch))
            .await
    }

    async fn try_update_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        patch: &WebhookPatch,
    ) -> Result<Attempt<Webhook>, Error> {
        let (access, found) = self.webhook_to_redirect(caller, id).await?;
        let epoch = self.epoch().await?;
        if patch.types.as_ref().is_some_and(|types| types.need_audit_log()) {
            access.require(Permission::AuditLogRead)?;
        }
        let (before, mut after) = (&found.webhook.value, found.webhook.value.clone());
        let mut state = found.state.value.clone();
        let patch = patch.clone();
        patch.url.apply(&mut after.url);
        patch.types.apply(&mut after.types);
        patch.description.apply(&mut after.description);
        patch.ordered.apply(&mut after.ordered);
        patch.enabled.apply(&mut after.enabled);
        if patch.enabled.is_some() {
            after.disabled_reason = after.disabled_reason.filter(|_| !after.enabled && !before.enabled);
        }
        if after.audited() == before.audited() {
            return Ok(Attempt::Done(after.listed(epoch, &state)));
        }
        let now = self.after(before.updated_at);
        after.updated_at = now;
        if after.types != before.types {
            state.previous = Previous::Unknown;
        }
        if after.enabled && !before.enabled {
            state.failing_since = None;
            for pending in &mut state.pending {
                pending.next_at = now;
            }
        }
        let change = changed(&access, now, Action::WebhookUpdated, id)
            .audit_diff(Some(&before.audited()), Some(&after.audited()))?
            .check(found.webhook.unchanged())
            .put(found.webhook.key, &after)?
            .put(records::webhook_place(id), &after.place())?;
        let change = match state == found.state.value {
            // A running session goes on.
            true => change,
            false => change.check(found.state.unchanged()).put(found.state.key, &state)?,
        };
        self.apply(change).await?.attempt(after.listed(epoch, &state))
    }

    /// Deletes a webhook with its deliveries. What is being sent may still arrive.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for a webhook that does not exist, or of a workspace that the caller has no part in;
    /// [`ErrorKind::Forbidden`] without `webhooks:manage`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let unknown = "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse()?;
    /// let absent = service.delete_webhook(&ada, unknown).await.unwrap_err();
    /// assert_eq!(absent.kind(), agentcfg_core::ErrorKind::NotFound);
    /// # Ok(()) }) }
    /// ```
    pub async fn delete_webhook(&self, caller: &Caller, id: WebhookId) -> Result<Success, Error> {
        self.retry_lost_races(|| self.try_delete_webhook(caller, id)).await
    }

    async fn try_delete_webhook(&self, caller: &Caller, id: WebhookId) -> Result<Attempt<Success>, Error> {
        let (access, found) = self.webhook_for(caller, id, Permission::WebhooksManage).await?;
        self.remove_webhook(&access, found).await
    }

    async fn remove_webhook(&self, access: &Access, found: WebhookWithState) -> Result<Attempt<Success>, Error> {
        let webhook = &found.webhook.value;
        let (workspace, id) = (webhook.workspace_id, webhook.id);
        let mut change = changed(access, self.now(), Action::WebhookDeleted, id)
            .audit_diff(Some(&webhook.audited()), None)?
            .check(found.webhook.unchanged())
            .check(found.state.unchanged());
        for number in kept_attempts(found.state.value.recorded) {
            change = change.delete(records::webhook_attempt(workspace, id, number));
        }
        for test in self.recorded_tests(workspace, id).await? {
            change = change.delete(test);
        }
        let change = change
            .delete(found.webhook.key)
            .delete(found.state.key)
            .delete(records::webhook_place(id))
            .add(records::webhooks_count(workspace), -1, None);
        let deleted = self.apply(change).await?.attempt(Success::OK)?;
        if let Attempt::Done(_) = deleted {
            // A test that was recorded between the read and the commit. No other follows, because each checks the
            // webhook.
            let late = self.recorded_tests(workspace, id).await?.into_iter();
            let late = late.fold(Transaction::default(), Transaction::delete);
            if !late.is_empty() {
                self.commit(late).await?;
            }
        }
        Ok(deleted)
    }

    /// Moves the cursor of a webhook back: the events after it are sent again, each with the `webhook-id` that it had.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a cursor of another workspace or epoch, and for one that is later than the webhook's;
    /// else as [`Self::delete_webhook`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::{NewWebhook, ReplayFrom, WebhookReplay};
    /// # use agentcfg_core::vault::{MasterKey, Vault};
    /// # service.set_vault(Vault::new(vec![MasterKey::generate(&agentcfg_core::clock::SystemEntropy)?])?);
    /// # let webhook = service.create_webhook(&ada, NewWebhook::new(studio, "https://example.com/")).await?.webhook;
    /// let from = WebhookReplay::new(ReplayFrom::Start);
    /// assert_eq!(service.replay_webhook(&ada, webhook.id, from).await?.cursor.revision(), 0);
    /// # Ok(()) }) }
    /// ```
    pub async fn replay_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        replay: impl IntoValid<WebhookReplay>,
    ) -> Result<Webhook, Error> {
        let from = replay.into_valid()?.into_inner().after;
        self.retry_lost_races(|| self.try_replay_webhook(caller, id, from))
            .await
    }

    async fn try_replay_webhook(
        &self,
        caller: &Caller,
        id: WebhookId,
        from: ReplayFrom,
    ) -> Result<Attempt<Webhook>, Error> {
        let (access, found) = self.webhook_to_redirect(caller, id).await?;
        let epoch = self.epoch().await?;
        let (webhook, before) = (&found.webhook.value, &found.state.value);
        let position = match from {
            ReplayFrom::Start => 0,
            ReplayFrom::After(cursor) => match cursor.revision_in(webhook.workspace_id, epoch, before.position) {
                Ok(revision) => revision,
                Err(CursorError::Future) => {
                    return Err(Invalid::new("after", "must not be later than the webhook's cursor").into());
                }
                Err(error) => return Err(Invalid::new("after", error).into()),
            },
        };
        // Events that are pending before the position stay so. Those after it will be read again.
        let pending = before.pending.iter().copied();
        let after = WebhookState {
            position,
            previous: Previous::Unknown,
            pending: pending.filter(|pending| pending.revision <= position).collect(),
            lease: None,
            ..before.clone()
        };
        let listed = |state: &WebhookState| webhook.clone().listed(epoch, state);
        let (was, is) = (listed(before), listed(&after));
        let change = changed(&access, self.now(), Action::WebhookReplayed, id)
            .audit_diff(Some(&MovedCursor::of(&was)), Some(&MovedCursor::of(&is)))?
            .check(found.webhook.unchanged())
            .check(found.state.unchanged())
            .put(found.state.key, &after)?;
        self.apply(change).await?.attempt(is)
    }

    /// Finds a webhook by its identifier alone, for callers with this permission in its workspace.
    async fn webhook_for(
        &self,
        caller: &Caller,
        id: WebhookId,
        permission: Permission,
    ) -> Result<(Access, WebhookWithState), Error> {
        let unknown = || not_found("webhook", &id.to_string());
        let place = self.read(records::webhook_place(id)).await?.ok_or_else(unknown)?;
        let workspace = place.value.workspace_id;
        let access = self
            .membership(caller, workspace)
            .await
            .map_err(|error| match error.kind() {
                ErrorKind::Forbidden => unknown(),
                _ => error,
            })?;
        access.require(permission)?;
        let found = self.find_webhook(workspace, id).await?.ok_or_else(unknown)?;
        Ok((access, found))
    }

    /// As [`Self::webhook_for`], for callers who decide where its events go, or who can read them: they need what its
    /// types need.
    async fn webhook_to_redirect(&self, caller: &Caller, id: WebhookId) -> Result<(Access, WebhookWithState), Error> {
        let (access, found) = self.webhook_for(caller, id, Permission::WebhooksManage).await?;
        if found.webhook.value.types.need_audit_log() {
            access.require(Permission::AuditLogRead)?;
        }
        Ok((access, found))
    }

    /// Whether this deployment sends webhooks to a URL.
    fn check_webhook_url(&self, url: &str) -> Result<(), Error> {
        let settings = self.settings();
        let exceptions = &settings.webhook_allowed_hosts;
        let checked = url.parse::<WebhookUrl>().and_then(|url| url.check(exceptions));
        checked.map_err(|rule| Invalid::new("url", rule).into())
    }
}

/// The change that the audit log shows for a replay.
#[derive(serde::Serialize)]
struct MovedCursor {
    cursor: crate::model::Cursor,
}

impl MovedCursor {
    fn of(webhook: &Webhook) -> Self {
        Self { cursor: webhook.cursor }
    }
}

fn with_secret(webhook: Webhook, secret: &SigningSecret) -> WebhookWithSecret {
    WebhookWithSecret {
        webhook,
        secret: secret.expose_text().to_string(),
    }
}

impl StoredWebhook {
    fn place(&self) -> WebhookPlace {
        WebhookPlace {
            workspace_id: self.workspace_id,
            enabled: self.enabled,
        }
    }
}
