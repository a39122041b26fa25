//! Endpoints: agent status.

use agentcfg_client::model::{LiveStatus, NewAgent, StatusReport};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn the_status_is_an_array_with_one_entry_for_each_agent() {
    let studio = Studio::open();
    for id in ["a", "b"] {
        studio
            .create(id, &json!({"display_name": id.to_uppercase()}))
            .expect(201);
    }
    let target = format!("/api/agents/status?workspace_id={}", studio.id);
    let entry = |id: &str, name: &str| {
        json!({
            "agent_id": id, "display_name": name, "status": "offline",
            "current_task_id": null, "current_task_title": null,
        })
    };
    let status = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    assert_eq!(status, json!([entry("a", "A"), entry("b", "B")]));
}

#[tokio::test]
async fn a_working_agent_has_a_task_and_the_others_have_none() {
    let studio = Studio::open();
    let client = studio.client();
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    for (report, status, task) in [
        (
            StatusReport::working("T-7", "Write"),
            LiveStatus::Working,
            Some(("T-7", "Write")),
        ),
        (StatusReport::idle(), LiveStatus::Idle, None),
        (StatusReport::offline(), LiveStatus::Offline, None),
    ] {
        let reported = client.report_status(Some(studio.id), "writer", &report).await.unwrap();
        let read = client.agent_status(studio.id).await.unwrap();
        assert_eq!(read.first(), Some(&reported));
        assert_eq!(read.len(), 1);
        assert_eq!(reported.status, status);
        assert_eq!(
            reported
                .current_task_id
                .as_deref()
                .zip(reported.current_task_title.as_deref()),
            task
        );
    }
}

#[test]
fn the_status_needs_a_workspace_a_credential_and_agents_read() {
    let studio = Studio::open();
    let target = format!("/api/agents/status?workspace_id={}", studio.id);
    studio
        .server
        .get("/api/agents/status")
        .bearer(&studio.owner)
        .send()
        .refused(400, &["workspace_id"]);
    studio.server.get(&target).send().expect(401);
    studio.server.get(&target).bearer(studio.outsider()).send().expect(403);
    for credential in [studio.key("read").key, studio.member("viewer")] {
        assert_eq!(
            studio.server.get(&target).bearer(credential).send().expect(200).json(),
            Value::Array(Vec::new())
        );
    }
}
