//! Retention: a server removes old audit entries and versions, and answers 410 to requests for them.

use std::path::Path;
use std::sync::Arc;

use agentcfg_core::clock::{Clock, ManualClock, SystemClock};
use agentcfg_core::model::{AgentPatch, LabelTarget, NewAgent, NewWorkspace, Precondition};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::{AgentCfg, Settings};
use agentcfg_tests::harness::{Run, Server, eventually, run, scratch};
use serde_json::Value;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A store in which an agent got a version each day of the last forty, the first of them with a label. Returns the
/// workspace.
#[tokio::main(flavor = "current_thread")]
async fn forty_days(dir: &Path) -> String {
    let store = RedbStore::open(dir.join("store.redb"), RedbOptions::default()).unwrap();
    let now = SystemClock.now();
    let clock = Arc::new(ManualClock::at(now.plus_millis(-40 * DAY)));
    let builder = AgentCfg::builder(store).clock(Arc::clone(&clock) as _);
    let service = builder.settings(Settings::default()).unwrap().build();
    let ada = service.trusted_user("ada").unwrap();
    let workspace = service
        .create_workspace(&ada, NewWorkspace::new("Studio"))
        .await
        .unwrap()
        .id;
    let new = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer");
    service.create_agent(&ada, new).await.unwrap();
    let label = LabelTarget::new(1);
    service
        .set_label(&ada, Some(workspace), "writer", "production", label)
        .await
        .unwrap();
    for number in 2..=40 {
        clock.advance_millis(DAY);
        let patch = AgentPatch::default().role(format!("version {number}"));
        service
            .update_agent(&ada, Some(workspace), "writer", patch, &Precondition::None)
            .await
            .unwrap();
    }
    service.shutdown().await.unwrap();
    workspace.to_string()
}

fn start(dir: &Path) -> Server {
    Server::builder()
        .data(dir)
        .set("audit_retention_days", "10")
        .set("version_retention_days", "10")
        .start()
}

#[test]
fn old_history_is_removed_and_gone() {
    let place = scratch();
    let dir = place.path().join("data");
    std::fs::create_dir_all(&dir).unwrap();
    let workspace = forty_days(&dir);
    let server = start(&dir);
    eventually("entries are removed", || {
        server.stderr().contains("removed audit entries and versions")
    });
    server.stop();
    // Versions go the next time, so that readers of the log have them.
    let server = start(&dir);
    eventually("versions are removed", || {
        server.stderr().contains("removed audit entries and versions")
    });
    let ada = server.token("ada");
    let get = |path: &str| {
        let separator = if path.contains('?') { '&' } else { '?' };
        let target = format!("/api/{path}{separator}workspace_id={workspace}");
        server.get(target).bearer(&ada).send()
    };
    let numbers = |answer: Value, field: &str| -> Vec<u64> {
        let rows = answer.as_array().unwrap();
        rows.iter().map(|row| row[field].as_u64().unwrap()).collect()
    };
    // The entry of version n is n + 2, and the last ten days have those of 31 to 40, or of 32 where a day begins
    // meanwhile.
    let log = numbers(get("audit-log?limit=200").expect(200).json(), "revision");
    assert_eq!(log.first(), Some(&42));
    assert!([33, 34].contains(log.last().unwrap()), "{log:?}");
    let versions = numbers(get("agents/versions?agent_id=writer").expect(200).json(), "version");
    let expected: Vec<u64> = (1..=8).chain(25..=40).rev().collect();
    assert_eq!(versions, expected, "the first group has a label");
    for (path, said) in [
        (
            "agents/version?agent_id=writer&version=20",
            "version 20 of the agent \"writer\" is not kept any more",
        ),
        (
            "agents/configs?revision=15",
            "the version that the agent \"writer\" had then is not kept any more",
        ),
        (
            "changes?after=start",
            "where the log begins now: its entries are kept for 10 days",
        ),
    ] {
        get(path).refused(410, &[said]);
    }
    let released = get("agents/released?label=production").expect(200).json();
    assert_eq!(released[0]["version"], 1);
    // A log that begins later is sound to those who verify it.
    let (data, backup) = (dir.to_str().unwrap(), place.path().join("backup"));
    let backup = backup.to_str().unwrap();
    run(["backup", "--data", data, "--out", backup]).succeeded();
    run(["compact", "--data", data]).succeeded();
    server.stop();
    run(["check", "--data", data]).succeeded();
    let restored = place.path().join("restored");
    run(["restore", "--from", backup, "--data", restored.to_str().unwrap()]).succeeded();
}

#[test]
fn versions_cannot_go_before_the_entries_that_show_them() {
    let run = Run::new(["check-config"]).env("AGENTCFG_VERSION_RETENTION_DAYS", "30");
    run.finish()
        .failed_with(&["version_retention_days needs audit_retention_days"]);
}
