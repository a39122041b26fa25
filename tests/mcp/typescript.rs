//! The official TypeScript client, which also validates structured content by the tools' output schemas.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use agentcfg_tests::harness::{Studio, not_run};
use serde_json::{Value, json};

#[test]
fn every_mode_of_the_client_reaches_the_tools() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk");
    if !packages.join("node_modules/@modelcontextprotocol/client").exists() {
        let install = format!("npm ci --prefix {}", packages.display());
        return not_run(&format!("@modelcontextprotocol/client is missing; run: {install}"));
    }
    let studio = Studio::open();
    let modes = json!(["legacy", "auto", {"pin": "2026-07-28"}]);
    let mut node = Command::new("node")
        .arg(packages.join("mcp.mjs"))
        .env("SERVER_URL", studio.server.url())
        .env("API_KEY", studio.key("admin").key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin
        .take()
        .unwrap()
        .write_all(modes.to_string().as_bytes())
        .unwrap();
    let output = node.wait_with_output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for (number, seen) in lines.iter().enumerate() {
        let expected = json!({
            "tools": 9,
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
