//! The workspace that a request acts in.

use agentcfg_client::model::{AgentPatch, NewAgent, Precondition, StatusReport};
use agentcfg_tests::harness::{Studio, unique};
use serde_json::{Value, json};

#[tokio::test]
async fn an_api_key_implies_its_own_workspace() {
    let studio = Studio::open();
    let client = studio.server.client(&studio.key("write").key);
    client
        .create_agent(&NewAgent::new(studio.id, "a".parse().unwrap(), "A"))
        .await
        .unwrap();
    for place in [None, Some(studio.id)] {
        client
            .update_agent(place, "a", &AgentPatch::default(), &Precondition::None)
            .await
            .unwrap();
        client.report_status(place, "a", &StatusReport::idle()).await.unwrap();
        client.delete_agent(place, "a", &Precondition::None).await.unwrap();
        client.restore_agent(place, "a", &Precondition::None).await.unwrap();
    }
}

#[test]
fn an_api_key_that_names_another_workspace_is_403() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    sibling.create("a", &Value::Null).expect(201);
    let key = studio.key("admin").key;
    let query = format!("workspace_id={}&agent_id=a", sibling.id);
    let server = studio.server;
    for request in [
        server.patch(format!("/api/agents/configs?{query}")).json(&json!({})),
        server.delete(format!("/api/agents/configs?{query}")),
        server.post(format!("/api/agents/configs/restore?{query}")),
        server
            .put(format!("/api/agents/status?{query}"))
            .json(&json!({"status": "idle"})),
    ] {
        request.bearer(&key).send().refused(403, &["another workspace"]);
    }
    assert_eq!(sibling.agent_ids(), ["a"]);
}

#[test]
fn a_session_with_one_membership_implies_that_workspace() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let token = studio.member("member");
    let target = "/api/agents/configs?agent_id=a";
    studio
        .server
        .patch(target)
        .bearer(&token)
        .json(&json!({"role": "x"}))
        .send()
        .expect(200);
    studio
        .server
        .put("/api/agents/status?agent_id=a")
        .bearer(&token)
        .json(&json!({"status": "idle"}))
        .send()
        .expect(200);
    studio.server.delete(target).bearer(&token).send().expect(200);
    studio
        .server
        .post("/api/agents/configs/restore?agent_id=a")
        .bearer(&token)
        .send()
        .expect(200);
}

#[test]
fn a_session_with_several_memberships_or_none_must_name_the_workspace() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    studio.create("a", &Value::Null).expect(201);
    let user = unique("both");
    for workspace in [&studio, &sibling] {
        workspace.set_member(&user, "member").expect(200);
    }
    for token in [studio.server.token(&user), studio.outsider()] {
        let request = studio
            .server
            .patch("/api/agents/configs?agent_id=a")
            .bearer(token)
            .json(&json!({}));
        request.send().refused(400, &["workspace_id"]);
    }
    let target = format!("/api/agents/configs?agent_id=a&workspace_id={}", studio.id);
    studio
        .server
        .patch(target)
        .bearer(studio.server.token(&user))
        .json(&json!({}))
        .send()
        .expect(200);
}

#[test]
fn only_the_agent_endpoints_infer_the_workspace() {
    let studio = Studio::open();
    let key = studio.key("admin").key;
    for path in [
        "/api/agents/configs",
        "/api/agents/status",
        "/api/workspaces/members",
        "/api/api-keys",
        "/api/audit-log",
    ] {
        for credential in [&studio.owner, &key] {
            studio
                .server
                .get(path)
                .bearer(credential)
                .send()
                .refused(400, &["workspace_id"]);
        }
    }
    let body = json!({"name": "x"});
    studio
        .server
        .patch("/api/workspaces")
        .bearer(&studio.owner)
        .json(&body)
        .send()
        .refused(400, &["workspace_id"]);
    let target = "/api/workspaces/members?user_id=u";
    studio
        .server
        .delete(target)
        .bearer(&studio.owner)
        .send()
        .refused(400, &["workspace_id"]);
}

#[test]
fn a_workspace_that_is_absent_and_one_that_is_foreign_look_the_same() {
    let studio = Studio::open();
    let outsider = studio.outsider();
    let answer = |id: &str| {
        let target = format!("/api/agents/configs?workspace_id={id}");
        studio.server.get(target).bearer(&outsider).send().expect(403).error()
    };
    assert_eq!(
        answer(&studio.id.to_string()),
        answer("018f2d7c-0000-7000-8000-000000000001")
    );
}
