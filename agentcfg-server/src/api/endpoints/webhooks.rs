//! Webhooks.

use agentcfg_core::model::{
    NewWebhook, NoFields, Permission, Success, Webhook, WebhookDelivery, WebhookPatch, WebhookReplay, WebhookWithSecret,
};
use agentcfg_core::validate::Valid;

use super::tags::WEBHOOKS;
use crate::api::answer::{Created, Disclosed, Json, List as Array};
use crate::api::call::parameters::{WebhookId, WorkspaceId};
use crate::api::call::{Call, Optional};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;

const PATH: &str = "/api/webhooks";
const READ: Needs = Needs::Permission(Permission::WebhooksRead);
const MANAGE: Needs = Needs::Permission(Permission::WebhooksManage);

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::of::<List>(),
    Definition::of::<Create>(),
    Definition::of::<Update>(),
    Definition::of::<Delete>(),
    Definition::of::<Test>(),
    Definition::of::<Replay>(),
    Definition::of::<RotateSecret>(),
    Definition::of::<Deliveries>(),
];

/// `GET /api/webhooks`
pub struct List;

impl Endpoint for List {
    const ROUTE: Route = Route::get(PATH, READ);

    const DOC: Doc = Doc::new(
        "listWebhooks",
        WEBHOOKS,
        "List webhooks",
        "Returns the webhooks of a workspace. Secrets are never shown.",
    )
    .answer(
        "The webhooks, oldest first.",
        &[Example(
            "webhooks",
            r#"[{"enabled": false, "disabled_reason": "gone", "updated_at": "2026-11-20T10:05:41.007Z"}]"#,
        )],
    );

    type Input = (WorkspaceId,);
    type Body = ();
    type Answer = Array<Webhook>;

    async fn run(call: &Call<'_>, (workspace,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.list_webhooks(call.caller, workspace).await?))
    }
}

/// `POST /api/webhooks`
pub struct Create;

impl Endpoint for Create {
    const ROUTE: Route = Route::post(PATH, MANAGE);

    const DOC: Doc = Doc::new(
        "createWebhook",
        WEBHOOKS,
        "Create a webhook",
        "Creates a webhook, which gets the events after its creation. Messages are signed as Standard Webhooks describes, \
         with the `secret` of this answer, which no other answer shows. They name what was changed and by whom, and never \
         contain prompts or secrets.\n\n\
         The URL must be `https` on port 443, without user information and fragment. Every address of its host must be \
         public, which is checked at each attempt. The deployment can make exceptions for hosts. At most 20 webhooks a \
         workspace, then 422. 503 when the deployment has no master key.",
    )
    .bodies(&[
        Example(
            "all_of_agents",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "url": "https://hooks.example.com/agentcfg"
            }"#,
        ),
        Example(
            "some",
            r#"{
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "url": "https://hooks.example.com/agentcfg",
                "types": ["agent.updated", "member.*"],
                "description": "Deploys prompts",
                "ordered": true
            }"#,
        ),
    ])
    .answer("The webhook with its secret.", &[Example("created", "{}")])
    .failures(&[422]);

    type Input = ();
    type Body = Valid<NewWebhook>;
    type Answer = Created<Disclosed<WebhookWithSecret>>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, new: Valid<NewWebhook>) -> Result<Self::Answer, Failure> {
        Ok(Created(Disclosed(call.service.create_webhook(call.caller, new).await?)))
    }
}

/// `PATCH /api/webhooks`
pub struct Update;

impl Endpoint for Update {
    const ROUTE: Route = Route::patch(PATH, MANAGE);

    const DOC: Doc = Doc::new(
        "updateWebhook",
        WEBHOOKS,
        "Change a webhook",
        "Replaces the fields that the body names. With `\"enabled\": true` a webhook goes on from its cursor, with the events \
         that were not delivered. A change that changes nothing is not recorded.",
    )
    .bodies(&[
        Example("enable", r#"{"enabled": true}"#),
        Example("move", r#"{"url": "https://hooks.example.com/v2", "description": null}"#),
    ])
    .answer("The webhook.", &[Example("webhook", "{}")]);

    type Input = (WebhookId,);
    type Body = Valid<WebhookPatch>;
    type Answer = Json<Webhook>;

    async fn run(
        call: &Call<'_>,
        (webhook,): Values<'_, Self>,
        patch: Valid<WebhookPatch>,
    ) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.update_webhook(call.caller, webhook, patch).await?))
    }
}

/// `DELETE /api/webhooks`
pub struct Delete;

impl Endpoint for Delete {
    const ROUTE: Route = Route::delete(PATH, MANAGE);

