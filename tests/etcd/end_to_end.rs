//! The whole end-to-end suite, with every server on its own prefix of a cluster.

use std::process::Command;

use agentcfg_tests::harness::{not_run, other_suite};

use crate::cluster::Cluster;

/// Tests about the data directory, which a server on a cluster does not use.
const SKIPPED: &[&str] = &[
    "command_line::",
    // In this run all servers have the same session secret.
    "corner_cases::sessions::a_token_of_another_deployment_is_refused",
    // It compares the files with the command `check`; crashes of the cluster have their own tests.
    "durability::crash::a_killed_server_has_lost_nothing_that_it_acknowledged",
    "durability::removal::a_removal_goes_on_after_kills_until_nothing_is_left",
    // Rate windows in a cluster outlive the process.
    "corner_cases::rate_limit::windows_end_with_the_process",
    // It reads lists of megabytes hundreds of times, which takes too long beside all other tests.
    "corner_cases::unread_answers::answers_that_are_being_made_are_bounded",
    // These tests read the files of the store.
    "secrets::",
];

#[test]
fn the_end_to_end_suite_passes_on_a_cluster() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(suite) = other_suite("it") else {
        not_run("the test binary `it` is missing (cargo test -p agentcfg-tests --no-run)");
        return;
    };
    let mut command = Command::new(suite);
    command
        .env("AGENTCFG_TEST_DATABASE", cluster.endpoints())
        .env("AGENTCFG_TEST_BINARY", agentcfg_tests::harness::server_binary());
    for test in SKIPPED {
        command.args(["--skip", test]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find(|line| line.starts_with("test result:"));
    println!("{}", result.unwrap_or_default());
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
