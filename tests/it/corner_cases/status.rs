//! Live status reports.

use agentcfg_client::model::{LiveStatus, NewAgent, Precondition, StatusReport};
use agentcfg_tests::harness::{Response, Server, Studio, eventually};
use serde_json::{Value, json};

fn report(studio: &Studio<'_>, agent: &str, body: &Value) -> Response {
    let target = format!("/api/agents/status?workspace_id={}&agent_id={agent}", studio.id);
    studio.server.put(target).bearer(&studio.owner).json(body).send()
}

#[test]
fn working_requires_both_task_fields_and_other_statuses_forbid_them() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let (longest_id, longest_title) = ("🦀".repeat(100), "🦀".repeat(200));
    for good in [
        json!({"status": "working", "current_task_id": "1", "current_task_title": "x"}),
        json!({"status": "working", "current_task_id": longest_id, "current_task_title": longest_title}),
        json!({"status": "idle"}),
        json!({"status": "idle", "current_task_id": null, "current_task_title": null}),
        json!({"status": "offline"}),
    ] {
        let entry = report(&studio, "a", &good).expect(200).json();
        assert_eq!(entry["status"], good["status"]);
        assert_eq!(entry["current_task_id"], good["current_task_id"]);
    }
    let task = |id: &str, title: &str| json!({"status": "working", "current_task_id": id, "current_task_title": title});
    for (bad, field) in [
        (json!({}), "status"),
        (json!({"status": "busy"}), "status"),
        (json!({"status": null}), "status"),
        (json!({"status": "working"}), "current_task_id"),
        (
            json!({"status": "working", "current_task_id": "1"}),
            "current_task_title",
        ),
        (
            json!({"status": "working", "current_task_title": "x"}),
            "current_task_id",
        ),
        (task("", "x"), "current_task_id"),
        (task(&"x".repeat(101), "x"), "current_task_id"),
        (task("1", ""), "current_task_title"),
        (task("1", &"x".repeat(201)), "current_task_title"),
        (json!({"status": "idle", "current_task_id": "1"}), "current_task_id"),
        (
            json!({"status": "offline", "current_task_title": "x"}),
            "current_task_title",
        ),
    ] {
        report(&studio, "a", &bad).refused(400, &[field]);
    }
}

#[test]
fn the_response_to_a_report_is_the_entry() {
    let studio = Studio::open();
    studio.create("a", &json!({"display_name": "Ada"})).expect(201);
    let entry = report(
        &studio,
        "a",
        &json!({"status": "working", "current_task_id": "T", "current_task_title": "t"}),
    );
    let expected = json!({
        "agent_id": "a", "display_name": "Ada", "status": "working", "current_task_id": "T", "current_task_title": "t",
    });
    assert_eq!(entry.expect(200).json(), expected);
}

#[tokio::test]
async fn a_report_expires_after_its_time_to_live_and_the_agent_is_offline() {
    let server = Server::builder().set("status_ttl", "3").start();
    let studio = Studio::on(&server);
    let client = studio.client();
    client
        .create_agent(&NewAgent::new(studio.id, "a".parse().unwrap(), "A"))
        .await
        .unwrap();
    let reported = client
        .report_status(None, "a", &StatusReport::working("T", "t"))
        .await
        .unwrap();
    assert_eq!(client.agent_status(studio.id).await.unwrap(), [reported]);
    let target = format!("/api/agents/status?workspace_id={}", studio.id);
    let entry = || server.get(&target).bearer(&studio.owner).send().json()[0].clone();
    eventually("the report is too old", || entry()["status"] == "offline");
    assert_eq!(
        (&entry()["current_task_id"], &entry()["current_task_title"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn entries_come_in_the_order_of_the_list_and_for_active_agents_only() {
    let studio = Studio::open();
    let client = studio.client();
    for id in ["c", "b", "a"] {
        client
            .create_agent(&NewAgent::new(studio.id, id.parse().unwrap(), id))
            .await
            .unwrap();
        client
            .report_status(Some(studio.id), id, &StatusReport::idle())
            .await
            .unwrap();
    }
    client
        .delete_agent(Some(studio.id), "b", &Precondition::None)
        .await
        .unwrap();
    let status = client.agent_status(studio.id).await.unwrap();
    assert_eq!(
        status.iter().map(|entry| &*entry.agent_id).collect::<Vec<_>>(),
        ["c", "a"]
    );
    let error = client
        .report_status(Some(studio.id), "b", &StatusReport::idle())
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    client
        .restore_agent(Some(studio.id), "b", &Precondition::None)
        .await
        .unwrap();
    let status = client.agent_status(studio.id).await.unwrap();
    assert_eq!(
        status[1].status,
        LiveStatus::Offline,
        "what was reported before the deletion is over"
    );
}

#[test]
fn a_report_is_no_change_of_the_agent() {
    let studio = Studio::open();
    let created = studio.create("a", &Value::Null);
    let (entries, list) = (studio.audit().len(), studio.list());
    report(&studio, "a", &json!({"status": "idle"})).expect(200);
    assert_eq!(studio.audit().len(), entries);
    assert_eq!((studio.list().etag(), studio.list().json()), (list.etag(), list.json()));
    assert_eq!(studio.list_request("&agent_id=a").send().etag(), created.etag());
}

#[test]
fn a_report_needs_an_agent_and_tasks_update() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    report(&studio, "nobody", &json!({"status": "idle"})).expect(404);
    report(&studio, "", &json!({"status": "idle"})).refused(400, &["agent_id"]);
    let target = format!("/api/agents/status?workspace_id={}&agent_id=a", studio.id);
    let request = studio.server.put(target).json(&json!({"status": "idle"}));
    request
        .clone()
        .bearer(studio.key("read").key)
        .send()
        .refused(403, &["tasks:update"]);
    request.clone().bearer(studio.member("viewer")).send().expect(403);
    request.clone().bearer(studio.key("write").key).send().expect(200);
    request.bearer(studio.member("member")).send().expect(200);
}
