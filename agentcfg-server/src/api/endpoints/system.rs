//! Whether the process is up, whether it can serve requests, and what it offers.

use agentcfg_core::AgentCfg;
use serde::Serialize;

use super::tags::SYSTEM;
use crate::api::answer::{Document, Json};
use crate::api::endpoint::{Doc, Example, OpenEndpoint};
use crate::api::openapi::DOCUMENT;
use crate::http::errors::Failure;

/// The process is up.
#[derive(Debug, Serialize)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Storage answers.
#[derive(Debug, Serialize)]
pub struct Readiness {
    /// Always `ready`.
    status: &'static str,
}

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

    type Answer = Document;

    async fn run(_: &AgentCfg) -> Result<Self::Answer, Failure> {
        Ok(Document(DOCUMENT))
    }
}

/// `GET /healthz`
pub struct Healthz;

impl OpenEndpoint for Healthz {
    const PATH: &'static str = "/healthz";

    const DOC: Doc = Doc::new(
        "getHealth",
        SYSTEM,
        "See whether the process is up",
        "Answers as soon as the server takes requests; storage is not asked.",
    )
    .answer("It is up.", &[Example("up", r#"{"status": "ok"}"#)]);

    type Answer = Json<Health>;

    async fn run(_: &AgentCfg) -> Result<Self::Answer, Failure> {
        Ok(Json(Health { status: "ok" }))
    }
}

/// `GET /readyz`
pub struct Readyz;

impl OpenEndpoint for Readyz {
    const PATH: &'static str = "/readyz";

    const DOC: Doc = Doc::new(
        "getReadiness",
        SYSTEM,
        "See whether requests can be served",
        "Asks storage for a record and tells whether an answer came. With an identity provider whose keys verify \
         session tokens, they must have been fetched once too.",
    )
    .answer(
        "Storage answers, and session tokens can be verified.",
        &[Example("ready", r#"{"status": "ready"}"#)],
    );

    type Answer = Json<Readiness>;

    async fn run(service: &AgentCfg) -> Result<Self::Answer, Failure> {
        service.ready().await?;
        Ok(Json(Readiness { status: "ready" }))
    }
}
