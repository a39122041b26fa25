//! Each example runs to completion and prints the expected text.

use agentcfg_tests::harness::{Run, Studio, example};

#[test]
fn the_core_is_embedded_in_a_few_lines() {
    let said = Run::new([""; 0]).binary(example("embedded")).finish().succeeded();
    assert!(said.starts_with("writer since 2"), "{said}");
    let source = include_str!("../../examples/embedded.rs");
    let main = source.split("fn main").nth(1).unwrap();
    assert!(
        main.lines().count() < 30,
        "an example of ten lines grew to {}",
        main.lines().count()
    );
}

#[test]
fn a_custom_store_passes_the_conformance_suite() {
    let said = Run::new([""; 0]).binary(example("custom_store")).finish().succeeded();
    assert!(
        said.contains("keeps every guarantee") && said.contains("1 agent"),
        "{said}"
    );
}

#[test]
fn the_router_is_mounted_in_an_axum_app() {
    let said = Run::new([""; 0]).binary(example("mount_in_axum")).finish().succeeded();
    for line in [
        "/agentcfg leads to \"/agentcfg/\"",
        "/agentcfg/ answers 200",
        "/agentcfg/app.js answers 200",
        "/agentcfg has the agent writer",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn own_routes_are_behind_the_same_credentials() {
    let said = Run::new([""; 0]).binary(example("guard")).finish().succeeded();
    let lines: Vec<_> = said.lines().collect();
    let begins = [
        "201 a task of ",
        "403 an API key of scope read lacks the permission tasks:create",
        "401 {\"error\":\"invalid credentials\"}",
        "204 ",
        "400 status must be one of ",
        "200 \"{",
        "429 {\"error\":\"rate limit of 4 requests per minute exceeded, try again in ",
        "2 keys were used",
    ];
    assert_eq!(lines.len(), begins.len(), "{said}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(lines[5].contains("You write."), "{}", lines[5]);
}

#[test]
fn the_remote_client_runs_repeatedly() {
    let studio = Studio::open();
    let key = studio.key("write").key;
    for round in 0..3 {
        let run = Run::new([""; 0]).binary(example("remote_client"));
        let run = run
            .env("AGENTCFG_URL", studio.server.url())
            .env("AGENTCFG_API_KEY", &key);
        let said = run.finish().succeeded();
        assert!(
            said.contains("refused as it should be") && said.contains("deleted"),
            "{round}: {said}"
        );
        assert!(!said.contains(&key));
    }
    assert_eq!(studio.agent_ids(), [""; 0]);
}

/// Runs an example against a studio, as often as it must work.
fn run_repeatedly(name: &str, said: &[&str]) {
    let studio = Studio::open();
    let key = studio.key("admin").key;
    for round in 0..3 {
        let run = Run::new([""; 0]).binary(example(name));
        let run = run
            .env("AGENTCFG_URL", studio.server.url())
            .env("AGENTCFG_API_KEY", &key);
        let printed = run.finish().succeeded();
        assert!(said.iter().all(|said| printed.contains(said)), "{round}: {printed}");
        assert!(!printed.contains(&key));
    }
    assert_eq!(studio.agent_ids(), [""; 0]);
}

#[test]
fn an_agent_gets_an_earlier_version_again() {
    run_repeatedly(
        "versions",
        &[
            "-Keep the author's voice.",
            "has the content of version",
            "shorter texts",
        ],
    );
}

#[test]
fn a_release_is_made_and_taken_back() {
    run_repeatedly(
        "release_flow",
        &["released version", "refused as it should be", "in production again"],
    );
}
