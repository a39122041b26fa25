//! A server whose providers are a fake upstream, and a workspace with an agent.

use agentcfg_tests::harness::{Builder, Server, Studio, unique};
use serde_json::json;

use crate::calls::Call;
use crate::upstream::Upstream;

/// The managed credential for both providers.
pub const MANAGED: &str = "sk-managed-0123456789";
/// The persona of the agents.
pub const PERSONA: &str = "You are \"terse\".\nAlways.";

/// A server and its fake upstream.
pub struct Stage {
    pub server: Server,
    pub upstream: Upstream,
}

/// Starts the server and the upstream; `more` adds settings.
pub async fn stage_with(more: impl FnOnce(Builder) -> Builder) -> Stage {
    let upstream = Upstream::start().await;
    let builder = Server::builder()
        .set("operators", "operator")
        .set("default_plan", "pro")
        .set("session_rate_limit", "100000")
        .set("openai_base_url", upstream.url())
        .set("anthropic_base_url", upstream.url())
        .set("openai_api_key", MANAGED)
        .set("anthropic_api_key", MANAGED)
        .set("managed_models", "any");
    Stage {
        server: more(builder).start(),
        upstream,
    }
}

pub async fn stage() -> Stage {
    stage_with(|builder| builder).await
}

/// A configuration file in a folder of its own.
pub struct ConfigFile(tempfile::TempDir);

impl ConfigFile {
    pub fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("agentcfg.toml"), text).expect("a file");
        Self(dir)
    }

    /// The arguments that name it.
    pub fn arguments(&self) -> [std::ffi::OsString; 2] {
        ["--config".into(), self.0.path().join("agentcfg.toml").into()]
    }
}

impl Stage {
    /// A workspace with two agents: `writer` has a model of OpenAI, `poet` one of Anthropic.
    pub fn studio(&self) -> Studio<'_> {
        let studio = Studio::on(&self.server);
        for (agent, model) in [("writer", "gpt-5.5"), ("poet", "claude-sonnet-5-5")] {
            let fields = json!({"model": model, "persona_prompt": PERSONA});
            studio.create(agent, &fields).expect(201);
        }
        studio
    }

    /// An API key that may make model calls, in a workspace with the agents.
    pub fn key(&self) -> String {
        self.studio()
            .key_with(&json!({"scope": "write", "rate_limit": 100_000}))
            .key
    }

    /// A model call with this path, by the agent that fits the provider, with a valid credential.
    pub fn call(&self, path: &str) -> Call {
        self.call_with(path, &self.key())
    }

    /// The same call with another credential.
    pub fn call_with(&self, path: &str, credential: &str) -> Call {
        let agent = if path.starts_with("anthropic") {
            "poet"
        } else {
            "writer"
        };
        let target = format!("/api/agents/model-calls/{path}?agent_id={agent}");
        Call::to(self.server.address(), &target).bearer(credential)
    }
}

/// Saves a provider key as the owner.
pub fn save_key(studio: &Studio<'_>, provider: &str, key: &str) {
    let target = format!("/api/provider-keys?workspace_id={}&provider={provider}", studio.id);
    let request = studio.server.put(target).bearer(&studio.owner);
    request.json(&json!({"api_key": key})).send().expect(200);
}

/// A provider key that is unique among all tests.
pub fn new_key() -> String {
    unique("sk-workspace")
}
