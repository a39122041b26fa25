//! The whole end-to-end suite, with every server on its own database.

use agentcfg_tests::harness::run_end_to_end_suite;

use crate::cluster::Cluster;

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
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(cluster.binary("")).chain(std::env::split_paths(&path))).unwrap();
    let database = format!("{}:{}", cluster.socket().display(), cluster.port());
    run_end_to_end_suite(
        "",
        SKIPPED,
        &[("PATH", &path), ("AGENTCFG_TEST_DATABASE", database.as_ref())],
    );
}
