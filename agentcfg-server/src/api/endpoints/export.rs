//! The export of a workspace.

use agentcfg_core::model::{ExportLine, Permission};
use agentcfg_core::service::Export as Source;

use super::tags::WORKSPACES;
use crate::api::answer::{Lines, Written};
use crate::api::call::Call;
use crate::api::call::parameters::WorkspaceId;
use crate::api::endpoint::{Definition, Doc, Endpoint, Values};
use crate::api::route::{Needs, Route};
use crate::http::BodyError;
use crate::http::byte_budget::{HeldBytes, holder};
use crate::http::errors::Failure;
use crate::http::pull_body::{NextPiece, PullBody};
use crate::http::response::Reply;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<Export>()];

/// `GET /api/workspaces/export`
pub struct Export;

impl Endpoint for Export {
    const ROUTE: Route = Route::get(
        "/api/workspaces/export",
        Needs::SessionWith(Permission::WorkspaceManage),
    );

    const DOC: Doc = Doc::new(
        "exportWorkspace",
        WORKSPACES,
        "Export a workspace",
        "Returns all records of a workspace as newline-delimited JSON: the workspace, its members, its agents with the \
         deleted ones, their versions and labels, its sets, the last status reports, its API keys with the revoked ones, the \
         providers that it has a key for, its webhooks, and its audit log, oldest entry first. Neither hashes of keys, nor provider \
         keys, nor secrets of webhooks are among them.\n\n\
         All lines show the state at one revision, that of the last `audit` line, also while the workspace is changed; status \
         reports alone belong to no revision. An export that fails halfway, or whose caller loses the right to it, ends in a \
         broken connection. Each export is recorded in the audit log.",
    )
    .answer("The records, one in each line.", &[]);

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Written<Lines<ExportLine>>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        if call.is_head() {
            // Nothing leaves the server, so nothing is recorded.
            let permission = Permission::WorkspaceManage;
            call.service.authorize(call.caller, workspace, permission).await?;
            return Ok(Reply::lines(PullBody::empty(next)).into());
        }
        let share = call.answers.streamed(holder(call.caller), 0)?;
        // Its audit entry names the request, although its method is one that changes nothing.
        let caller = call.caller.clone().with_request_id(call.request_id);
        let export = call.service.export_workspace(&caller, workspace).await?;
        Ok(Reply::lines(PullBody::new((export, share), next)).into())
    }
}

/// The next lines of an export.
fn next((mut export, mut share): (Source, HeldBytes)) -> NextPiece<(Source, HeldBytes)> {
    Box::pin(async move {
        match export.next().await {
            Ok(lines) => {
                share.next_piece(lines.as_ref().map_or(0, |lines| lines.len()));
                Ok(lines.map(|lines| (lines.into(), (export, share))))
            }
            Err(error) => {
                tracing::warn!(?error, "an export was broken off");
                Err(BodyError::new(error))
            }
        }
    })
}
