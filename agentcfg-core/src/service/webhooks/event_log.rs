//! Reads of the log for the events of a webhook.

use std::collections::VecDeque;

use super::webhook_with_state::WebhookWithState;
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::service::blocking::{LONG, blocking_if};
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, Encoded, Entries, Previous, Scanned};
use crate::webhook::EventHead;

/// The greatest number of entries of the log that are read at a time.
const PAGE: usize = 16;

/// The entries of a log after a revision, in pages.
pub(super) fn log_after(workspace: WorkspaceId, revision: u64) -> Entries<EventHead> {
    let after = records::audit_entry(workspace, revision);
    Entries::in_workspace(workspace)
        .after(&after)
        .bounded(PAGE, chunked_reads::BYTES)
}

/// Entries with their revisions.
pub(super) async fn numbered(page: Scanned<EventHead>) -> Result<VecDeque<(u64, EventHead)>, Error> {
    let decode = |entry: Encoded<EventHead>| Ok((entry.key().entry_number()?, entry.value()?));
    Ok(chunked_reads::decoded(page, decode).await?.into())
}

/// The part of an entry that a message contains.
pub(super) async fn event_head(entry: Encoded<EventHead>) -> Result<EventHead, Error> {
    blocking_if(entry.bytes() >= LONG, move || entry.value()).await?
}

impl AgentCfg {
    /// The last event of a webhook's types up to a position, searched backwards to the webhook's creation.
    pub(super) async fn previous_event(&self, found: &WebhookWithState, position: u64) -> Result<Previous, Error> {
        let (webhook, created) = (&found.webhook.value, found.state.value.created);
        let after = records::audit_entry::<EventHead>(webhook.workspace_id, position.saturating_add(1));
        let entries = Entries::in_workspace(webhook.workspace_id).after(&after).descending();
        let mut pieces = Chunks::of(entries);
        while let Some(piece) = pieces.next(self).await? {
            for (number, event) in numbered(piece).await? {
                if number <= created {
                    return Ok(Previous::None);
                }
                if webhook.types.include(&event.action) {
                    return Ok(Previous::Revision(number));
                }
            }
        }
        Ok(Previous::None)
    }
}
