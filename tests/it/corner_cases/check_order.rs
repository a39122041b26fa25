//! The order of the checks: which of several faults is reported.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

const ABSENT: &str = "018f2d7c-0000-7000-8000-000000000001";

#[test]
fn the_route_comes_before_the_credential() {
    let studio = Studio::open();
    studio.server.get("/api/nowhere").send().expect(404);
    studio.server.put("/api/workspaces").send().expect(405);
}

#[test]
fn the_credential_comes_before_query_and_body() {
    let studio = Studio::open();
    studio
        .server
        .get("/api/agents/configs?limit=x&limit=y")
        .send()
        .expect(401);
    studio
        .server
        .post("/api/agents/configs")
        .bytes("nonsense")
        .send()
        .expect(401);
}

#[test]
fn the_rate_limit_comes_before_the_scope() {
    let studio = Studio::open();
    let key = studio.key_with(&json!({"scope": "read", "rate_limit": 1})).key;
    let request = studio.server.post("/api/agents/configs").bearer(key).json(&json!({}));
    request.send().refused(403, &["agents:configure"]);
    request.send().expect(429);
}

#[test]
fn the_scope_of_a_key_comes_before_query_and_body() {
    let studio = Studio::open();
    let key = studio.key("read").key;
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&key)
        .bytes("nonsense")
        .send()
        .expect(403);
    studio
        .server
        .patch("/api/agents/configs?a=1&a=1")
        .bearer(&key)
        .send()
        .expect(403);
    studio
        .server
        .get("/api/audit-log?limit=x")
        .bearer(&key)
        .send()
        .expect(403);
    studio
        .server
        .post("/api/workspaces")
        .bearer(&key)
        .bytes("nonsense")
        .send()
        .expect(403);
}

#[test]
fn the_body_comes_before_the_role_and_the_membership() {
    let studio = Studio::open();
    let faulty = studio.agent("Bad Id", &Value::Null);
    let good = studio.agent("good", &Value::Null);
    for token in [studio.member("viewer"), studio.outsider()] {
        let request = studio.server.post("/api/agents/configs").bearer(token);
        request.clone().json(&faulty).send().expect(400);
        request.json(&good).send().expect(403);
    }
    let alien = studio.sibling().key("admin").key;
    let request = studio.server.post("/api/agents/configs").bearer(alien);
    request.clone().json(&faulty).send().expect(400);
    request.json(&good).send().expect(403);
}

#[test]
fn of_the_faults_of_a_body_the_type_comes_first_then_the_length_then_the_content() {
    let studio = Studio::open();
    let request = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    let long = "x".repeat(2 << 20);
    request.clone().bytes(long.clone()).send().expect(415);
    request.clone().text(long).send().expect(413);
    request.text("x").send().expect(400);
}

#[test]
fn role_and_workspace_come_before_existence() {
    let studio = Studio::open();
    let target = format!("/api/agents/configs?workspace_id={}&agent_id=nobody", studio.id);
    for credential in [
        studio.member("viewer"),
        studio.outsider(),
        studio.sibling().key("admin").key,
    ] {
        studio.server.delete(&target).bearer(credential).send().expect(403);
    }
    let absent = format!("/api/agents/configs?workspace_id={ABSENT}&agent_id=nobody");
    studio.server.delete(absent).bearer(&studio.owner).send().expect(403);
    studio.server.delete(target).bearer(&studio.owner).send().expect(404);
}

#[test]
fn existence_comes_before_the_precondition() {
    let studio = Studio::open();
    let patch = studio.on_agent("PATCH", "nobody").header("If-Match", "\"x\"");
    patch.clone().json(&json!({"role": 1})).send().expect(400);
    patch.json(&json!({})).send().expect(404);
    studio
        .on_agent("DELETE", "nobody")
        .header("If-Match", "*")
        .send()
        .expect(404);
}

#[test]
fn existence_comes_before_the_comparison_of_the_identity() {
    let studio = Studio::open();
    let other = json!({"agent_id": "other", "workspace_id": ABSENT});
    studio.change("nobody", &other).expect(404);
    studio.create("writer", &Value::Null).expect(201);
    studio
        .change("writer", &other)
        .refused(400, &["workspace_id", "agent_id", "; "]);
}

#[test]
fn the_precondition_comes_before_the_conflict() {
    let studio = Studio::open();
    let tag = studio.create("writer", &Value::Null).etag();
    let target = format!("/api/agents/configs/restore?workspace_id={}&agent_id=writer", studio.id);
    let request = studio.server.post(target).bearer(&studio.owner);
    request.clone().header("If-Match", "\"stale\"").send().expect(412);
    request.header("If-Match", tag).send().expect(409);
}

#[test]
fn the_conflict_comes_before_the_plan() {
    let studio = Studio::on_plan("free");
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    studio.create("a", &Value::Null).expect(409);
    studio.restore("a").expect(409);
    studio.create("d", &Value::Null).expect(422);
}
