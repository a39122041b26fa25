//! The whole API over the memory store: an input becomes a request, or a part of one.

use std::cell::RefCell;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::model::{NewAgent, NewWorkspace, WorkspaceId};
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::{AgentCfg, Settings};
use agentcfg_server::{App, Cors};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, Uri};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::text;

/// How many requests one service gets before the next one begins with an empty store.
const REQUESTS: u32 = 2000;

/// The secret of the session tokens.
const SECRET: [u8; 32] = [7; 32];

/// A service with a workspace and an agent.
struct Stage {
    runtime: Runtime,
    app: App,
    workspace: WorkspaceId,
    token: String,
    left: u32,
}

impl Stage {
    fn set() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let sessions = || LocalSessions::new(&SECRET).expect("a secret of 32 bytes");
        let token = sessions().issue("ada", 3600, SystemClock.now()).expect("a token");
        let service = AgentCfg::builder(MemoryStore::new())
            .settings(Settings::default().session_rate_limit(1_000_000))
            .expect("settings in their ranges")
            .sessions(sessions())
            .build();
        let workspace = runtime.block_on(async {
            let ada = service.trusted_user("ada").expect("a user");
            let studio = NewWorkspace::new("Studio");
            let studio = service.create_workspace(&ada, studio).await.expect("a workspace");
            let mut writer = NewAgent::new(studio.id, "writer".parse().expect("an identifier"), "Writer");
            writer.persona_prompt = Some("You write.".into());
            service.create_agent(&ada, writer).await.expect("an agent");
            studio.id
        });
        Self {
            app: App::new(service, Cors::default()),
            runtime,
            workspace,
            token,
            left: REQUESTS,
        }
    }

    /// Sends a request. No request is answered 500, and every failure of the API is a JSON object with a message.
    fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, Bytes) {
        let shown = format!("{} {}", request.method(), request.uri());
        let is_api = request.uri().path().starts_with("/api/");
        self.runtime.block_on(async {
            let response = self.app.respond(request).await;
            let status = response.status();
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{shown}");
            let media_type = response.headers().get("content-type").cloned();
            if media_type.is_some_and(|media_type| media_type == "text/event-stream") {
                // It ends when it is dropped.
                return (status, Bytes::new());
            }
            let body = response.into_body().collect().await;
            let body = body.unwrap_or_else(|error| panic!("{shown}: {error}")).to_bytes();
            if is_api && !status.is_success() && status != StatusCode::NOT_MODIFIED && !body.is_empty() {
                let error: Value = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{shown}: {error}"));
                let members = error.as_object().unwrap_or_else(|| panic!("{shown}: {error}"));
                assert!(members.len() == 1 && members["error"].is_string(), "{shown}: {error}");
            }
            (status, body)
        })
    }
}

/// Runs a function with the stage of this thread.
fn on_stage<T>(act: impl FnOnce(&Stage) -> T) -> T {
    thread_local! {
        static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) };
    }
    STAGE.with_borrow_mut(|slot| {
        let stage = slot.get_or_insert_with(Stage::set);
        let outcome = act(stage);
        stage.left -= 1;
        if stage.left == 0 {
            *slot = None;
        }
        outcome
    })
}

fn of_ada(stage: &Stage, method: Method, target: &str) -> Option<hyper::http::request::Builder> {
    let uri: Uri = target.parse().ok()?;
    let request = Request::builder().method(method).uri(uri);
    Some(request.header("authorization", format!("Bearer {}", stage.token)))
}

/// The query of requests that read. The first byte chooses the path.
pub fn query(input: &[u8]) {
    const PATHS: [&str; 8] = [
        "/api/agents/configs",
        "/api/agents/versions",
        "/api/agents/version",
        "/api/agents/diff",
        "/api/agents/labels",
        "/api/agents/status",
        "/api/audit-log",
        "/api/changes",
    ];
    let Some((choice, query)) = input.split_first() else {
        return;
    };
    let Some(query) = text(query) else { return };
    on_stage(|stage| {
        let path = PATHS[usize::from(*choice) % PATHS.len()];
        // A wait is a feature of the feed, and no fault.
        if path == "/api/changes" && query.to_ascii_lowercase().contains('w') {
            return;
        }
        let target = format!("{path}?workspace_id={}&{query}", stage.workspace);
        let Some(request) = of_ada(stage, Method::GET, &target) else {
            return;
        };
        if let Ok(request) = request.body(Full::default()) {
            stage.send(request);
        }
    });
}

