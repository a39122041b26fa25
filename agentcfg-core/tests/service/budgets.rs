//! Budgets on the memory store and on redb.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agentcfg_core::Settings;
use agentcfg_core::model::{AuditFilter, BudgetPeriod, BudgetScope, Scope, UserId};
use agentcfg_core::service::OutputCap;
use agentcfg_core::store::{Batch, CommitError, Committed, Key, Kind, Record, Scan, Scanned, Store, StoreError, Write};

use super::budget_scenarios::{
    MODEL, begin, end, estimated_within_the_reservation, exact_over_servers, limit, made_beside_calls_of_others,
    of_scopes_and_periods, of_the_period_before, reserved_and_spent, under_a_clock_that_was_ahead,
    written_with_an_unknown_outcome,
};
use super::budget_settlement::{settled_after_a_kill, settled_without_what_was_reported};
use super::support::{Between, Call, Frozen, World};
use super::usage_ledger::{service_on, studio, tokens};

fn worlds() -> [World; 2] {
    [World::new(), World::on_disk(Settings::default())]
}

#[tokio::test]
async fn calls_reserve_and_spend() {
    for world in worlds() {
        reserved_and_spent(world).await;
    }
    for world in worlds() {
        estimated_within_the_reservation(world).await;
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
    for world in worlds() {
        settled_without_what_was_reported(world).await;
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

/// A call of a user is covered by the budget of its agent and by that of the user. Calls of others use what the first one has
/// while the second one is waited for.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_one_budget_holds_nothing_of_another() {
    let world = World::new();
    let (other, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (_, by_key) = world.key_caller(workspace, "ada", Scope::Write).await;
    let mut ids = Vec::new();
    for (scope, id, usd) in [(BudgetScope::Agent, "writer", "0.007"), (BudgetScope::User, "ada", "1")] {
        let id: UserId = id.parse().unwrap();
        let made = other.set_budget(&ada, workspace, scope, Some(&id), BudgetPeriod::Total, limit(usd));
        ids.push(made.await.unwrap().id.simple().to_string());
    }
    let of_user = ids[1].clone();
    let freezes = move |key: &Key| key.kind() == Kind::BudgetAccount && key.item().starts_with(&of_user);
    let service = service_on(&world, &Frozen::behind(&world.store, freezes));
    let output = (100, OutputCap::Given(100));
    let waiting = {
        let service = service.clone();
        tokio::spawn(async move { begin(&service, &ada, "writer", MODEL, output).await.map(drop) })
    };
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    let mut open = Vec::new();
    for call in 1..=2 {
        let (meter, cap) = begin(&service, &by_key, "writer", MODEL, output).await.unwrap();
        assert_eq!(cap, Some(100), "call {call} of the two that the budget pays for");
        open.push(meter);
    }
    assert!(begin(&service, &by_key, "writer", MODEL, output).await.is_err());
    waiting.abort();
}

/// A store in which another server has changed the account of a budget before each of the first commits of a decision.
struct Busy {
    inner: Arc<dyn Store>,
    races: AtomicUsize,
    reads_of_calls: AtomicUsize,
}

#[async_trait::async_trait]
impl Store for Busy {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let is_of_calls = scan.kind == Kind::UsageCall;
        self.reads_of_calls
            .fetch_add(usize::from(is_of_calls), Ordering::SeqCst);
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let decides = batch.writes.iter().any(|write| matches!(write, Write::Append { .. }));
        let less = |races: usize| races.checked_sub(1);
        if decides
            && self
                .races
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                .is_ok()
        {
            return Err(CommitError::Conflict(0));
        }
        self.inner.commit(batch).await
    }
}

/// How often settling reads calls while so many of its commits lose a race.
async fn reads_of_settling(races: usize) -> usize {
    let world = World::new();
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    let made = service.set_budget(&ada, workspace, scope, None, period, limit("1"));
    made.await.unwrap();
    let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000)))
        .await
        .unwrap();
    service.flush().await.unwrap();
    std::mem::forget(meter);
    world.clock.advance_millis(20_000);

    let store = Arc::new(Busy {
        inner: Arc::clone(&world.store),
        races: AtomicUsize::new(races),
        reads_of_calls: AtomicUsize::new(0),
    });
    let other = service_on(&world, &(Arc::clone(&store) as Arc<dyn Store>));
    let settled = other.settle_budgets(&ada, workspace).await.unwrap();
    assert_eq!(settled[0].unsettled_usd.nanos(), 0);
    assert_eq!(store.races.load(Ordering::SeqCst), 0, "all of them were lost");
    store.reads_of_calls.load(Ordering::SeqCst)
}

#[tokio::test]
async fn calls_are_read_once_however_often_settling_loses_a_race() {
    let alone = reads_of_settling(0).await;
    assert!(alone > 0);
    assert_eq!(reads_of_settling(5).await, alone);
}

/// What was spent before a budget was made, or got a lower limit, reaches its thresholds too.
#[tokio::test]
async fn a_new_budget_tells_which_thresholds_are_reached() {
    for world in worlds() {
        let (service, workspace) = studio(&world).await;
        let ada = world.user("ada");
        let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100)))
            .await
            .unwrap();
        end(meter, tokens(100, 100)).await;
        let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
        let thresholds = async |usd: &str| {
            let set = service.set_budget(&ada, workspace, scope, None, period, limit(usd));
            set.await.unwrap();
            let filter = AuditFilter::default().action("budget.threshold_reached");
            let log = service.search_audit_log(&ada, workspace, &filter).await.unwrap();
            let reached = log.iter().map(|entry| entry.changes["threshold"].to.clone());
            reached.collect::<Vec<_>>()
        };
        assert_eq!(thresholds("0.005").await, [50], "0.0035 USD were spent");
        assert_eq!(thresholds("0.0036").await, [80, 50]);
        assert_eq!(thresholds("0.0035").await, [100, 80, 50]);
    }
}

/// Sums of days that are over are read before the attempts. A server writes one of them in between.
#[tokio::test]
async fn a_new_budget_counts_calls_that_are_written_days_later() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    for world in worlds() {
        let (late, workspace) = studio(&world).await;
        let ada = world.user("ada");
        let between = Between::new(&world.store);
        let other = service_on(&world, &(Arc::clone(&between) as Arc<dyn Store>));
        for is_written in [true, false] {
            let (meter, _) = begin(&late, &ada, "writer", MODEL, (100, OutputCap::Given(100)))
                .await
                .unwrap();
            end(meter, tokens(100, 100)).await;
            if is_written {
                late.flush().await.unwrap();
            }
        }
        world.clock.advance_millis(10 * DAY);
        // The first one reads the days that are over, the second one the last days.
        let writes = {
            let late = late.clone();
            async move { late.flush().await.unwrap() }
        };
        between.before(Call::Scan(Kind::UsageSum), 1, writes);
        let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
        let made = other.set_budget(&ada, workspace, scope, None, period, limit("1"));
        assert_eq!(made.await.unwrap().spent_usd.to_string(), "0.007");
        assert_eq!(between.left(), 0);
    }
}
