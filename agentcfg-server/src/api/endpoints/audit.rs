//! The audit log.

use agentcfg_core::model::{AuditEntry, AuditFilter, Permission};
use agentcfg_core::service::AuditPages;

use super::tags::AUDIT_LOG;
use crate::api::answer::LongList;
use crate::api::call::parameters::{
    ActionFilter, ActorFilter, AuditLimit, BeforeRevision, Offset, Since, TargetIdFilter, TargetTypeFilter, Until,
    WorkspaceId,
};
use crate::api::call::{Call, PATIENCE};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::pulled::Next;
use crate::http::{BodyError, Disconnect};

/// The length from which a page is streamed: an entry can have megabytes.
const LONG: usize = 1 << 20;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<List>()];

/// `GET /api/audit-log`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get("/api/audit-log", Needs::Permission(Permission::AuditLogRead));

    const DOC: Doc = Doc::new(
        "listAuditLog",
        AUDIT_LOG,
        "Read the audit log",
        "Returns the changes in a workspace, each with its actor and time, newest first. An entry must match all filters \
         that are given; `limit` and `offset` count the entries that do. To page through a log that grows, pass the last \
         `revision` as `before`.",
    )
    .answer(
        "The entries, newest first.",
        &[Example(
            "entries",
            r#"[
                {
                    "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
                    "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                    "actor": {"type": "user", "id": "user_71"},
                    "action": "agent.updated",
                    "target": {"type": "agent", "id": "release-writer"},
                    "created_at": "2026-11-20T10:05:41.007Z",
                    "changes": {"model": {"from": "gpt-5.5", "to": "claude-sonnet-5-5"}},
                    "revision": 118,
                    "message": "Cheaper model for drafts"
                }
            ]"#,
        )],
    );

    type Input = (
        WorkspaceId,
        AuditLimit,
        Offset,
        ActorFilter,
        ActionFilter,
        TargetTypeFilter,
        TargetIdFilter,
        Since,
        Until,
        BeforeRevision,
    );
    type Body = ();
    type Answer = LongList<AuditEntry>;

    async fn run(
        call: &Call<'_>,
        (workspace, limit, offset, actor, action, target_type, target_id, since, until, before): Values<'_, Self>,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = AuditFilter {
            actor: actor.map(str::to_owned),
            action: action.map(str::to_owned),
            target_type: target_type.map(str::to_owned),
            target_id: target_id.map(str::to_owned),
            since,
            until,
            before,
            offset: offset.unwrap_or(0),
            limit: u32::try_from(limit).ok(),
        };
        let written = Written {
            pages: call.service.audit_pages(call.caller, workspace, &filter).await?,
            text: vec![b'['],
            is_empty: true,
            disconnect: call.disconnect.cloned(),
        };
        call.while_connected(written.begin()).await
    }
}

/// An array of entries, written page by page.
struct Written {
    pages: AuditPages,
    /// What is written and not sent.
    text: Vec<u8>,
    is_empty: bool,
    disconnect: Option<Disconnect>,
}

impl Written {
    /// The answer. A long one is written when the client takes it.
    async fn begin(mut self) -> Result<LongList<AuditEntry>, Failure> {
        while let Some(page) = self.pages.next().await? {
            self.add(&page).map_err(Failure::internal)?;
            if self.text.len() > LONG {
                return Ok(LongList::pulled(Some(self), next));
            }
        }
        Ok(LongList::whole(self.end()))
    }

    fn add(&mut self, page: &[AuditEntry]) -> serde_json::Result<()> {
        for entry in page {
            if !std::mem::take(&mut self.is_empty) {
                self.text.push(b',');
            }
            serde_json::to_writer(&mut self.text, entry)?;
        }
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }
}

/// What is written, and after it the next page.
fn next(written: Option<Written>) -> Next<Option<Written>> {
    Box::pin(async move {
        let Some(mut written) = written else {
            return Ok(None);
        };
        if written.text.is_empty() {
            let page = match &written.disconnect {
                Some(disconnect) => disconnect.while_connected(PATIENCE, written.pages.next()).await,
                None => Some(written.pages.next().await),
            };
            let Some(page) = page else {
                return Err(BodyError::new("the client closed its side of the connection"));
            };
            let page = page.map_err(|error| {
                tracing::warn!(?error, "a page of the audit log was broken off");
                BodyError::new(error)
            })?;
            let Some(page) = page else {
                return Ok(Some((written.end().into(), None)));
            };
            written.add(&page).map_err(BodyError::new)?;
        }
        let text = std::mem::take(&mut written.text);
        Ok(Some((text.into(), Some(written))))
    })
}
