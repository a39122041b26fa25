//! Members of a workspace.

use agentcfg_core::model::{Member, Permission, RoleChange, Success};
use agentcfg_core::validate::Valid;

use super::tags::MEMBERS;
use crate::api::answer::{Json, List as Array};
use crate::api::call::Call;
use crate::api::call::parameters::{UserId, WorkspaceId};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/workspaces/members";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Set>(),
    Definition::of::<Remove>(),
];

/// `GET /api/workspaces/members`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::UsersRead));

    const DOC: Doc = Doc::new(
        "listMembers",
        MEMBERS,
        "List the members of a workspace",
        "Returns all members, in the order in which they joined, with `name` and `email` where the token of their last sign-in had \
         these claims.",
    )
    .answer(
        "The members.",
        &[Example("members", r#"[{"user_id": "user_7", "role": "owner"}, {}]"#)],
    );

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<Member>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_members(call.caller, workspace).await?))
    }
}

/// `PUT /api/workspaces/members`
pub struct Set;

impl Endpoint for Set {
    const ROUTE: Route = Route::put(PATH, Needs::SessionWith(Permission::MembersManage));

    const DOC: Doc = Doc::new(
        "setMember",
        MEMBERS,
        "Add a member or change a role",
        "Adds a user with a role, or changes the role of a member. The same role again changes nothing. Only owners \
         may make a user an owner or change the role of an owner. Where the deployment names a claim for groups, the member \
         `group:<name>` stands for each user whose session token names that group.\n\n\
         409 means that the workspace would be left without an owner.",
    )
    .bodies(&[Example("member", r#"{"role": "member"}"#)])
    .answer("The membership.", &[Example("member", "{}")])
    .failures(&[409]);

    type Input = (WorkspaceId, UserId);
    type Body = Valid<RoleChange>;
    type Answer = Json<Member>;

    async fn run(
        call: &Call<'_>,
        (workspace, user_id): Values<'_, Self>,
        change: Valid<RoleChange>,
    ) -> Result<Self::Answer, Failure> {
        let member = call
            .service
            .set_member(call.caller, workspace, &user_id.parse()?, change.role)
            .await?;
        Ok(Json(member))
    }
}

/// `DELETE /api/workspaces/members`
pub struct Remove;

impl Endpoint for Remove {
    const ROUTE: Route = Route::delete(
        PATH,
        Needs::SessionUnless(Permission::MembersManage, "except to remove oneself"),
    );

    const DOC: Doc = Doc::new(
        "removeMember",
        MEMBERS,
        "Remove a member",
        "Ends a membership. Every member may end their own; only owners may end an owner's.\n\n\
         409 means that the workspace would be left without an owner.",
    )
    .answer(
        "The user is no longer a member.",
        &[Example("done", r#"{"success": true}"#)],
    )
    .failures(&[404, 409]);

    type Input = (WorkspaceId, UserId);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (workspace, user_id): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(
            call.service
                .remove_member(call.caller, workspace, &user_id.parse()?)
                .await?,
        ))
    }
}
