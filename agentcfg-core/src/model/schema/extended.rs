//! Types that show another one and one field more.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use crate::body::schema::{change, extended, record};
use crate::model::{ApiKey, CreatedApiKey, Role, Webhook, WebhookWithSecret, Workspace, WorkspaceView};
use crate::rules::Any;
use crate::rules::schema::{KeyText, SigningSecret};

impl JsonSchema for CreatedApiKey {
    fn schema_name() -> Cow<'static, str> {
        "CreatedApiKey".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let about = "A new API key together with its plaintext, which no other answer ever shows.";
        let documentation = "The plaintext to send as bearer credential. Only a hash of it is kept.";
        let key = record::required::<KeyText>(generator, documentation);
        let example = json!({
            "last_used_at": null,
            "key": "svc_live_4fQ8mZr2LkV7xN0bTy6WEXAMPLEexampleEXAMPLEexampleEXAMPLEexample0000000",
        });
        extended::<ApiKey>(generator, about, ("key", key), &[example])
    }
}

impl JsonSchema for WebhookWithSecret {
    fn schema_name() -> Cow<'static, str> {
        "WebhookWithSecret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let about = "A webhook together with its new secret, which no other answer ever shows.";
        let documentation = "The secret that signs the deliveries, for a verifier of Standard Webhooks.";
        let secret = record::required::<SigningSecret>(generator, documentation);
        let example = json!({ "secret": "whsec_RVhBTVBMRWV4YW1wbGVFWEFNUExFZXhhbXBsZTAwMDA=" });
        extended::<Webhook>(generator, about, ("secret", secret), &[example])
    }
}

impl JsonSchema for WorkspaceView {
    fn schema_name() -> Cow<'static, str> {
        "WorkspaceView".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let about = "A workspace as the caller sees it.";
        let documentation = "The calling user's role. Absent when an API key calls.";
        let role = change::required::<Any<Role>>(generator, documentation);
        let examples = [json!({ "role": "owner" }), json!({})];
        extended::<Workspace>(generator, about, ("role", role), &examples)
    }
}
