//! The whole end-to-end suite, with every server on its own prefix of a cluster.

use agentcfg_tests::harness::run_end_to_end_suite;

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
    run_end_to_end_suite("", SKIPPED, &[("AGENTCFG_TEST_DATABASE", cluster.endpoints().as_ref())]);
}
