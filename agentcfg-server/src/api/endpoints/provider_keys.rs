//! Provider keys.

#[cfg(test)]
mod tests;

use agentcfg_core::model::{NoFields, Permission, ProviderKeyInfo, ProviderKeyTest, Success};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::validate::Valid;

use super::tags::MODELS;
use crate::api::answer::{Json, List as Array};
use crate::api::call::parameters::{ProviderName, WorkspaceId};
use crate::api::call::{Call, Optional};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/provider-keys";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Save>(),
    Definition::of::<Delete>(),
    Definition::of::<Test>(),
];

/// `GET /api/provider-keys`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, Needs::Permission(Permission::SettingsRead));

    const DOC: Doc = Doc::new(
        "listProviderKeys",
        MODELS,
        "List provider keys",
        "Returns the providers for which the workspace has saved a credential of its own, never the credential itself.",
    )
    .answer(
        "The saved keys.",
        &[Example(
            "keys",
            r#"[
                {
                    "provider": "anthropic",
                    "created_at": "2026-11-20T09:30:00.123Z",
                    "updated_at": "2026-11-20T09:30:00.123Z",
                    "fingerprint": "8c1f02ad"
                }
            ]"#,
        )],
    );

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<ProviderKeyInfo>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_provider_keys(call.caller, workspace).await?))
    }
}

/// `PUT /api/provider-keys`
pub struct Save;

impl Endpoint for Save {
    const ROUTE: Route = Route::put(PATH, Needs::SessionWith(Permission::ProviderKeysManage));

    const DOC: Doc = Doc::new(
        "saveProviderKey",
        MODELS,
        "Save a provider key",
        "Saves the workspace's own credential for a provider, or replaces it; the next model call uses it. It is \
         sealed before it is stored and never shown again. 403 also when the plan does not allow own keys, and 503 \
         when the deployment has no master key.",
    )
    .bodies(&[Example("key", r#"{"api_key": "sk-ant-0123456789"}"#)])
    .answer(
        "The key is saved.",
        &[Example(
            "key",
            r#"{
                "provider": "anthropic",
                "created_at": "2026-11-20T09:30:00.123Z",
                "updated_at": "2026-11-20T09:30:00.123Z",
                "fingerprint": "8c1f02ad"
            }"#,
        )],
    );

    type Input = (WorkspaceId, ProviderName);
    type Body = ProviderCredential;
    type Answer = Json<ProviderKeyInfo>;

    async fn run(
        call: &Call<'_>,
        (workspace, name): Values<'_, Self>,
        credential: ProviderCredential,
    ) -> Result<Self::Answer, Failure> {
        let provider = call.service.provider_named(call.caller, workspace, name).await?;
        let saved = call
            .service
            .save_provider_key(call.caller, workspace, provider, &credential)
            .await?;
        Ok(Json(saved))
    }
}

/// `DELETE /api/provider-keys`
pub struct Delete;

impl Endpoint for Delete {
    const ROUTE: Route = Route::delete(PATH, Needs::SessionWith(Permission::ProviderKeysManage));

    const DOC: Doc = Doc::new(
        "deleteProviderKey",
        MODELS,
        "Delete a provider key",
        "Deletes the workspace's own credential for a provider, on every plan; the next model call uses the managed \
         one, if there is one.",
    )
    .answer("The key is deleted.", &[Example("deleted", r#"{"success": true}"#)]);

    type Input = (WorkspaceId, ProviderName);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (workspace, name): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        let provider = call.service.provider_named(call.caller, workspace, name).await?;
        let deleted = call
            .service
            .delete_provider_key(call.caller, workspace, provider)
            .await?;
        Ok(Json(deleted))
    }
}

/// `POST /api/provider-keys/test`
pub struct Test;

impl Endpoint for Test {
    const ROUTE: Route = Route::post(
        "/api/provider-keys/test",
        Needs::SessionWith(Permission::ProviderKeysManage),
    );

    const DOC: Doc = Doc::new(
        "testProviderKey",
        MODELS,
        "Test a provider key",
        "Asks the provider for its list of models with the saved key, which costs nothing. The answer is 200 whatever the provider \
         says: `ok` tells whether it takes the key, and `message` is its own where it refuses. 404 where no key is saved.",
    )
    .bodies(&[Example("empty", "{}")])
    .answer(
        "What the provider says.",
        &[
            Example("valid", r#"{"ok": true, "status": 200, "message": "the provider takes the key"}"#),
            Example("refused", r#"{"ok": false, "status": 401, "message": "Incorrect API key provided"}"#),
        ],
    );

    type Input = (WorkspaceId, ProviderName);
    type Body = Optional<Valid<NoFields>>;
    type Answer = Json<ProviderKeyTest>;

    async fn run(call: &Call<'_>, (workspace, name): Values<'_, Self>, _: Self::Body) -> Result<Self::Answer, Failure> {
        let provider = call.service.provider_named(call.caller, workspace, name).await?;
        let saved = call
            .service
            .saved_provider_key(call.caller, workspace, provider)
            .await?;
        let Some(calls) = call.model_calls else {
            return Err(Failure::unavailable("model calls are not set up on this server"));
        };
        Ok(Json(calls.test_key(&saved).await?))
    }
}
