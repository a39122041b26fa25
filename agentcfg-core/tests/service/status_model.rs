//! Random changes of statuses, and readers that must see them all.

use std::collections::BTreeMap;

use agentcfg_core::model::{After, AgentPatch, AgentStatus, Plan, StatusEvent, StatusReport, WorkspaceId};
use agentcfg_core::service::StatusList;
use agentcfg_core::{AgentCfg, Caller};

use super::support::{ANY, Unstamped, World};
use crate::random_numbers::Numbers;

pub const TTL_MILLIS: i64 = 120_000;

fn report(numbers: &mut Numbers) -> StatusReport {
    match numbers.below(4) {
        0 => StatusReport::idle(),
        1 => StatusReport::offline(),
        _ => StatusReport::working(format!("t{}", numbers.below(3)), "Draft"),
    }
}

/// The entries of a list.
pub fn decoded(list: &StatusList) -> Vec<AgentStatus> {
    assert_eq!(list.json().len(), list.json_len());
    let entries: Vec<AgentStatus> = serde_json::from_slice(&list.json()).unwrap();
    assert_eq!(entries.len(), list.len());
    entries
}

/// Random changes through one service, which readers on three services see: one that has followed them, one on a store
/// that tracks nothing, and one that knows nothing yet.
pub async fn follow(world: &World, seed: u64) {
    let mut numbers = Numbers::from_seed(seed);
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
                    let patch = AgentPatch::default().display_name(format!("Name {step}"));
                    drop(
                        service
                            .update_agent(&ada, Some(workspace), &*agent_id, patch, ANY)
                            .await,
                    );
                }
                4 => world.clock.advance_millis(TTL_MILLIS / 2 + 1),
                5 => world.clock.advance_millis(2 * TTL_MILLIS),
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

/// What a service shows.
pub async fn entries(service: &AgentCfg, workspace: WorkspaceId) -> Vec<AgentStatus> {
    let ada: Caller = service.trusted_user("ada").unwrap();
    service.agent_status(&ada, workspace).await.unwrap()
}
