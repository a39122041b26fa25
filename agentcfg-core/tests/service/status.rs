//! Live status of agents.

use agentcfg_core::model::{
    AgentPatch, AgentSpec, AgentStatus, ApplyAgents, LiveStatus, Plan, Role, Scope, StatusReport,
};
use agentcfg_core::{AgentCfg, ErrorKind};

use super::support::{ANY, World, kind};

fn entry(agent_id: &str, status: LiveStatus, task: Option<(&str, &str)>) -> AgentStatus {
    let entry = serde_json::json!({
        "agent_id": agent_id,
        "display_name": "Agent",
        "status": status,
        "current_task_id": task.map(|(id, _)| id),
        "current_task_title": task.map(|(_, title)| title),
    });
    serde_json::from_value(entry).unwrap()
}

#[tokio::test]
async fn a_report_expires_after_its_time_to_live() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for agent_id in ["writer", "editor"] {
        world.agent(workspace, "ada", agent_id).await;
        world.clock.advance_millis(1);
    }
    let status = async || world.service.agent_status(&ada, workspace).await.unwrap();
    let (offline, working) = (
        entry("writer", LiveStatus::Offline, None),
        entry("writer", LiveStatus::Working, Some(("t1", "Draft"))),
    );
    let editor = entry("editor", LiveStatus::Offline, None);
    assert_eq!(status().await, [offline.clone(), editor.clone()]);
    let report = StatusReport::working("t1", "Draft");
    let answer = world
        .service
        .report_status(&ada, Some(workspace), "writer", report.clone())
        .await;
    assert_eq!(answer.unwrap(), working);
    world.clock.advance_millis(119_999);
    assert_eq!(status().await, [working.clone(), editor.clone()]);
    world.clock.advance_millis(1);
    assert_eq!(status().await, [offline.clone(), editor.clone()]);
    // A new report restarts the time to live and replaces the previous one completely.
    world
        .service
        .report_status(&ada, Some(workspace), "writer", report)
        .await
        .unwrap();
    world
        .service
        .report_status(&ada, None, "writer", StatusReport::idle())
        .await
        .unwrap();
    assert_eq!(status().await[0], entry("writer", LiveStatus::Idle, None));
    world
        .service
        .report_status(&ada, None, "writer", StatusReport::offline())
        .await
        .unwrap();
    assert_eq!(status().await, [offline, editor]);
}

/// A wall clock that is set by hours, forward or back, neither ends a report nor lets it count longer.
#[tokio::test]
async fn a_report_ends_by_the_monotonic_clock() {
    const HOUR: i64 = 3_600_000;
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    let status = async |service: &AgentCfg| {
        let ada = service.trusted_user("ada").unwrap();
        let list = service.status_list(&ada, workspace).await.unwrap();
        let entries: Vec<AgentStatus> = serde_json::from_slice(&list.json()).unwrap();
        assert_eq!(entries, service.agent_status(&ada, workspace).await.unwrap());
        entries[0].status
    };
    for step in [-HOUR, HOUR, 5 * HOUR, -24 * HOUR] {
        let report = StatusReport::working("t1", "Draft");
        let reported = world.service.report_status(&ada, None, "writer", report).await;
        assert_eq!(reported.unwrap().status, LiveStatus::Working);
        assert_eq!(status(&world.service).await, LiveStatus::Working, "{step}");
        world.clock.step_millis(step);
        assert_eq!(status(&world.service).await, LiveStatus::Working, "{step}");
        world.clock.advance_millis(119_999);
        assert_eq!(status(&world.service).await, LiveStatus::Working, "{step}");
        world.clock.advance_millis(1);
        assert_eq!(status(&world.service).await, LiveStatus::Offline, "{step}");
        // An edit of the agent makes another list, for which the report stays ended.
        let patch = AgentPatch::default().display_name(format!("Writer {step}"));
        let edited = world.service.update_agent(&ada, None, "writer", patch, ANY).await;
        edited.unwrap();
        assert_eq!(status(&world.service).await, LiveStatus::Offline, "{step}");
    }
}

/// A process that starts after the clock was set back cannot know how old a report is. It counts for one time-to-live
/// at most.
#[tokio::test]
async fn a_report_from_the_future_counts_for_one_time_to_live() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    let report = StatusReport::working("t1", "Draft");
    world.service.report_status(&ada, None, "writer", report).await.unwrap();
    world.clock.step_millis(-7_200_000);
    let started = world.another_instance();
    let caller = started.trusted_user("ada").unwrap();
    let status = async || started.agent_status(&caller, workspace).await.unwrap()[0].status;
    assert_eq!(status().await, LiveStatus::Working);
    world.clock.advance_millis(119_999);
    assert_eq!(status().await, LiveStatus::Working);
    world.clock.advance_millis(1);
    assert_eq!(status().await, LiveStatus::Offline);
}

