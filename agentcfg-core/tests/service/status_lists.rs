//! The shared status list: what it shows after any changes, and what it reads for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentcfg_core::model::{
    After, AgentPatch, AgentStatus, LiveStatus, NewAgent, Plan, StatusEvent, StatusReport, WorkspaceId,
};
use agentcfg_core::service::StatusList;
use agentcfg_core::{AgentCfg, Caller, ErrorKind};

use super::support::{ANY, Counting, Unstamped, World, kind};

const TTL_MILLIS: i64 = 120_000;

/// A small generator of numbers, so that a run is repeated by its seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn report(numbers: &mut Numbers) -> StatusReport {
    match numbers.below(4) {
        0 => StatusReport::idle(),
        1 => StatusReport::offline(),
        _ => StatusReport::working(format!("t{}", numbers.below(3)), "Draft"),
    }
}

fn decoded(list: &StatusList) -> Vec<AgentStatus> {
    assert_eq!(list.json().len(), list.json_len());
    let entries: Vec<AgentStatus> = serde_json::from_slice(&list.json()).unwrap();
    assert_eq!(entries.len(), list.len());
    entries
}

/// Random changes through one service, which readers on three services see: one that has followed them, one on a store that
/// tracks nothing, and one that knows nothing yet.
async fn follow(world: &World, seed: u64) {
    let mut numbers = Numbers(seed);
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Enterprise).await;
    let ada = world.user("ada");
    // A block of the text and a little more, so that changes concern more than one.
    let agents = 20 + numbers.below(2) * 250;
    for i in 0..agents {
        world.agent(workspace, "ada", &format!("agent-{i}")).await;
    }
    let untracked = world.behind(Unstamped::new(&world.store));
    let watched = world.another_instance();
    let watcher = watched.trusted_user("ada").unwrap();
    let mut watch = watched
        .watch(&watcher, workspace, After::Now)
        .await
        .unwrap()
        .with_statuses();
    let mut shown: BTreeMap<String, StatusEvent> = BTreeMap::new();
    let mut created = agents;
    for step in 0..80 {
        for _ in 0..=numbers.below(3) {
            let agent_id = format!("agent-{}", numbers.below(created));
            let service = &world.service;
            match numbers.below(20) {
                0 => drop(service.delete_agent(&ada, Some(workspace), &*agent_id, ANY).await),
                1 => drop(service.restore_agent(&ada, Some(workspace), &*agent_id, ANY).await),
                2 => {
                    world.agent(workspace, "ada", &format!("agent-{created}")).await;
                    created += 1;
                }
                3 => {
                    let patch = AgentPatch {
                        display_name: Some(format!("Name {step}")),
                        ..AgentPatch::default()
                    };
                    drop(
                        service
                            .update_agent(&ada, Some(workspace), &*agent_id, patch, ANY)
                            .await,
                    );
                }
                4 => world.clock.advance_millis(TTL_MILLIS / 2 + 1),
                5 => world.clock.advance_millis(-TTL_MILLIS / 3),
                6 => world.clock.advance_millis(2 * TTL_MILLIS),
                _ => {
                    world.clock.advance_millis(1);
                    let report = report(&mut numbers);
                    drop(service.report_status(&ada, Some(workspace), &*agent_id, report).await);
                }
            }
        }
        if numbers.below(3) == 0 {
            continue;
        }
        let expected = entries(&world.another_instance(), workspace).await;
        for service in [&world.service, &untracked] {
            let list = service.status_list(&ada, workspace).await.unwrap();
            assert_eq!(decoded(&list), expected, "seed {seed}, step {step}");
            assert_eq!(entries(service, workspace).await, expected, "seed {seed}, step {step}");
        }
        // The stream is woken after a commit was answered, and names no entry that went with its agent.
        let followed = async {
            loop {
                for event in watch.read().await.unwrap().statuses {
                    shown.insert(event.agent_id.to_string(), (*event).clone());
                }
                let of = |entry: &AgentStatus| shown.get(entry.agent_id.as_str()).cloned().map(AgentStatus::from);
                if expected.iter().all(|entry| of(entry).as_ref() == Some(entry)) {
                    break;
                }
                watch.changed().await;
            }
        };
        let followed = tokio::time::timeout(std::time::Duration::from_secs(20), followed).await;
        assert!(
            followed.is_ok(),
            "seed {seed}, step {step}: the stream does not come to {expected:?}"
        );
    }
}

async fn entries(service: &AgentCfg, workspace: WorkspaceId) -> Vec<AgentStatus> {
    let ada: Caller = service.trusted_user("ada").unwrap();
    service.agent_status(&ada, workspace).await.unwrap()
}

