//! Model calls.

use agentcfg_core::service::ModelRequest;
use agentcfg_core::{Error, ErrorKind};
use bytes::Bytes;

use super::{Answer, Call};
use crate::api::model_calls::{Draft, Format, Sent};
use crate::api::routes;
use crate::http::errors::Failure;
use crate::http::query;
use crate::http::response::Reply;

/// The parameters that are for this service and not for the provider.
const OWN: [&str; 2] = ["agent_id", "workspace_id"];

pub(super) async fn call(call: &Call<'_>) -> Answer {
    let agent_id = call.query.required("agent_id")?;
    let workspace = call.query.workspace_id()?;
    let target = routes::target(call.uri.path()).ok_or_else(|| Failure::not_found("there is no such place to call"))?;
    let draft = draft(target.format(), call.body.clone()).await?;
    let decided = call
        .service
        .resolve_model_call(
            call.caller,
            workspace,
            agent_id,
            &ModelRequest {
                provider: target.provider,
                path: &target.path,
                model: draft.requested_model(),
                takes_agent_model: draft.takes_model(),
            },
        )
        .await
        .map_err(refused)?;
    let Some(calls) = call.model_calls else {
        let message = "model calls are not set up on this server";
        return Err(Failure::unavailable(message).and_final());
    };
    let query = query::query_without(call.uri.query(), &OWN)?;
    let sent = Sent {
        target,
        query: query.as_deref(),
        headers: call.headers,
        body: draft.fill(decided.model.as_deref(), decided.persona_prompt.as_deref()),
    };
    let response = calls.send(&decided, sent, call.leaving).await?;
    Ok(Reply::relayed(response))
}

/// Without a credential the same call fails until somebody saves or configures one.
fn refused(error: Error) -> Failure {
    let is_final = error.kind() == ErrorKind::NotConfigured;
    let failure = Failure::from(error);
    match is_final {
        true => failure.and_final(),
        false => failure,
    }
}

/// Reads the body; a long one where it keeps no other request waiting.
async fn draft(format: Option<Format>, body: Bytes) -> Result<Draft, Failure> {
    const LONG: usize = 256 << 10;
    let is_long = body.len() > LONG;
    let read = move || match format {
        Some(format) => Draft::read(format, &body),
        None => Ok(Draft::opaque(&body)),
    };
    if !is_long {
        return read();
    }
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|error| Err(Failure::internal(error)))
}
