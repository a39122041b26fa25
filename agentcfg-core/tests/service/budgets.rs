//! Budgets on the memory store and on redb.

use agentcfg_core::Settings;

use super::budget_scenarios::{
    exact_over_servers, made_beside_calls_of_others, of_scopes_and_periods, of_the_period_before, reserved_and_spent,
    settled_after_a_kill, under_a_clock_that_was_ahead, written_with_an_unknown_outcome,
};
use super::support::World;

fn worlds() -> [World; 2] {
    [World::new(), World::on_disk(Settings::default())]
}

#[tokio::test]
async fn calls_reserve_and_spend() {
    for world in worlds() {
        reserved_and_spent(world).await;
    }
}

#[tokio::test]
async fn budgets_have_scopes_and_periods() {
    for world in worlds() {
        of_scopes_and_periods(world).await;
    }
}

#[tokio::test]
async fn a_killed_process_leaves_what_can_be_settled() {
    for world in worlds() {
        settled_after_a_kill(world).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn budgets_are_exact_over_servers() {
    for world in worlds() {
        exact_over_servers(world).await;
    }
}

#[tokio::test]
async fn a_new_budget_counts_the_calls_of_other_servers() {
    for world in worlds() {
        made_beside_calls_of_others(world).await;
    }
}

#[tokio::test]
async fn a_new_budget_leaves_calls_to_the_period_before() {
    for world in worlds() {
        of_the_period_before(world).await;
    }
}

#[tokio::test]
async fn a_clock_that_was_ahead_leaves_budgets_as_they_are() {
    for world in worlds() {
        under_a_clock_that_was_ahead(world).await;
    }
}

#[tokio::test]
async fn a_new_budget_counts_calls_once_whose_writing_had_an_unknown_outcome() {
    for world in worlds() {
        written_with_an_unknown_outcome(world).await;
    }
}