#[tokio::test]
async fn the_shared_list_shows_what_a_new_reader_finds() {
    for seed in 0..6 {
        follow(&World::new(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shared_list_on_a_file_shows_what_a_new_reader_finds() {
    follow(&World::on_disk(World::new().settings), 100).await;
}

/// A workspace whose reads of reports are counted.
async fn counted(agents: usize) -> (World, Arc<Counting>, AgentCfg, WorkspaceId) {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Enterprise).await;
    for i in 0..agents {
        world.agent(workspace, "ada", &format!("agent-{i:04}")).await;
    }
    let store = Counting::new(&world.store);
    let service = world.behind(Arc::clone(&store) as _);
    (world, store, service, workspace)
}

#[tokio::test]
async fn a_report_is_read_alone_and_readers_share_the_text() {
    let (world, store, service, workspace) = counted(300).await;
    let ada = world.user("ada");
    let first = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!((store.status_scans(), store.status_gets()), (1, 0));
    let again = service.status_list(&ada, workspace).await.unwrap();
    for (one, two) in first.json_parts().iter().zip(again.json_parts()) {
        assert_eq!(one.as_ptr(), two.as_ptr());
    }
    let report = StatusReport::working("t", "Draft");
    let report = world.service.report_status(&ada, Some(workspace), "agent-0299", report);
    report.await.unwrap();
    let changed = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!(decoded(&changed)[299].status, LiveStatus::Working);
    assert_eq!((store.status_scans(), store.status_gets()), (1, 1));
    // The piece without a change, and the one with it.
    let (before, after) = (first.json_parts(), changed.json_parts());
    assert_eq!((before.len(), after.len()), (2, 2));
    assert_eq!(before[0].as_ptr(), after[0].as_ptr());
    assert_ne!(before[1].as_ptr(), after[1].as_ptr());
    // A list that was given out does not change.
    assert_eq!(decoded(&first)[299].status, LiveStatus::Offline);
}

#[tokio::test]
async fn a_report_of_the_same_changes_no_text_and_counts_anew() {
    let (world, store, service, workspace) = counted(2).await;
    let ada = world.user("ada");
    let report = async || {
        let report = StatusReport::working("t", "Draft");
        let report = world.service.report_status(&ada, Some(workspace), "agent-0001", report);
        report.await.unwrap();
    };
    report().await;
    let first = service.status_list(&ada, workspace).await.unwrap();
    world.clock.advance_millis(TTL_MILLIS - 1);
    report().await;
    let second = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!(first.json_parts()[0].as_ptr(), second.json_parts()[0].as_ptr());
    world.clock.advance_millis(TTL_MILLIS - 1);
    let third = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!(first.json_parts()[0].as_ptr(), third.json_parts()[0].as_ptr());
    world.clock.advance_millis(1);
    let aged = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!(decoded(&aged)[1].status, LiveStatus::Offline);
    assert_eq!((store.status_scans(), store.status_gets()), (1, 1));
}

#[tokio::test]
async fn a_failed_read_is_an_error_and_the_next_reads_all() {
    let (world, store, service, workspace) = counted(3).await;
    let ada = world.user("ada");
    service.status_list(&ada, workspace).await.unwrap();
    let report = world
        .service
        .report_status(&ada, Some(workspace), "agent-0001", StatusReport::idle());
    report.await.unwrap();
    store.fail_statuses(true);
    assert!(service.status_list(&ada, workspace).await.is_err());
    assert!(service.agent_status(&ada, workspace).await.is_err());
    store.fail_statuses(false);
    let list = service.status_list(&ada, workspace).await.unwrap();
    assert_eq!(decoded(&list)[1].status, LiveStatus::Idle);
}

#[tokio::test]
async fn requests_that_wait_for_failing_reads_do_not_all_try() {
    let (world, store, service, workspace) = counted(3).await;
    let ada = world.user("ada");
    store.fail_statuses(true);
    let ask = || {
        let (service, ada) = (service.clone(), ada.clone());
        tokio::spawn(async move { service.status_list(&ada, workspace).await })
    };
    let asked: Vec<_> = (0..10).map(|_| ask()).collect();
    for one in asked {
        assert_eq!(kind(one.await.unwrap()), ErrorKind::Unavailable);
    }
    assert_eq!(store.status_scans(), 2);
    store.fail_statuses(false);
    ask().await.unwrap().unwrap();
}

#[tokio::test]
async fn each_read_of_the_list_needs_the_permission() {
    let (world, _, service, workspace) = counted(1).await;
    service.status_list(&world.user("ada"), workspace).await.unwrap();
    assert!(service.status_list(&world.user("mallory"), workspace).await.is_err());
}

/// Reports and reads at the same time: a read that begins after the answer to a report shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_list_is_older_than_its_request() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.set_plan(workspace, Plan::Enterprise).await;
    let ada = world.user("ada");
    for i in 0..4 {
        world
            .service
            .create_agent(
                &ada,
                NewAgent::new(workspace, format!("a{i}").parse().unwrap(), "Agent"),
            )
            .await
            .unwrap();
    }
    for store in [Arc::clone(&world.store), Unstamped::new(&world.store) as _] {
        let service = world.behind(store);
        let mut writers = tokio::task::JoinSet::new();
        for i in 0..4_usize {
            let (service, ada) = (service.clone(), ada.clone());
            writers.spawn(async move {
                let agent_id = format!("a{i}");
                for n in 0..150 {
                    let report = StatusReport::working(format!("t{n}"), "Draft");
                    let reported = service.report_status(&ada, Some(workspace), &*agent_id, report).await;
                    let reported = reported.unwrap();
                    let list = service.status_list(&ada, workspace).await.unwrap();
                    assert_eq!(decoded(&list)[i], reported);
                }
            });
        }
        while let Some(done) = writers.join_next().await {
            done.unwrap();
        }
    }
}
