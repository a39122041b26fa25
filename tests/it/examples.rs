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
    assert!(said.contains("/agentcfg has the agent writer"), "{said}");
}

#[test]
fn the_remote_client_runs_repeatedly() {
    let studio = Studio::open();
    let key = studio.key("write").key;
    for round in 0..3 {
        let run = Run::new([""; 0]).binary(example("remote_client"));
        let run = run.env("SERVER_URL", studio.server.url()).env("API_KEY", &key);
        let said = run.finish().succeeded();
        assert!(
            said.contains("refused as it should be") && said.contains("deleted"),
            "{round}: {said}"
        );
        assert!(!said.contains(&key));
    }
    assert_eq!(studio.agent_ids(), [""; 0]);
}
