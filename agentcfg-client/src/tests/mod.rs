//! Tests against a scripted server.

mod answers;
mod changes;
mod encrypted;
mod proxies;
mod releases;
mod repeats;
mod requests;
mod server;
mod timing;
#[cfg(feature = "tracing")]
mod traces;

use std::time::Duration;

use agentcfg_core::model::{NewAgent, WorkspaceId};

use self::server::Server;
use crate::{Builder, Client, RetryPolicy, Timeouts};

const AGENT: &str = r##"{"id":"018f2d7c-0000-7000-8000-0000000000aa","workspace_id":"018f2d7c-0000-7000-8000-000000000001",
"agent_id":"writer","display_name":"Writer","role":null,"description":null,"agent_type":"ai","model":null,"color":"#fff",
"persona_prompt":null,"capabilities":["draft"],"parameters":{"wit":0.7},"is_active":true,
"created_at":"2026-11-20T09:30:00.123Z","updated_at":"2026-11-20T09:30:00.123Z"}"##;

fn workspace() -> WorkspaceId {
    "018f2d7c-0000-7000-8000-000000000001".parse().unwrap()
}

fn writer() -> NewAgent {
    NewAgent::new(workspace(), "writer".parse().unwrap(), "Writer")
}

/// Long timeouts for single attempts, short delays between them.
fn builder(server: &Server) -> Builder {
    Client::builder(server.url())
        .api_key("svc_test_canary")
        .timeouts(
            Timeouts::default()
                .connect(Duration::from_secs(20))
                .attempt(Duration::from_secs(20))
                .total(Duration::from_secs(20)),
        )
        .retry(
            RetryPolicy::default()
                .max_retries(2)
                .min_delay(Duration::from_millis(1))
                .max_delay(Duration::from_millis(1)),
        )
}

fn client(server: &Server) -> Client {
    builder(server).build().unwrap()
}
