//! The endpoint of the Model Context Protocol.

use super::tags::MCP;
use crate::api::answer::{AnswerBody, AnswerDoc, Kind, Written};
use crate::api::call::parameters::{McpMethod, McpName, McpVersion};
use crate::api::call::{Call, Rpc};
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Values};
use crate::api::mcp::{self, Mirrored};
use crate::api::route::{Needs, Route};
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<Mcp>()];

/// `POST /mcp`
pub struct Mcp;

/// A JSON-RPC answer.
#[derive(Debug)]
pub struct Answered;

impl Kind for Answered {
    const DOC: AnswerDoc = AnswerDoc::ok(AnswerBody::Fixed(
        None,
        r#"{
            "type": "object",
            "description": "A JSON-RPC 2.0 response.",
            "properties": {"jsonrpc": {"type": "string", "const": "2.0"}},
            "required": ["jsonrpc"]
        }"#,
    ));
}

impl Endpoint for Mcp {
    const ROUTE: Route = Route::post("/mcp", Needs::Bearer);

    const DOC: Doc = Doc::new(
        "exchangeMcp",
        MCP,
        "Send a message of the Model Context Protocol",
        "Answers one JSON-RPC message over Streamable HTTP. The stateless revision 2026-07-28 is served, and the revisions \
         2025-11-25 and 2025-06-18 for clients that send `initialize`; there are no sessions and no streams.\n\n\
         The tools are listed by what the credential may do. A call that the API refuses is a result with `isError`. Faults of \
         the protocol are JSON-RPC errors: with status 400 for a message or a header field that is malformed, 404 for an unknown \
         method in the stateless revision. A notification is answered with 202 and no body.",
    )
    .bodies(&[Example("tools", r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#)])
    .answer("The response to the message.", &[])
    .failures(&[403, 404]);

    type Input = (McpVersion, McpMethod, McpName);
    type Body = Rpc;
    type Answer = Written<Answered>;

    async fn run(
        call: &Call<'_>,
        (version, method, name): Values<'_, Self>,
        Rpc(body): Rpc,
    ) -> Result<Self::Answer, Failure> {
        let mirrored = Mirrored { version, method, name };
        let answer = mcp::exchange(call.service, call.caller, &mirrored, &body);
        Ok(Reply::negotiable(call.while_connected(answer).await?).into())
    }
}
