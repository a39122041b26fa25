//! Reading the log for the events of a webhook.

use std::collections::VecDeque;

use super::found::Found;
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::service::records::{self, Entries, Previous, Scanned};
use crate::webhook::EventHead;

/// How many entries of the log are read at a time.
const PAGE: usize = 16;

/// The entries of a log after a revision, some at a time.
pub(super) fn log_after(workspace: WorkspaceId, revision: u64) -> Entries<EventHead> {
    let after = records::audit_entry(workspace, revision);
    Entries::in_workspace(workspace).after(&after).limit(PAGE)
}

/// Entries with their numbers.
pub(super) fn numbered(page: Scanned<EventHead>) -> Result<VecDeque<(u64, EventHead)>, Error> {
    let entries = page.into_iter();
    entries
        .map(|entry| Ok((entry.key().entry_number()?, entry.value()?)))
        .collect()
}

impl AgentCfg {
    /// The last event of a webhook's types up to a position, searched backwards to the webhook's creation.
    pub(super) async fn previous_event(&self, found: &Found, position: u64) -> Result<Previous, Error> {
        let (webhook, created) = (&found.webhook.value, found.state.value.created);
        let mut before = position.saturating_add(1);
        loop {
            let key = records::audit_entry(webhook.workspace_id, before);
            let entries = Entries::<EventHead>::in_workspace(webhook.workspace_id)
                .after(&key)
                .descending()
                .limit(PAGE);
            let page = self.scan(entries).await?;
            if page.is_empty() {
                return Ok(Previous::None);
            }
            for entry in page {
                before = entry.key().entry_number()?;
                if before <= created {
                    return Ok(Previous::None);
                }
                if webhook.types.include(&entry.value()?.action) {
                    return Ok(Previous::Revision(before));
                }
            }
        }
    }
}
