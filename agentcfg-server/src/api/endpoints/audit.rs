//! The audit log.

use agentcfg_core::model::{AuditEntry, AuditFilter, Permission};

use super::tags::AUDIT_LOG;
use crate::api::answer::{LongList, Written};
use crate::api::call::Call;
use crate::api::call::parameters::{
    ActionFilter, ActorFilter, AuditLimit, AuditView, BeforeRevision, Offset, Since, TargetIdFilter, TargetTypeFilter,
    Until, WorkspaceId,
};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::paged_array::{self, Summaries};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

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
         `revision` as `before`. With `view=summary` the values are left out: `changes` has null for each path, at most 100, and \
         `paths` says how many there are where they are more.",
    )
    .answer(
        "The entries, newest first.",
        &[Example(
            "entries",
            "[{}]",
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
        AuditView,
    );
    type Body = ();
    type Answer = Written<LongList<AuditEntry>>;

    async fn run(
        call: &Call<'_>,
        (workspace, limit, offset, actor, action, target_type, target_id, since, until, before, is_summary): Values<
            '_,
            Self,
        >,
        (): (),
    ) -> Result<Self::Answer, Failure> {
        let filter = AuditFilter::default()
            .actor(actor.map(str::to_owned))
            .action(action.map(str::to_owned))
            .target_type(target_type.map(str::to_owned))
            .target_id(target_id.map(str::to_owned))
            .since(since)
            .until(until)
            .before(before)
            .offset(offset.unwrap_or(0))
            .limit(limit);
        let pages = call.service.audit_pages(call.caller, workspace, &filter).await?;
        match is_summary {
            true => paged_array::answer(call, Summaries(pages)).await,
            false => paged_array::answer(call, pages).await,
        }
    }
}
