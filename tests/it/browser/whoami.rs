//! `GET /api/whoami`.

use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

use super::sign_in;

#[test]
fn a_user_sees_every_workspace_with_its_role() {
    let studio = Studio::on_plan("free");
    let sibling = studio.sibling();
    studio.create("writer", &Value::Null).expect(201);
    let me = studio
        .server
        .get("/api/whoami")
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    assert_eq!((&me["type"], &me["id"]), (&json!("user"), &json!(studio.user)));
    assert!(me["expires_at"].as_str().unwrap().ends_with('Z'));
    let workspaces = me["workspaces"].as_array().unwrap();
    assert_eq!(workspaces.len(), 2);
    assert_eq!(workspaces[1]["id"], json!(sibling.id));
    let first = &workspaces[0];
    let fields: Vec<_> = first.as_object().unwrap().keys().cloned().collect();
    let expected = [
        "id",
        "name",
        "plan",
        "role",
        "scope",
        "permissions",
        "active_agents",
        "agent_limit",
        "limits",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (
            &first["role"],
            &first["scope"],
            &first["plan"],
            &first["active_agents"],
            &first["agent_limit"]
        ),
        (&json!("owner"), &Value::Null, &json!("free"), &json!(1), &json!(3))
    );
    let permissions = first["permissions"].as_array().unwrap();
    assert!(permissions.contains(&json!("workspace:manage")) && permissions.contains(&json!("agents:read")));

    studio.set_member("newcomer", "viewer").expect(200);
    let token = studio.server.token("newcomer");
    let newcomer = studio.server.get("/api/whoami").bearer(token).send().expect(200).json();
    let seen = newcomer["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|seen| seen["id"] == json!(studio.id));
    let reads = json!(["tasks:read", "projects:read", "agents:read", "analytics:read"]);
    assert_eq!(seen.unwrap()["permissions"], reads);
}

#[test]
fn a_key_sees_its_workspace_and_scope() {
    let studio = Studio::open();
    let key = studio.key_with(&json!({"scope": "read", "expires_at": "2099-01-31T18:00:00Z"}));
    let me = studio
        .server
        .get("/api/whoami")
        .bearer(&key.key)
        .send()
        .expect(200)
        .json();
    assert_eq!((&me["type"], &me["id"]), (&json!("api_key"), &json!(key.id)));
    assert_eq!(me["expires_at"], "2099-01-31T18:00:00.000Z");
    let workspace = &me["workspaces"][0];
    assert_eq!(
        (&workspace["role"], &workspace["scope"], &workspace["agent_limit"]),
        (&Value::Null, &json!("read"), &Value::Null)
    );
    let endless = studio.key("write");
    let me = studio
        .server
        .get("/api/whoami")
        .bearer(endless.key)
        .send()
        .expect(200)
        .json();
    assert_eq!(me["expires_at"], Value::Null);
}

#[test]
fn a_narrowed_write_scope_shows() {
    let server = Server::builder().set("write_scope_configures_agents", "false").start();
    let key = Studio::on(&server).key("write");
    let me = server.get("/api/whoami").bearer(key.key).send().expect(200).json();
    let permissions = me["workspaces"][0]["permissions"].as_array().unwrap();
    assert!(!permissions.contains(&json!("agents:configure")) && permissions.contains(&json!("models:invoke")));
}

#[test]
fn a_browser_session_ends_within_a_day() {
    let studio = Studio::open();
    let cookie = sign_in(studio.server, &studio.owner);
    let me = |request: agentcfg_tests::harness::Request| request.send().expect(200).json()["expires_at"].clone();
    let of_cookie = me(studio.server.get("/api/whoami").header("Cookie", cookie));
    let of_token = me(studio.server.get("/api/whoami").bearer(&studio.owner));
    assert!(of_cookie.as_str() > of_token.as_str(), "24 hours, not the token's one");
}
