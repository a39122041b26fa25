//! Types that show another one and one field more.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::Property;
use crate::body::schema::{change, record};
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

/// The schema of such a type. Each example changes the first one of the type that it shows.
fn extended<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    description: &str,
    (name, Property { schema, is_required }): (&str, Property),
    examples: &[Value],
) -> Schema {
    let mut all = T::json_schema(generator);
    all.insert("description".into(), description.into());
    let object = all.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.insert(name.into(), schema.into());
    }
    if let (true, Some(Value::Array(required))) = (is_required, object.get_mut("required")) {
        required.push(name.into());
    }
    let first = all.pointer("/examples/0").cloned().unwrap_or_default();
    let changed = |more: &Value| {
        let mut example = first.clone();
        if let (Value::Object(example), Value::Object(more)) = (&mut example, more) {
            example.extend(more.clone());
        }
        example
    };
    all.insert("examples".into(), examples.iter().map(changed).collect());
    all
}
