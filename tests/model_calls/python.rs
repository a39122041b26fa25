//! The official SDKs in Python, `openai` and `anthropic`, whose callers must name a model: an empty one is the agent's.

use std::path::Path;

use agentcfg_tests::harness::python;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fixture::{PERSONA, stage};
use crate::provider_formats::WORDS;

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_model_is_the_agents_and_the_catalogue_is_current() {
    let Some(python) = python() else {
        return;
    };
    let stage = stage().await;
    let studio = stage.studio();
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/caller.py"))
        .env("AGENTCFG_URL", stage.server.url())
        .env("WORKSPACE_ID", studio.id.to_string())
        .env("AGENTCFG_API_KEY", studio.key("write").key)
        // A key of the developer must not reach the provider.
        .env("OPENAI_API_KEY", "sk-of-the-developer")
        .env("ANTHROPIC_API_KEY", "sk-of-the-developer")
        .output()
        .await
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = WORDS.concat();
    assert_eq!(
        seen,
        json!({
            "chat": [text, "gpt-5.5"],
            "response": [text, "gpt-5.5"],
            "message": [text, "claude-sonnet-5-5"],
            "words": WORDS,
            "soon": 400,
            "available": 6,
            "outdated": [],
        })
    );
    for place in ["/messages/0/content", "/instructions", "/system", "/system"] {
        let seen = stage.upstream.seen().await;
        assert_eq!(seen.json().pointer(place), Some(&json!(PERSONA)), "{place}");
        assert!(!format!("{:?}", seen.headers).contains("of-the-developer"));
    }
}
