//! The shared status list: what it shows after any changes, and what it reads for it.

use std::sync::Arc;

use agentcfg_core::model::{LiveStatus, NewAgent, Plan, StatusReport, WorkspaceId};
use agentcfg_core::{AgentCfg, ErrorKind};

use super::status_model::{TTL_MILLIS, decoded, follow};
use super::support::{Counting, Unstamped, World, kind};

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
