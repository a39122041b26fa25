//! Budgets on the memory store and on redb.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::Settings;
use agentcfg_core::model::{BudgetPeriod, BudgetScope, UserId};
use agentcfg_core::service::OutputCap;
use agentcfg_core::store::{Key, Kind};

use super::budget_scenarios::{
    MODEL, begin, end, exact_over_servers, limit, made_beside_calls_of_others, of_scopes_and_periods,
    of_the_period_before, reserved_and_spent, settled_after_a_kill, under_a_clock_that_was_ahead,
    written_with_an_unknown_outcome,
};
use super::support::{Frozen, World};
use super::usage_ledger::{service_on, studio, tokens};

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

/// Other servers take a process to be gone that has not reported for twenty seconds.
#[tokio::test(start_paused = true)]
async fn a_budget_whose_report_is_held_up_does_not_hold_up_the_others() {
    let world = World::new();
    let (other, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let mut ids = Vec::new();
    for agent in ["writer", "editor"] {
        let agent: UserId = agent.parse().unwrap();
        let (scope, period) = (BudgetScope::Agent, BudgetPeriod::Total);
        let made = other.set_budget(&ada, workspace, scope, Some(&agent), period, limit("1"));
        ids.push(made.await.unwrap().id.simple().to_string());
    }
    let is_frozen = Arc::new(AtomicBool::new(false));
    let (frozen, switch) = (ids[0].clone(), Arc::clone(&is_frozen));
    let freezes = move |key: &Key| {
        switch.load(Ordering::SeqCst) && key.kind() == Kind::BudgetAccount && key.item().starts_with(&frozen)
    };
    let service = service_on(&world, &Frozen::behind(&world.store, freezes));
    let call = async |agent: &str| {
        let (meter, _) = begin(&service, &ada, agent, MODEL, (100, OutputCap::Given(100)))
            .await
            .unwrap();
        end(meter, tokens(100, 100)).await;
    };
    call("writer").await;
    is_frozen.store(true, Ordering::SeqCst);
    for round in 1..5 {
        call("editor").await;
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let shown = other.list_budgets(&ada, workspace).await.unwrap();
        let editor = shown
            .iter()
            .find(|budget| budget.scope_id.as_deref() == Some("editor"))
            .unwrap();
        assert_eq!(editor.spent_usd.nanos(), round * 3_500_000, "round {round}");
    }
}