#[tokio::test]
async fn the_time_to_live_is_a_setting() {
    let world = World::with(|settings| settings.status_ttl_seconds = 1);
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    world
        .service
        .report_status(&ada, None, "writer", StatusReport::idle())
        .await
        .unwrap();
    for (step, expected) in [(999, LiveStatus::Idle), (1, LiveStatus::Offline)] {
        world.clock.advance_millis(step);
        assert_eq!(
            world.service.agent_status(&ada, workspace).await.unwrap()[0].status,
            expected
        );
    }
}

#[tokio::test]
async fn a_report_needs_an_active_agent_and_tasks_update() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.agent(workspace, "ada", "writer").await;
    let report = async |caller: &agentcfg_core::Caller, agent_id: &str| {
        world
            .service
            .report_status(caller, Some(workspace), agent_id, StatusReport::idle())
            .await
    };
    for missing in ["nobody", "Never Valid", "a\0"] {
        assert_eq!(kind(report(&ada, missing).await), ErrorKind::NotFound);
    }
    let viewer = world.member(workspace, "ada", "vic", Role::Viewer).await;
    assert_eq!(kind(report(&viewer, "writer").await), ErrorKind::Forbidden);
    assert!(world.service.agent_status(&viewer, workspace).await.is_ok());
    let (_, reader) = world.key_caller(workspace, "ada", Scope::Read).await;
    assert_eq!(kind(report(&reader, "writer").await), ErrorKind::Forbidden);
    let (_, writer) = world.key_caller(workspace, "ada", Scope::Write).await;
    report(&writer, "writer").await.unwrap();
    let wrong = StatusReport::idle().status(LiveStatus::Working);
    let result = world
        .service
        .report_status(&ada, Some(workspace), "nobody", wrong)
        .await;
    assert_eq!(kind(result), ErrorKind::Invalid);
    // Deleting an agent ends its report, and restoring it does not bring the report back.
    world.service.delete_agent(&ada, None, "writer", ANY).await.unwrap();
    assert_eq!(kind(report(&ada, "writer").await), ErrorKind::NotFound);
    world.service.restore_agent(&ada, None, "writer", ANY).await.unwrap();
    let status = world.service.agent_status(&ada, workspace).await.unwrap();
    assert_eq!(status, [entry("writer", LiveStatus::Offline, None)]);
}

#[tokio::test]
async fn the_history_has_the_end_of_a_report_at_the_deactivation() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (ada, service) = (world.user("ada"), &world.service);
    let set = |agents: &[&str]| {
        let agents = agents
            .iter()
            .map(|agent| AgentSpec::new(agent.parse().unwrap(), "Agent"));
        let all = ApplyAgents::of(agents.collect());
        all.set(Some("docs".parse().unwrap())).prune(true)
    };
    let apply = async |agents: &[&str]| {
        let applied = service.apply_agents(&ada, workspace, set(agents), false).await;
        applied.unwrap();
    };
    apply(&["writer", "editor"]).await;
    let report = async |agent: &str| {
        let working = StatusReport::working("t", "T");
        service.report_status(&ada, None, agent, working).await.unwrap();
    };
    report("writer").await;
    report("editor").await;
    world.clock.advance_millis(10_000);
    service.delete_agent(&ada, None, "writer", ANY).await.unwrap();
    world.clock.advance_millis(5000);
    apply(&["writer"]).await;
    world.clock.advance_millis(5000);
    report("writer").await;
    world.clock.advance_millis(30_000);
    let history = service.status_history(&ada, workspace, None, None).await.unwrap();
    let first = history.changes[0].at.unix_millis();
    let lines = history.changes.iter().map(|change| {
        let seconds = (change.at.unix_millis() - first) / 1000;
        format!("{} {seconds} {}", change.agent_id, change.status)
    });
    let expected = [
        "editor 0 working",
        "writer 0 working",
        "writer 10 offline",
        "editor 15 offline",
        "writer 20 working",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_report_changes_neither_record_nor_audit_log() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    world.set_plan(workspace, Plan::Pro).await;
    world.agent(workspace, "ada", "writer").await;
    let list = async || {
        world
            .service
            .list_agents(&ada, workspace, &Default::default())
            .await
            .unwrap()
    };
    let (before, entries) = (list().await, world.log(workspace, "ada").await.len());
    world.clock.advance_millis(5000);
    world
        .service
        .report_status(&ada, None, "writer", StatusReport::working("t", "T"))
        .await
        .unwrap();
    let after = list().await;
    assert_eq!(
        (after.tag, after.value.agents().unwrap()),
        (before.tag, before.value.agents().unwrap())
    );
    assert_eq!(world.log(workspace, "ada").await.len(), entries);
}
