//! A stored webhook with its state.

use crate::error::Error;
use crate::model::{Action, TargetType, Timestamp, WebhookId, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::access::Access;
use crate::service::change::Change;
use crate::service::records::{self, Stored, StoredWebhook, WebhookState};

/// A webhook and its state, from one read.
pub(super) struct WebhookWithState {
    pub(super) webhook: Stored<StoredWebhook>,
    pub(super) state: Stored<WebhookState>,
}

/// Starts a change of a webhook.
pub(super) fn changed(access: &Access, now: Timestamp, action: Action, id: WebhookId) -> Change<'_> {
    Change::new(access, now, action, TargetType::Webhook, id.to_string())
}

impl AgentCfg {
    /// A webhook and its state, in one read.
    pub(super) async fn find_webhook(
        &self,
        workspace: WorkspaceId,
        id: WebhookId,
    ) -> Result<Option<WebhookWithState>, Error> {
        let keys = (records::webhook(workspace, id), records::webhook_state(workspace, id));
        let (webhook, state) = self.read(keys).await?;
        Ok(webhook
            .zip(state)
            .map(|(webhook, state)| WebhookWithState { webhook, state }))
    }
}