    const DOC: Doc = Doc::new(
        "deleteWebhook",
        WEBHOOKS,
        "Delete a webhook",
        "Deletes a webhook and the record of its deliveries. A message that is being sent may still arrive.",
    )
    .answer("The webhook is deleted.", &[Example("deleted", r#"{"success": true}"#)]);

    type Input = (WebhookId,);
    type Body = ();
    type Answer = Json<Success>;

    async fn run(call: &Call<'_>, (webhook,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.delete_webhook(call.caller, webhook).await?))
    }
}

/// `POST /api/webhooks/test`
pub struct Test;

impl Endpoint for Test {
    const ROUTE: Route = Route::post("/api/webhooks/test", MANAGE);

    const DOC: Doc = Doc::new(
        "testWebhook",
        WEBHOOKS,
        "Send a test",
        "Sends an event of the type `webhook.test` at once, also to a webhook that is disabled, and answers how it went. It \
         is sent once, and its failure never disables the webhook.",
    )
    .bodies(&[Example("empty", "{}")])
    .answer(
        "The attempt. It is 200 also when the receiver has failed.",
        &[Example(
            "attempt",
            r#"{
                "id": "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4.k3j9x0ab.test-0192f0b25d117c0e8a3b54b0f1a2c3d4",
                "type": "webhook.test",
                "revision": null,
                "status": 204,
                "error": null,
                "duration_ms": 87,
                "response": "",
                "next_attempt_at": null
            }"#,
        )],
    );

    type Input = (WebhookId,);
    type Body = Optional<Valid<NoFields>>;
    type Answer = Json<WebhookDelivery>;

    async fn run(call: &Call<'_>, (webhook,): Values<'_, Self>, _: Self::Body) -> Result<Self::Answer, Failure> {
        let Some(transport) = call.webhooks else {
            let message = "webhooks are not set up on this server";
            return Err(Failure::unavailable(message).should_retry(false));
        };
        Ok(Json(call.service.test_webhook(call.caller, webhook, transport).await?))
    }
}

/// `POST /api/webhooks/replay`
pub struct Replay;

impl Endpoint for Replay {
    const ROUTE: Route = Route::post("/api/webhooks/replay", MANAGE);

    const DOC: Doc = Doc::new(
        "replayWebhook",
        WEBHOOKS,
        "Send events again",
        "Moves the cursor of a webhook back, to a cursor of its workspace or to the `start` of the log. The events after it \
         are sent again, each with the `webhook-id` that it had, so that a receiver can leave out those that it knows.",
    )
    .bodies(&[
        Example(
            "cursor",
            r#"{"after": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c7"}"#,
        ),
        Example("all", r#"{"after": "start"}"#),
    ])
    .answer("The webhook.", &[Example("webhook", "{}")]);

    type Input = (WebhookId,);
    type Body = Valid<WebhookReplay>;
    type Answer = Json<Webhook>;

    async fn run(
        call: &Call<'_>,
        (webhook,): Values<'_, Self>,
        replay: Valid<WebhookReplay>,
    ) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.replay_webhook(call.caller, webhook, replay).await?))
    }
}

/// `POST /api/webhooks/rotate-secret`
pub struct RotateSecret;

impl Endpoint for RotateSecret {
    const ROUTE: Route = Route::post("/api/webhooks/rotate-secret", MANAGE);

    const DOC: Doc = Doc::new(
        "rotateWebhookSecret",
        WEBHOOKS,
        "Rotate the secret of a webhook",
        "Gives the webhook a new secret, which no other answer shows. For 24 hours messages are signed with both secrets.",
    )
    .bodies(&[Example("empty", "{}")])
    .answer(
        "The webhook with its new secret.",
        &[Example("rotated", "{}")],
    );

    type Input = (WebhookId,);
    type Body = Optional<Valid<NoFields>>;
    type Answer = Disclosed<WebhookWithSecret>;

    async fn run(call: &Call<'_>, (webhook,): Values<'_, Self>, _: Self::Body) -> Result<Self::Answer, Failure> {
        Ok(Disclosed(
            call.service.rotate_webhook_secret(call.caller, webhook).await?,
        ))
    }
}

/// `GET /api/webhooks/deliveries`
pub struct Deliveries;

impl Endpoint for Deliveries {
    const ROUTE: Route = Route::get("/api/webhooks/deliveries", READ);

    const DOC: Doc = Doc::new(
        "listWebhookDeliveries",
        WEBHOOKS,
        "List attempts to deliver",
        "Returns the last 100 attempts to deliver to a webhook, tests included.",
    )
    .answer("The attempts, newest first.", &[Example("attempts", "[{}]")]);

    type Input = (WebhookId,);
    type Body = ();
    type Answer = Array<WebhookDelivery>;

    async fn run(call: &Call<'_>, (webhook,): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Array(call.service.webhook_deliveries(call.caller, webhook).await?))
    }
}
