//! What operators of the deployment may do in all workspaces.

use agentcfg_core::model::{ApiKey, Success, Workspace};

use super::tags::OPERATORS;
use crate::api::answer::{Json, List as Array};
use crate::api::call::Call;
use crate::api::call::parameters::{KeyId, KnownUserId};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const KEYS: &str = "/api/operator/api-keys";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<Workspaces>(),
    Definition::of::<Find>(),
    Definition::of::<Revoke>(),
    Definition::of::<Remove>(),
];

/// `GET /api/operator/workspaces`
pub struct Workspaces;

impl Endpoint for Workspaces {
    const ROUTE: Route = Route::get("/api/operator/workspaces", Needs::Session);

    const DOC: Doc = Doc::new(
        "listAllWorkspaces",
        OPERATORS,
        "List all workspaces",
        "Returns the workspaces of the deployment in the order of their creation. 403 for users who are no operators.",
    )
    .answer("All workspaces.", &[Example("workspaces", "[{}]")])
    .failures(&[403]);

    type Input = ();
    type Body = ();
    type Answer = Array<Workspace>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_all_workspaces(call.caller).await?))
    }
}

/// `GET /api/operator/api-keys`
pub struct Find;

impl Endpoint for Find {
    const ROUTE: Route = Route::get(KEYS, Needs::Session);

    const DOC: Doc = Doc::new(
        "findApiKey",
        OPERATORS,
        "Find an API key",
        "Returns the record of an API key of any workspace, such as of one that was found where it should not be. 403 for users who \
         are no operators.",
    )
    .answer("The key.", &[Example("key", "{}")])
    .failures(&[403]);

    type Input = (KeyId,);
    type Body = ();
    type Answer = Json<ApiKey>;

    async fn run(call: &Call<'_>, (key_id,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.find_api_key(call.caller, key_id).await?))
    }
}

/// `DELETE /api/operator/api-keys`
pub struct Revoke;

impl Endpoint for Revoke {
    const ROUTE: Route = Route::delete(KEYS, Needs::Session);

    const DOC: Doc = Doc::new(
        "revokeAnyApiKey",
        OPERATORS,
        "Revoke an API key of any workspace",
        "Revokes an API key at once: the next request with it is answered with 401. The audit log of its workspace has the entry, \
         with the actor `operator`. 403 for users who are no operators.\n\n\
         404 covers keys that are unknown or revoked before.",
    )
    .answer("The key is revoked.", &[Example("done", r#"{"success": true}"#)])
    .failures(&[403]);

    type Input = (KeyId,);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (key_id,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.revoke_any_api_key(call.caller, key_id).await?))
    }
}

/// `DELETE /api/operator/users`
pub struct Remove;

impl Endpoint for Remove {
    const ROUTE: Route = Route::delete("/api/operator/users", Needs::Session);

    const DOC: Doc = Doc::new(
        "removeUser",
        OPERATORS,
        "Remove a user from all workspaces",
        "Ends all memberships and all browser sessions of a user. From then on workspaces refuse tokens of the user, also where a \
         group would let the user in, and the user can create no workspace. An owner lets the user into a workspace again by making \
         the user a member. API keys that the user has created stay. The audit log of each workspace has the entry, with the actor \
         `operator`. 403 for users who are no operators. The same again changes nothing.\n\n\
         409 names a workspace that would be left without an owner, and changes nothing. 404 is for a user who has never signed in \
         and is no member of a workspace.",
    )
    .answer("The user is removed.", &[Example("done", r#"{"success": true}"#)])
    .failures(&[403, 409]);

    type Input = (KnownUserId,);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (user_id,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.remove_user(call.caller, &user_id.parse()?).await?))
    }
}
