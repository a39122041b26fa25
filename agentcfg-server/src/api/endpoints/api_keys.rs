//! API keys.

use agentcfg_core::model::{ApiKey, CreatedApiKey, NewApiKey, Permission, RotateApiKey, Success};
use agentcfg_core::validate::{IntoValid, Valid};

use super::tags::API_KEYS;
use crate::api::answer::{Created, Disclosed, Json, List as Array};
use crate::api::call::parameters::{KeyId, WorkspaceId};
use crate::api::call::{Call, Optional};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/api-keys";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Create>(),
    Definition::of::<Rotate>(),
    Definition::of::<Revoke>(),
];

/// `GET /api/api-keys`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::ApiKeysRead));

    const DOC: Doc = Doc::new(
        "listApiKeys",
        API_KEYS,
        "List API keys",
        "Returns the API keys of a workspace, with those that are revoked or expired. Secrets are never shown.",
    )
    .answer("The keys, oldest first.", &[Example("keys", "[{}]")]);

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<ApiKey>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_api_keys(call.caller, workspace).await?))
    }
}

/// `POST /api/api-keys`
pub struct Create;

impl Endpoint for Create {
    const ROUTE: Route = Route::post(PATH, Needs::SessionWith(Permission::ApiKeysManage));

    const DOC: Doc = Doc::new(
        "createApiKey",
        API_KEYS,
        "Create an API key",
        "Creates an API key. Its plaintext is shown in this answer alone.\n\n\
         `permissions` takes permissions of the scope away. With `agents` the key reads, calls, changes and releases those agents \
         alone: naming another one, and what concerns the whole workspace, is 403. `label` pins its model calls, prompts and \
         releases.",
    )
    .bodies(&[
        Example(
            "production",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "name": "Nightly build",
                "environment": "production",
                "scope": "write",
                "rate_limit": 250
            }"#,
        ),
        Example(
            "expiring",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "name": "Nightly build",
                "environment": "development",
                "scope": "read",
                "rate_limit": 250,
                "expires_at": "2099-01-31T18:00:00+01:00"
            }"#,
        ),
        Example(
            "limited",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "name": "Support bot",
                "environment": "production",
                "scope": "write",
                "permissions": ["agents:read", "models:invoke"],
                "agents": ["release-writer"],
                "label": "production"
            }"#,
        ),
    ])
    .answer("The key with its plaintext.", &[Example("created", "{}")]);

    type Input = ();
    type Body = Valid<NewApiKey>;
    type Answer = Created<Disclosed<CreatedApiKey>>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, new: Valid<NewApiKey>) -> Result<Self::Answer, Failure> {
        Ok(Created(Disclosed(call.service.create_api_key(call.caller, new).await?)))
    }
}

/// `POST /api/api-keys/rotate`
pub struct Rotate;

impl Endpoint for Rotate {
    const ROUTE: Route = Route::post("/api/api-keys/rotate", Needs::SessionWith(Permission::ApiKeysManage));

    const DOC: Doc = Doc::new(
        "rotateApiKey",
        API_KEYS,
        "Replace an API key",
        "Creates a key with the name, the environment, the scope and the limits of another one, and with its lifetime where it \
         has one. The old key ends after the overlap, and never later than it would have. The body may be left out.\n\n\
         404 covers keys that are unknown, or of a workspace that the caller is not a member of; a key that has ended is 409.",
    )
    .bodies(&[Example("overlap", r#"{"overlap_seconds": 3600}"#), Example("at_once", "{}")])
    .answer(
        "The new key with its plaintext.",
        &[Example(
            "rotated",
            r#"{
                "id": "7bQ8mZr2LkV7xN0bTy6X",
                "key": "svc_live_7bQ8mZr2LkV7xN0bTy6XEXAMPLEexampleEXAMPLEexampleEXAMPLEexample0000000"
            }"#,
        )],
    )
    .failures(&[409]);

    type Input = (KeyId,);
    type Body = Optional<Valid<RotateApiKey>>;
    type Answer = Created<Disclosed<CreatedApiKey>>;

    async fn run(
        call: &Call<'_>,
        (key_id,): Values<'_, Self>,
        Optional(rotate): Self::Body,
    ) -> Result<Self::Answer, Failure> {
        let rotate = match rotate {
            Some(rotate) => rotate,
            None => RotateApiKey::default().into_valid()?,
        };
        Ok(Created(Disclosed(
            call.service.rotate_api_key(call.caller, key_id, rotate).await?,
        )))
    }
}

/// `DELETE /api/api-keys`
pub struct Revoke;

impl Endpoint for Revoke {
    const ROUTE: Route = Route::delete(PATH, Needs::SessionWith(Permission::ApiKeysManage));

    const DOC: Doc = Doc::new(
        "revokeApiKey",
        API_KEYS,
        "Revoke an API key",
        "Revokes an API key at once: the next request with it is answered with 401. The key stays listed.\n\n\
         404 covers keys that are unknown, revoked before, or of a workspace that the caller is not a member of.",
    )
    .answer("The key is revoked.", &[Example("done", r#"{"success": true}"#)]);

    type Input = (KeyId,);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (key_id,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.revoke_api_key(call.caller, key_id).await?))
    }
}
