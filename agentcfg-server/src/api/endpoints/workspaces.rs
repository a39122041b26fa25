//! Workspaces.

use agentcfg_core::model::{NewWorkspace, Permission, Success, Workspace, WorkspacePatch, WorkspaceView};
use agentcfg_core::validate::Valid;

use super::tags::WORKSPACES;
use crate::api::answer::{Created, Json, List as Array};
use crate::api::call::Call;
use crate::api::call::parameters::{Confirm, WorkspaceId};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/workspaces";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Create>(),
    Definition::of::<Update>(),
    Definition::of::<Delete>(),
];

/// `POST /api/workspaces`
pub struct Create;

impl Endpoint for Create {
    const ROUTE: Route = Route::post(PATH, Needs::Session);

    const DOC: Doc = Doc::new(
        "createWorkspace",
        WORKSPACES,
        "Create a workspace",
        "Creates a workspace on the deployment's default plan and makes the caller its owner. 422 means that the caller owns as \
         many workspaces as the deployment allows.",
    )
    .bodies(&[Example("workspace", r#"{"name": "Studio North"}"#)])
    .answer("The new workspace.", &[Example("created", r#"{"plan": "free"}"#)])
    .failures(&[422]);

    type Input = ();
    type Body = Valid<NewWorkspace>;
    type Answer = Created<Json<Workspace>>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, new: Valid<NewWorkspace>) -> Result<Self::Answer, Failure> {
        Ok(Created(Json(call.service.create_workspace(call.caller, new).await?)))
    }
}

/// `GET /api/workspaces`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Credential);

    const DOC: Doc = Doc::new(
        "listWorkspaces",
        WORKSPACES,
        "List the caller's workspaces",
        "Returns the workspaces that the session's user is a member of, each with the user's role, or the one \
         workspace of an API key, without a role.",
    )
    .answer(
        "The workspaces, oldest first.",
        &[Example("session", r#"[{"role": "owner"}]"#), Example("api_key", "[{}]")],
    );

    type Input = ();
    type Body = ();
    type Answer = Array<WorkspaceView>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_workspaces(call.caller).await?))
    }
}

/// `PATCH /api/workspaces`
pub struct Update;

impl Endpoint for Update {
    const ROUTE: Route = Route::patch(
        PATH,
        Needs::SessionUnless(Permission::WorkspaceManage, "unless an operator changes the plan alone"),
    );

    const DOC: Doc = Doc::new(
        "updateWorkspace",
        WORKSPACES,
        "Rename a workspace or change its plan",
        "Changes the name, the plan or both. Operators, whom the deployment's configuration names, alone may change \
         plans; for a change of the plan alone they need no membership, and an unknown workspace is answered with 404.",
    )
    .bodies(&[
        Example("rename", r#"{"name": "Studio South"}"#),
        Example("plan", r#"{"plan": "team"}"#),
    ])
    .answer(
        "The workspace after the change.",
        &[Example(
            "renamed",
            r#"{"name": "Studio South", "updated_at": "2026-11-20T10:05:41.007Z"}"#,
        )],
    )
    .failures(&[404]);

    type Input = (WorkspaceId,);
    type Body = Valid<WorkspacePatch>;
    type Answer = Json<Workspace>;

    async fn run(
        call: &Call<'_>,
        (workspace,): Values<'_, Self>,
        patch: Valid<WorkspacePatch>,
    ) -> Result<Self::Answer, Failure> {
        Ok(Json(
            call.service.update_workspace(call.caller, workspace, patch).await?,
        ))
    }
}

/// `DELETE /api/workspaces`
pub struct Delete;

impl Endpoint for Delete {
    const ROUTE: Route = Route::delete(PATH, Needs::SessionWith(Permission::WorkspaceManage));

    const DOC: Doc = Doc::new(
        "deleteWorkspace",
        WORKSPACES,
        "Delete a workspace",
        "Deletes a workspace with all that it holds, for good; `GET /api/workspaces/export` gives a copy of it. From the \
         answer on, its API keys are answered with 401 and its members with 403. Its records are removed from storage in \
         the background.\n\n\
         A server that restores an older backup has the workspace again.",
    )
    .answer(
        "The workspace does not exist any more.",
        &[Example("done", r#"{"success": true}"#)],
    );

    type Input = (WorkspaceId, Confirm);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (workspace, confirm): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(
            call.service.delete_workspace(call.caller, workspace, confirm).await?,
        ))
    }
}
