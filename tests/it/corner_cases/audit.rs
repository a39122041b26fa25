//! The audit log.

use agentcfg_client::Page;
use agentcfg_client::model::NewAgent;
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn every_kind_of_change_writes_one_entry_with_actor_action_and_target() {
    let studio = Studio::open();
    let target = format!("/api/workspaces?workspace_id={}", studio.id);
    studio
        .server
        .patch(target)
        .bearer(&studio.owner)
        .json(&json!({"name": "Atelier"}))
        .send()
        .expect(200);
    studio.set_member("u", "viewer").expect(200);
    let removal = format!("/api/workspaces/members?workspace_id={}&user_id=u", studio.id);
    studio.server.delete(removal).bearer(&studio.owner).send().expect(200);
    let key = studio.key("read");
    studio.revoke(&key);
    studio.create("a", &Value::Null).expect(201);
    studio.change("a", &json!({"role": "x"})).expect(200);
    studio.remove("a").expect(200);
    studio.restore("a").expect(200);
    let mut entries = studio.audit();
    entries.reverse();
    let id = studio.id.to_string();
    let expected = [
        ("workspace.created", "workspace", &*id),
        ("workspace.updated", "workspace", &id),
        ("workspace.updated", "workspace", &id),
        ("member.set", "member", "u"),
        ("member.removed", "member", "u"),
        ("api_key.created", "api_key", &key.id),
        ("api_key.revoked", "api_key", &key.id),
        ("agent.created", "agent", "a"),
        ("agent.updated", "agent", "a"),
        ("agent.deactivated", "agent", "a"),
        ("agent.restored", "agent", "a"),
    ];
    assert_eq!(entries.len(), expected.len());
    for (number, (entry, (action, kind, target))) in entries.iter().zip(expected).enumerate() {
        assert_eq!(entry["action"], action);
        assert_eq!(entry["target"], json!({"type": kind, "id": target}), "{action}");
        let actor = match number {
            1 => json!({"type": "operator", "id": "operator"}),
            _ => json!({"type": "user", "id": studio.user}),
        };
        assert_eq!(entry["actor"], actor, "{action}");
        assert_eq!(entry["workspace_id"], id);
        assert!(entry["request_id"].is_string(), "{action}");
        let fields: Vec<_> = entry.as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            [
                "id",
                "workspace_id",
                "actor",
                "action",
                "target",
                "created_at",
                "changes",
                "revision",
                "message",
                "request_id"
            ]
        );
    }
}

#[test]
fn changes_map_each_changed_field_to_its_old_and_new_value() {
    let studio = Studio::open();
    studio
        .create("a", &json!({"role": "author", "parameters": {"x": 1}}))
        .expect(201);
    studio
        .change(
            "a",
            &json!({"role": null, "parameters": {"x": 0.5}, "display_name": "Agent"}),
        )
        .expect(200);
    let changes = studio.audit()[0]["changes"].clone();
    let expected = json!({
        "role": {"from": "author", "to": null},
        "parameters": {"from": {"x": 1}, "to": {"x": 0.5}},
    });
    assert_eq!(changes, expected, "a field that was sent as it was has not changed");
    studio.change("a", &json!({})).expect(200);
    assert_eq!(
        studio.audit()[0]["changes"],
        json!({}),
        "an empty patch changes the record too"
    );
}

#[test]
fn an_api_key_acts_under_its_identifier() {
    let studio = Studio::open();
    let key = studio.key("write");
    let request = studio.server.post("/api/agents/configs").bearer(&key.key);
    request.json(&studio.agent("a", &Value::Null)).send().expect(201);
    assert_eq!(studio.audit()[0]["actor"], json!({"type": "api_key", "id": key.id}));
}

#[test]
fn refused_requests_and_reads_write_no_entry() {
    let studio = Studio::on_plan("free");
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    let before = studio.audit();
    studio.create("a", &Value::Null).expect(409);
    studio.create("d", &Value::Null).expect(422);
    studio.create("Bad", &Value::Null).expect(400);
    studio.change("nobody", &json!({})).expect(404);
    studio
        .on_agent("PATCH", "a")
        .header("If-Match", "\"x\"")
        .json(&json!({}))
        .send()
        .expect(412);
    studio.restore("a").expect(409);
    studio.set_member(&studio.user, "viewer").expect(409);
    studio.list();
    assert_eq!(studio.audit(), before);
}

#[test]
fn no_entry_holds_a_secret() {
    let studio = Studio::open();
    let key = studio.key("admin");
    let log = Value::from(studio.audit()).to_string();
    let secret = &key.key["svc_test_".len() + key.id.len()..];
    for hidden in [secret, "argon2", "hash", &studio.owner] {
        assert!(!log.contains(hidden), "{hidden}");
    }
}

#[tokio::test]
async fn entries_are_listed_newest_first_and_pages_are_contiguous() {
    let studio = Studio::open();
    let client = studio.client();
    for number in 0..130 {
        client
            .create_agent(&NewAgent::new(studio.id, format!("a{number}").parse().unwrap(), "A"))
            .await
            .unwrap();
    }
    let whole = client
        .audit_log(
            studio.id,
            &Page {
                limit: Some(1000),
                offset: 0,
            },
        )
        .await
        .unwrap();
    assert_eq!(whole.len(), 132, "one for the workspace, one for its plan");
    assert_eq!(whole[0].target.id, "a129");
    assert!(whole.is_sorted_by(|a, b| a.created_at >= b.created_at));
    assert_eq!(
        client.audit_log(studio.id, &Page::default()).await.unwrap(),
        whole[..100]
    );
    let mut pages = Vec::new();
    for offset in [0, 50, 100, 150] {
        pages.extend(
            client
                .audit_log(
                    studio.id,
                    &Page {
                        limit: Some(50),
                        offset,
                    },
                )
                .await
                .unwrap(),
        );
    }
    assert_eq!(pages, whole);
}

#[test]
fn a_log_contains_entries_of_its_own_workspace_only() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    sibling.create("hidden", &Value::Null).expect(201);
    assert!(!Value::from(studio.audit()).to_string().contains("hidden"));
}
