//! Exports and deletions of workspaces.

use agentcfg_client::model::ExportLine;
use agentcfg_tests::harness::{Server, Studio};
use serde_json::{Value, json};

fn export(studio: &Studio<'_>) -> Vec<Value> {
    let target = format!("/api/workspaces/export?workspace_id={}", studio.id);
    let response = studio.server.get(target).bearer(&studio.owner).send().expect(200);
    assert_eq!(response.need("content-type"), "application/x-ndjson");
    assert_eq!(response.need("cache-control"), "no-store");
    response.lines()
}

/// The records of one kind in an export.
fn of_kind(lines: &[Value], kind: &str) -> Vec<Value> {
    let of = lines.iter().filter(|line| line["kind"] == kind);
    of.map(|line| line["record"].clone()).collect()
}

fn delete(studio: &Studio<'_>, credential: &str, confirm: &str) -> agentcfg_tests::harness::Response {
    let target = format!("/api/workspaces?workspace_id={}&confirm={confirm}", studio.id);
    studio.server.delete(target).bearer(credential).send()
}

#[test]
fn an_export_has_what_the_lists_show() {
    let studio = Studio::open();
    studio
        .create("writer", &json!({"persona_prompt": "Löß\n", "parameters": {"x": 0.7}}))
        .expect(201);
    studio.create("gone", &Value::Null).expect(201);
    studio.remove("gone").expect(200);
    studio.member("viewer");
    let key = studio.key("write");
    let revoked = studio.key("read");
    studio.revoke(&revoked);
    let status = format!("/api/agents/status?workspace_id={}&agent_id=writer", studio.id);
    let report = studio
        .server
        .put(status)
        .bearer(&key.key)
        .json(&json!({"status": "idle"}));
    report.send().expect(200);
    let provider = format!("/api/provider-keys?workspace_id={}&provider=openai", studio.id);
    let provider = studio.server.put(provider).bearer(&studio.owner);
    provider
        .json(&json!({"api_key": "sk-of-the-export"}))
        .send()
        .expect(200);

    let lines = export(&studio);
    let text = serde_json::to_string(&lines).unwrap();
    for secret in ["sk-of-the-export", "argon2", &key.key] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(
        lines.iter().all(|line| line.as_object().unwrap().len() == 2),
        "{lines:?}"
    );
    let get = |path: &str| {
        let target = format!("{path}workspace_id={}", studio.id);
        studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .expect(200)
            .json()
    };
    let sorted = |mut records: Vec<Value>, by: &str| {
        records.sort_by_key(|record| record[by].to_string());
        records
    };
    for (kind, path, by) in [
        ("agent", "/api/agents/configs?state=all&", "agent_id"),
        ("member", "/api/workspaces/members?", "user_id"),
        ("provider_key", "/api/provider-keys?", "provider"),
    ] {
        let listed = get(path).as_array().unwrap().clone();
        assert_eq!(sorted(of_kind(&lines, kind), by), sorted(listed, by), "{kind}");
    }
    let ids = |records: Vec<Value>| {
        sorted(records, "id")
            .iter()
            .map(|key| key["id"].clone())
            .collect::<Vec<_>>()
    };
    let listed = get("/api/api-keys?").as_array().unwrap().clone();
    assert_eq!(ids(of_kind(&lines, "api_key")), ids(listed));
    assert_eq!(of_kind(&lines, "workspace")[0]["id"], json!(studio.id));
    assert_eq!(of_kind(&lines, "status")[0]["agent_id"], "writer");
    let mut log = studio.audit();
    log.reverse();
    assert_eq!(of_kind(&lines, "audit"), log);
    assert_eq!(log.last().unwrap()["action"], "workspace.exported");
    // Nothing leaves the server by `HEAD`, so that it is no export.
    let target = format!("/api/workspaces/export?workspace_id={}", studio.id);
    let head = studio
        .server
        .request("HEAD", target)
        .bearer(&studio.owner)
        .send()
        .expect(200);
    assert_eq!(head.need("content-type"), "application/x-ndjson");
    assert_eq!(studio.audit().len(), log.len());
    assert_eq!(
        log.last().unwrap()["target"],
        json!({"type": "workspace", "id": studio.id})
    );
}

