//! Health checks, and the OpenAPI document.

use std::time::Duration;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::Limits;
use bytes::Bytes;
use serde_json::json;

use super::tags::SYSTEM;
use crate::api::answer::{AnswerBody, AnswerDoc, Document, Kind, Written};
use crate::api::endpoint::{Definition, Doc, Example, OpenEndpoint};
use crate::http::Leaving;
use crate::http::errors::Failure;
use crate::http::response::{Reply, ReplyBody};

/// How long storage may take for the read of `/readyz`: load balancers wait about a second.
const PATIENCE: Duration = Duration::from_millis(900);

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[
    Definition::open::<OpenApi>(),
    Definition::open::<Healthz>(),
    Definition::open::<Readyz>(),
];

/// The answer of `/healthz`.
#[derive(Debug)]
pub struct Health;

impl Kind for Health {
    const DOC: AnswerDoc = AnswerDoc::ok(AnswerBody::Fixed(
        Some("Health"),
        r#"{
            "type": "object",
            "description": "The process is up.",
            "properties": {"status": {"type": "string", "description": "Always `ok`.", "const": "ok"}},
            "required": ["status"],
            "additionalProperties": false,
            "examples": [{"status": "ok"}]
        }"#,
    ));
}

/// The answer of `/readyz`.
#[derive(Debug)]
pub struct Readiness;

impl Kind for Readiness {
    const DOC: AnswerDoc = AnswerDoc::ok(AnswerBody::Fixed(
        Some("Readiness"),
        r#"{
            "type": "object",
            "description": "Storage answers.",
            "properties": {
                "status": {
                    "type": "string",
                    "description": "`ready`, or `degraded` while the server serves less than everything.",
                    "enum": ["ready", "degraded"]
                },
                "reason": {
                    "type": "string",
                    "description": "With `degraded` only. `read-only`: reads are served and changes are answered 503.",
                    "enum": ["read-only"]
                },
                "sessions": {
                    "type": "string",
                    "description": "Only while the identity provider cannot be reached. API keys work; session tokens may be answered 503.",
                    "enum": ["unavailable"]
                }
            },
            "required": ["status"],
            "additionalProperties": false,
            "examples": [
                {"status": "ready"},
                {"status": "degraded", "reason": "read-only"},
                {"status": "ready", "sessions": "unavailable"}
            ]
        }"#,
    ));
}

/// The OpenAPI document. A test compares the file with what the definitions of the endpoints and the types generate.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// `GET /openapi.json`
pub struct OpenApi;

impl OpenEndpoint for OpenApi {
    const PATH: &'static str = "/openapi.json";

    const DOC: Doc = Doc::new(
        "getOpenApi",
        SYSTEM,
        "Get this description",
        "Returns the OpenAPI description of the API.",
    )
    .answer("This document.", &[]);

    type Answer = Written<Document>;

    async fn run(service: &AgentCfg, _: &Leaving) -> Result<Self::Answer, Failure> {
        Ok(Reply::ok(ReplyBody::Document(document(service.limits()))).into())
    }
}

/// The document of a deployment with these limits.
fn document(limits: Limits) -> Bytes {
    if limits == Limits::default() {
        return Bytes::from_static(DOCUMENT.as_bytes());
    }
    // No other field has the default limit of the persona; a test says so.
    let max_length = |limits: Limits| format!("\"maxLength\": {}", limits.persona_prompt);
    let text = DOCUMENT.replace(&max_length(Limits::default()), &max_length(limits));
    Bytes::from(text)
}

/// `GET /healthz`
pub struct Healthz;

impl OpenEndpoint for Healthz {
    const PATH: &'static str = "/healthz";

    const DOC: Doc = Doc::new(
        "getHealth",
        SYSTEM,
        "See whether the process is up",
        "Answers as soon as the server accepts requests; storage is not read.",
    )
    .answer("It is up.", &[Example("up", r#"{"status": "ok"}"#)]);

    type Answer = Written<Health>;

    async fn run(_: &AgentCfg, _: &Leaving) -> Result<Self::Answer, Failure> {
        Ok(Reply::json(&json!({"status": "ok"}))?.into())
    }
}

/// `GET /readyz`
pub struct Readyz;

impl OpenEndpoint for Readyz {
    const PATH: &'static str = "/readyz";

    const DOC: Doc = Doc::new(
        "getReadiness",
        SYSTEM,
        "Check whether requests can be served",
        "Reads a record from storage and reports whether that succeeded within a second. A server that is about to stop answers 503. While storage serves reads and cannot take changes, such as \
         on a full disk, the answer is 200 with the status `degraded`, so that a load balancer goes on sending reads here. An external \
         identity provider is asked every 10 seconds; while it does not answer, `sessions` is `unavailable`, and API keys work.",
    )
    .answer(
        "Storage answers.",
        &[
            Example("ready", r#"{"status": "ready"}"#),
            Example("degraded", r#"{"status": "degraded", "reason": "read-only"}"#),
            Example("no_sessions", r#"{"status": "ready", "sessions": "unavailable"}"#),
        ],
    )
    .failures(&[503]);

    type Answer = Written<Readiness>;

    async fn run(service: &AgentCfg, leaving: &Leaving) -> Result<Self::Answer, Failure> {
        if leaving.has_begun() {
            return Err(Failure::leaving());
        }
        match tokio::time::timeout(PATIENCE, service.ready()).await {
            Ok(answered) => answered?,
            Err(_) => return Err(Failure::silent_storage()),
        }
        let mut status = match service.read_only() {
            None => json!({"status": "ready"}),
            Some(_) => json!({"status": "degraded", "reason": "read-only"}),
        };
        if service.sessions_unavailable().is_some() {
            status["sessions"] = json!("unavailable");
        }
        Ok(Reply::json(&status)?.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// How many members of this name there are, and how many are of the schema of a persona.
    fn max_lengths(value: &Value, limit: u64, found: &mut (usize, usize)) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "maxLength" && *member == limit {
                        found.0 += 1;
                    }
                    if name == "persona_prompt" && member["maxLength"] == limit {
                        found.1 += 1;
                    }
                    max_lengths(member, limit, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| max_lengths(item, limit, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_shows_the_limit_of_personas_that_is_in_force() {
        for limit in [5000, 77_777] {
            let mut limits = Limits::default();
            limits.persona_prompt = limit;
            let text = document(limits);
            let (mut found, mut default) = ((0, 0), (0, 0));
            let value = serde_json::from_slice(&text).unwrap();
            max_lengths(&value, limit.into(), &mut found);
            max_lengths(&value, 5000, &mut default);
            assert!(found.0 >= 3 && found.0 == found.1, "{found:?}");
            assert!(limit == 5000 || default == (0, 0), "{default:?}");
        }
    }
}
