//! The whole end-to-end suite, with every server on its own database.

use std::process::Command;

use agentcfg_tests::harness::other_suite;

use crate::cluster::{Cluster, missing};

/// Tests about the data directory, which a server on a database does not use.
const SKIPPED: &[&str] = &[
    "command_line::",
    // In this run all servers have the same session secret.
    "corner_cases::sessions::a_token_of_another_deployment_is_refused",
    // It compares the files with the command `check`; crashes of the database have their own tests.
    "durability::removal::a_removal_goes_on_after_kills_until_nothing_is_left",
    // Rate windows in a database outlive the process.
    "corner_cases::rate_limit::windows_end_with_the_process",
    // These tests read the files of the store.
    "secrets::",
];

#[test]
fn the_end_to_end_suite_passes_on_a_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(suite) = other_suite("it") else {
        missing("the test binary `it`", "cargo test -p agentcfg-tests --no-run");
        return;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(cluster.binary("")).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(suite);
    command
        .env("PATH", path)
        .env(
            "AGENTCFG_TEST_DATABASE",
            format!("{}:{}", cluster.socket().display(), cluster.port()),
        )
        .env("AGENTCFG_TEST_BINARY", agentcfg_tests::harness::server_binary());
    for test in SKIPPED {
        command.args(["--skip", test]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text
        .lines()
        .find(|line| line.starts_with("test result:"))
        .unwrap_or_default();
    println!("{result}");
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