/// An `Authorization` header. Without the secret nothing opens the door.
pub fn credential(input: &[u8]) {
    on_stage(|stage| {
        let request = Request::get("/api/whoami").header("authorization", input);
        if let Ok(request) = request.body(Full::default()) {
            let (status, _) = stage.send(request);
            let valid = include_str!("../../../fuzz/corpus/session_tokens/valid");
            let is_valid = || text(input).is_some_and(|text| text.contains(&valid[..valid.len() - 1]));
            assert!(status.is_client_error() || is_valid(), "{status}");
        }
    });
}

/// A session token. One that is taken has the head and the claims of the valid token of the corpus.
pub fn session_token(input: &[u8]) {
    let Some(token) = text(input) else { return };
    on_stage(|stage| {
        let request = Request::get("/api/whoami").header("authorization", format!("Bearer {token}"));
        let Ok(request) = request.body(Full::default()) else {
            return;
        };
        if stage.send(request).0 != StatusCode::OK {
            return;
        }
        let signed = |token: &str| token.rsplit_once('.').map(|(signed, _)| signed.to_owned());
        let valid = signed(include_str!("../../../fuzz/corpus/session_tokens/valid"));
        // There may be several spaces between the scheme and the token.
        let token = token.trim_matches(' ');
        assert_eq!(signed(token), valid, "a token that was not issued is taken: {token}");
    });
}

/// A message of the Model Context Protocol.
pub fn mcp(input: &[u8]) {
    on_stage(|stage| {
        for revision in ["2025-06-18", "2026-07-28"] {
            let Some(request) = of_ada(stage, Method::POST, "/mcp") else {
                return;
            };
            let request = request
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", revision)
                .body(Full::new(Bytes::copy_from_slice(input)));
            let Ok(request) = request else { return };
            let (status, body) = stage.send(request);
            if !body.is_empty() {
                let _: Value = serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{status}: {error}"));
            }
        }
    });
}

/// A whole request: a line with method and target, lines of header fields, an empty line, the body. `WS` stands for the
/// workspace.
pub fn request(input: &[u8]) {
    let (head, body) = split(input, b"\n\n");
    let Some(head) = text(head) else { return };
    let mut lines = head.lines();
    let Some((method, target)) = lines.next().and_then(|line| line.split_once(' ')) else {
        return;
    };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        return;
    };
    if target.starts_with("/api/changes") {
        // The feed waits; its queries are another target.
        return;
    }
    on_stage(|stage| {
        let workspace = stage.workspace.to_string();
        let target = target.replace("WS", &workspace);
        let Some(mut request) = of_ada(stage, method, &target) else {
            return;
        };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            request = request.header(name, value.trim());
        }
        let body = match text(body) {
            Some(body) => Bytes::from(body.replace("WS", &workspace)),
            None => Bytes::copy_from_slice(body),
        };
        if let Ok(request) = request.body(Full::new(body)) {
            stage.send(request);
        }
    });
}

/// What is before and after the first such bytes.
fn split<'a>(input: &'a [u8], at: &[u8]) -> (&'a [u8], &'a [u8]) {
    let place = input.windows(at.len()).position(|window| window == at);
    place.map_or((input, &[]), |place| (&input[..place], &input[place + at.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_valid_token_of_the_corpus_is_taken_and_no_other() {
        let status = |name: &str| {
            let path = format!("{}/../../fuzz/corpus/session_tokens/{name}", env!("CARGO_MANIFEST_DIR"));
            let token = std::fs::read_to_string(path).unwrap();
            let request = Request::get("/api/whoami").header("authorization", format!("Bearer {token}"));
            on_stage(|stage| stage.send(request.body(Full::default()).unwrap()).0)
        };
        assert_eq!(status("valid"), StatusCode::OK);
        assert_eq!(status("foreign"), StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn the_requests_of_the_corpus_reach_their_endpoints() {
        on_stage(|stage| {
            let target = format!("/api/agents/configs?workspace_id={}", stage.workspace);
            let request = of_ada(stage, Method::GET, &target).unwrap();
            let (status, body) = stage.send(request.body(Full::default()).unwrap());
            assert_eq!(status, StatusCode::OK);
            assert!(body.windows(6).any(|window| window == b"writer"));
        });
    }
}
