//! The official TypeScript client, which also validates structured content by the tools' output schemas.

use std::process::Command;

use agentcfg_tests::harness::{Studio, not_run};
use serde_json::json;

use crate::{lines, sdk};

#[test]
fn every_mode_of_the_client_reaches_the_tools() {
    let packages = sdk();
    if !packages.join("node_modules/@modelcontextprotocol/client").exists() {
        let install = format!("npm ci --prefix {}", packages.display());
        return not_run(&format!("@modelcontextprotocol/client is missing; run: {install}"));
    }
    let studio = Studio::open();
    let modes = json!(["legacy", "auto", {"pin": "2026-07-28"}]);
    let seen = lines(
        Command::new("node")
            .arg(packages.join("mcp.mjs"))
            .env("AGENTCFG_URL", studio.server.url())
            .env("AGENTCFG_API_KEY", studio.key("admin").key)
            .env("MODES", modes.to_string()),
    );
    assert_eq!(seen.len(), 3);
    for (number, seen) in seen.iter().enumerate() {
        let expected = json!({
            "tools": 15,
            "role": "Author",
            "stale": true,
            "agents": number + 1,
            "resources": 1 + 2 * (number + 1),
            "read": "You write.",
            "prompts": number + 1,
            "prompt": "You write.\n\nRelease 2.4",
        });
        assert_eq!(seen, &expected);
    }
}
