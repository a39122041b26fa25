//! The official Python client, which also validates structured content by the tools' output schemas.

use std::process::Command;

use agentcfg_tests::harness::{Studio, python};
use serde_json::{Value, json};

use crate::{lines, sdk};

#[test]
fn every_mode_of_the_client_reaches_the_tools() {
    let Some(python) = python() else {
        return;
    };
    let studio = Studio::open();
    // A client that is told the revision asks for nothing before its first call, so that it learns no name.
    let modes = [
        ("legacy", "2025-11-25", Some("agentcfg")),
        ("auto", "2026-07-28", Some("agentcfg")),
        ("2026-07-28", "2026-07-28", None),
    ];
    let seen = lines(
        Command::new(python)
            .arg(sdk().join("mcp_client.py"))
            .env("AGENTCFG_URL", studio.server.url())
            .env("AGENTCFG_API_KEY", studio.key("admin").key)
            .env("MODES", json!(modes.map(|(mode, ..)| mode)).to_string()),
    );
    assert_eq!(seen.len(), modes.len());
    for (number, (seen, (mode, protocol, server))) in seen.iter().zip(modes).enumerate() {
        let expected: Value = json!({
            "protocol": protocol,
            "server": server,
            "tools": 15,
            "role": "Author",
            "stale": true,
            "agents": number + 1,
            "messages": ["A new desk"],
            "resources": 1 + 2 * (number + 1),
            "templates": 2,
            "read": "You write.",
            "prompts": number + 1,
            "prompt": "You write.\n\nRelease 2.4",
            "unknown": -32602,
        });
        assert_eq!(seen, &expected, "{mode}");
    }
}
