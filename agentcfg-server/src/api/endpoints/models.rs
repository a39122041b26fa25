//! The catalogue of models.

use agentcfg_core::model::{ModelInfo, Permission};

use super::tags::MODELS;
use crate::api::answer::List as Array;
use crate::api::call::Call;
use crate::api::call::parameters::WorkspaceId;
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<List>()];

/// `GET /api/models`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get("/api/models", Needs::Permission(Permission::AgentsRead));

    const DOC: Doc = Doc::new(
        "listModels",
        MODELS,
        "List the models on offer",
        "Returns the catalogue of the deployment, each model with the credential that its next call would use: \
         the workspace's own, the managed one, or none. Prices are in USD per million tokens, as the operator has entered them.",
    )
    .answer(
        "The models in the order of the catalogue.",
        &[Example(
            "models",
            r#"[
                {
                    "id": "claude-sonnet-5-5",
                    "provider": "anthropic",
                    "provider_name": "Anthropic",
                    "provider_api": "anthropic",
                    "display_name": "Claude Sonnet 5.5",
                    "status": "available",
                    "credential": "workspace",
                    "input_price": 2,
                    "cached_input_price": 0.1,
                    "cache_write_price": 2.5,
                    "output_price": 10,
                    "max_output_tokens": 128000
                }
            ]"#,
        )],
    );

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<ModelInfo>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_models(call.caller, workspace).await?))
    }
}