/// The client reads every line as the type of its kind.
#[test]
fn the_client_streams_an_export() {
    let studio = Studio::open();
    for number in 0..150 {
        let persona = json!({"persona_prompt": "p".repeat(4000)});
        studio.create(&format!("a{number}"), &persona).expect(201);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (agents, others) = runtime.block_on(async {
        let client = studio.client();
        let mut export = client.export_workspace(studio.id).await.unwrap();
        let (mut agents, mut others) = (Vec::new(), 0);
        while let Some(line) = export.next().await.unwrap() {
            match line {
                ExportLine::Agent(agent) => agents.push(agent.agent_id.to_string()),
                ExportLine::Unknown => panic!("a kind that the client does not know"),
                _ => others += 1,
            }
        }
        let refused = client.export_workspace("018f2d7c-0000-7000-8000-000000000001".parse().unwrap());
        assert!(refused.await.unwrap_err().is_forbidden());
        (agents, others)
    });
    let mut listed = studio.agent_ids();
    listed.sort();
    assert_eq!(agents, listed);
    assert_eq!(
        others,
        1 + 1 + 150 + 153,
        "the workspace, its owner, a version of each agent, and the log with the export and a change of plan"
    );
}

#[test]
fn a_deleted_workspace_is_refused_from_the_answer_on() {
    let studio = Studio::open();
    let other = studio.sibling();
    studio.create("writer", &Value::Null).expect(201);
    let (key, admin) = (studio.key("admin"), studio.member("admin"));
    let list = |credential: &str| {
        let target = format!("/api/agents/configs?workspace_id={}", studio.id);
        studio.server.get(target).bearer(credential).send()
    };
    list(&key.key).expect(200);
    for (credential, status) in [(&key.key, 403), (&admin, 403), (&studio.outsider(), 403)] {
        let wrong = delete(&studio, credential, "wrong").expect(status).error();
        assert_eq!(delete(&studio, credential, "Studio").expect(status).error(), wrong);
    }
    for wrong in ["studio", "", "Studio%20", "St%C3%BCdio"] {
        delete(&studio, &studio.owner, wrong).refused(400, &["confirm"]);
    }
    let missing = format!("/api/workspaces?workspace_id={}", studio.id);
    studio
        .server
        .delete(missing)
        .bearer(&studio.owner)
        .send()
        .refused(400, &["confirm"]);
    list(&key.key).expect(200);

    let done = delete(&studio, &studio.owner, "Studio").expect(200).json();
    assert_eq!(done, json!({"success": true}));
    list(&key.key).expect(401);
    for member in [&studio.owner, &admin] {
        list(member).expect(403);
        delete(&studio, member, "Studio").expect(403);
    }
    let mine = studio
        .server
        .get("/api/workspaces")
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    assert_eq!(mine.as_array().unwrap().len(), 1);
    assert_eq!(mine[0]["id"], json!(other.id));
    let plan = format!("/api/workspaces?workspace_id={}", studio.id);
    let plan = studio.server.patch(plan).bearer(studio.server.operator());
    plan.json(&json!({"plan": "pro"})).send().expect(404);
}

/// The audit log goes with the workspace, so the server's own log says who deleted it.
#[test]
fn a_deletion_is_in_the_log_of_the_server() {
    let server = Server::start();
    let studio = Studio::on(&server);
    delete(&studio, &studio.owner, "Studio").expect(200);
    server.stop();
    let log = server.stderr();
    let line = log.lines().find(|line| line.contains("a workspace was deleted"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains(&studio.id.to_string()) && line.contains(&studio.user),
        "{line}"
    );
}
