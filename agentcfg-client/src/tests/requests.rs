//! The request that each method sends.

use agentcfg_core::model::{
    AgentPatch, AgentState, AuditFilter, Environment, LabelFilter, LabelTarget, NewApiKey, NewWebhook, NewWorkspace,
    Patch, Plan, Precondition, Promotion, Provider, ReplayFrom, Role, Rollback, Scope, StatusReport, Timestamp,
    VersionPage, VersionSelector, WebhookPatch, WebhookReplay, WorkspacePatch,
};

use super::server::{Server, answer};
use super::{client, workspace, writer};
use crate::{AgentFilter, Client, Page, ProviderCredential};

/// The request line and the body.
fn line_and_body(request: &str) -> (String, String) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let line = head.lines().next().unwrap().replace(&workspace().to_string(), "WS");
    (
        line.replace(" HTTP/1.1", ""),
        body.replace(&workspace().to_string(), "WS"),
    )
}

#[tokio::test]
async fn every_method_calls_its_endpoint() {
    let server = Server::start((0..32).map(|_| answer(418, "", r#"{"error":"teapot"}"#))).await;
    let c = client(&server);
    let ws = workspace();
    let tag = Precondition::matches("\"a7\"");
    let mut failed = 0;
    let mut seen = |error: Option<crate::Error>| {
        assert_eq!(error.unwrap().status(), Some(418));
        failed += 1;
    };
    let part = AgentFilter::default()
        .agent_id(Some("a-b".parse().unwrap()))
        .state(AgentState::All)
        .offset(3)
        .limit(2);
    seen(c.list_agents(ws, &AgentFilter::default()).await.err());
    seen(c.list_agents(ws, &part).await.err());
    seen(c.create_agent(&writer()).await.err());
    let patch = AgentPatch::default().role(Patch::Null);
    seen(c.update_agent(Some(ws), "writer", &patch, &tag).await.err());
    seen(c.delete_agent(None, "writer", &tag).await.err());
    seen(c.restore_agent(None, "writer", &Precondition::None).await.err());
    seen(c.agent_status(ws).await.err());
    seen(
        c.report_status(Some(ws), "writer", &StatusReport::working("T-7", "Docs"))
            .await
            .err(),
    );
    seen(c.list_workspaces().await.err());
    seen(c.create_workspace(&NewWorkspace::new("Studio")).await.err());
    let plan = WorkspacePatch::default().plan(Plan::Pro);
    seen(c.update_workspace(ws, &plan).await.err());
    seen(c.list_members(ws).await.err());
    seen(
        c.set_member(ws, &"grâce hopper+1@x".parse().unwrap(), Role::Admin)
            .await
            .err(),
    );
    seen(c.remove_member(ws, &"a&b".parse().unwrap()).await.err());
    seen(c.list_api_keys(ws).await.err());
    let new = NewApiKey::new(ws, "ci", Environment::Production, Scope::Write)
        .expires_at(Some("2030-01-01T00:00:00Z".parse().unwrap()));
    seen(c.create_api_key(&new).await.err());
    seen(c.revoke_api_key("abc").await.err());
    seen(
        c.audit_log(
            ws,
            &Page {
                offset: 10,
                limit: Some(5),
            },
        )
        .await
        .err(),
    );
    seen(c.ready().await.err());
    seen(c.list_models(ws).await.err());
    seen(c.list_provider_keys(ws).await.err());
    let key = ProviderCredential::new("sk-\"1").unwrap();
    seen(c.save_provider_key(ws, Provider::OPENAI, &key).await.err());
    seen(c.delete_provider_key(ws, Provider::ANTHROPIC).await.err());
    let hook = "0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4".parse().unwrap();
    seen(c.list_webhooks(ws).await.err());
    seen(c.create_webhook(&NewWebhook::new(ws, "https://h.example/")).await.err());
    let patch = WebhookPatch::default().description(Patch::Null).enabled(true);
    seen(c.update_webhook(hook, &patch).await.err());
    seen(c.delete_webhook(hook).await.err());
    seen(c.test_webhook(hook).await.err());
    let replay = WebhookReplay::new(ReplayFrom::Start);
    seen(c.replay_webhook(hook, &replay).await.err());
    seen(c.rotate_webhook_secret(hook).await.err());
    seen(c.webhook_deliveries(hook).await.err());
    seen(c.delete_workspace(ws, "Studio North").await.err());
    assert_eq!(failed, 32);

    let sent: Vec<_> = server.requests().iter().map(|request| line_and_body(request)).collect();
    let expected = [
        ("GET /api/agents/configs?workspace_id=WS", ""),
        (
            "GET /api/agents/configs?workspace_id=WS&agent_id=a-b&state=all&offset=3&limit=2",
            "",
        ),
        (
            "POST /api/agents/configs",
            r#"{"workspace_id":"WS","agent_id":"writer","display_name":"Writer","agent_type":"ai","capabilities":[],"parameters":{}}"#,
        ),
        (
            "PATCH /api/agents/configs?workspace_id=WS&agent_id=writer",
            r#"{"role":null}"#,
        ),
        ("DELETE /api/agents/configs?agent_id=writer", ""),
        ("POST /api/agents/configs/restore?agent_id=writer", ""),
        ("GET /api/agents/status?workspace_id=WS", ""),
        (
            "PUT /api/agents/status?workspace_id=WS&agent_id=writer",
            r#"{"status":"working","current_task_id":"T-7","current_task_title":"Docs"}"#,
        ),
        ("GET /api/workspaces", ""),
        ("POST /api/workspaces", r#"{"name":"Studio"}"#),
        ("PATCH /api/workspaces?workspace_id=WS", r#"{"plan":"pro"}"#),
        ("GET /api/workspaces/members?workspace_id=WS", ""),
        (
            "PUT /api/workspaces/members?workspace_id=WS&user_id=gr%C3%A2ce%20hopper%2B1%40x",
            r#"{"role":"admin"}"#,
        ),
        ("DELETE /api/workspaces/members?workspace_id=WS&user_id=a%26b", ""),
        ("GET /api/api-keys?workspace_id=WS", ""),
        (
            "POST /api/api-keys",
            r#"{"workspace_id":"WS","name":"ci","environment":"production","scope":"write","expires_at":"2030-01-01T00:00:00.000Z"}"#,
        ),
        ("DELETE /api/api-keys?key_id=abc", ""),
        ("GET /api/audit-log?workspace_id=WS&offset=10&limit=5", ""),
        ("GET /readyz", ""),
        ("GET /api/models?workspace_id=WS", ""),
        ("GET /api/provider-keys?workspace_id=WS", ""),
        (
            "PUT /api/provider-keys?workspace_id=WS&provider=openai",
            r#"{"api_key":"sk-\"1"}"#,
        ),
        ("DELETE /api/provider-keys?workspace_id=WS&provider=anthropic", ""),
        ("GET /api/webhooks?workspace_id=WS", ""),
        (
            "POST /api/webhooks",
            r#"{"workspace_id":"WS","url":"https://h.example/","types":["agent.*","agents.*","label.*"],"ordered":false}"#,
        ),
        (
            "PATCH /api/webhooks?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            r#"{"description":null,"enabled":true}"#,
        ),
        (
            "DELETE /api/webhooks?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            "",
        ),
        (
            "POST /api/webhooks/test?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            "",
        ),
        (
            "POST /api/webhooks/replay?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            r#"{"after":"start"}"#,
        ),
        (
            "POST /api/webhooks/rotate-secret?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            "",
        ),
        (
            "GET /api/webhooks/deliveries?webhook_id=0192f0b2-5d11-7c0e-8a3b-54b0f1a2c3d4",
            "",
        ),
        ("DELETE /api/workspaces?workspace_id=WS&confirm=Studio%20North", ""),
    ];
    assert_eq!(sent.len(), expected.len());
    for (sent, expected) in sent.iter().zip(expected) {
        assert_eq!((sent.0.as_str(), sent.1.as_str()), expected);
    }
    let requests = server.requests();
    for conditional in [3, 4] {
        assert!(requests[conditional].contains("if-match: \"a7\"\r\n"));
    }
    assert!(!requests[5].contains("if-match"));
    // Every response was read completely, so one connection served all requests.
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn versions_and_labels_call_their_endpoints() {
    let server = Server::start((0..15).map(|_| answer(418, "", r#"{"error":"teapot"}"#))).await;
    let ws = workspace();
    let c = client(&server).with_message("Why not?".parse().unwrap());
    let at: Timestamp = "2026-11-20T10:30:00+01:00".parse().unwrap();
    let agents = c.agents().in_workspace(ws);
    let mut failed = 0;
    let mut seen = |error: Option<crate::Error>| {
        assert_eq!(error.unwrap().status(), Some(418));
        failed += 1;
    };
    let page = VersionPage::default().before(7).limit(2);
    seen(c.list_versions(None, "writer", page).await.err());
    seen(c.current_versions(Some(ws)).await.err());
    seen(c.agents().get("writer").await.err());
    seen(c.agents().label("production").get("writer").await.err());
    seen(agents.version(3).get("writer").await.err());
    seen(agents.at(at).list().await.err());
    seen(agents.revision(118).list().await.err());
    seen(c.diff_versions(None, "writer", 2, VersionSelector::Current).await.err());
    let back = Rollback::to_label("staging".parse().unwrap());
    let tag = Precondition::matches("\"a7\"");
    seen(c.roll_back_agent(Some(ws), "writer", &back, &tag).await.err());
    let production = "production".parse().unwrap();
    let filter = LabelFilter::default().agent_id("writer").label("production");
    seen(c.list_labels(ws, filter).await.err());
    let target = LabelTarget::new(3).expected_version(Patch::Null);
    seen(c.set_label(None, "writer", &production, &target).await.err());
    seen(c.remove_label(None, "writer", &production).await.err());
    let promotion =
        Promotion::new("latest".parse().unwrap(), production).agent_ids(Some(vec!["writer".parse().unwrap()]));
    seen(c.promote_labels(ws, &promotion, false).await.err());
    seen(c.promote_labels(ws, &promotion, true).await.err());
    let filter = AuditFilter::default()
        .actor("ada@example.com")
        .action("agent.*")
        .target_type("agent")
        .target_id("writer")
        .since(at)
        .until(at)
        .before(118)
        .offset(1)
        .limit(5);
    seen(c.search_audit_log(ws, &filter).await.err());
    assert_eq!(failed, 15);
    let sent: Vec<_> = server.requests().iter().map(|request| line_and_body(request)).collect();
    let expected = [
        ("GET /api/agents/versions?agent_id=writer&before=7&limit=2", ""),
        ("GET /api/agents/versions?workspace_id=WS", ""),
        ("GET /api/agents/version?agent_id=writer", ""),
        ("GET /api/agents/version?agent_id=writer&label=production", ""),
        ("GET /api/agents/version?workspace_id=WS&agent_id=writer&version=3", ""),
        (
            "GET /api/agents/configs?workspace_id=WS&at=2026-11-20T09%3A30%3A00.000Z",
            "",
        ),
        ("GET /api/agents/configs?workspace_id=WS&revision=118", ""),
        ("GET /api/agents/diff?agent_id=writer&from=2&to=latest", ""),
        (
            "POST /api/agents/rollback?workspace_id=WS&agent_id=writer&message=Why%20not%3F",
            r#"{"label":"staging"}"#,
        ),
        (
            "GET /api/agents/labels?workspace_id=WS&agent_id=writer&label=production",
            "",
        ),
        (
            "PUT /api/agents/labels?agent_id=writer&label=production&message=Why%20not%3F",
            r#"{"version":3,"expected_version":null}"#,
        ),
        (
            "DELETE /api/agents/labels?agent_id=writer&label=production&message=Why%20not%3F",
            "",
        ),
        (
            "POST /api/agents/labels/promote?workspace_id=WS&message=Why%20not%3F",
            r#"{"from":"latest","to":"production","agent_ids":["writer"]}"#,
        ),
        (
            "POST /api/agents/labels/promote?workspace_id=WS&message=Why%20not%3F&dry_run=true",
            r#"{"from":"latest","to":"production","agent_ids":["writer"]}"#,
        ),
        (
            "GET /api/audit-log?workspace_id=WS&actor=ada%40example.com&action=agent.%2A&target_type=agent&target_id=writer\
             &since=2026-11-20T09%3A30%3A00.000Z&until=2026-11-20T09%3A30%3A00.000Z&before=118&offset=1&limit=5",
            "",
        ),
    ];
    for (sent, expected) in sent.iter().zip(expected) {
        assert_eq!((sent.0.as_str(), sent.1.as_str()), expected);
    }
    assert!(server.requests()[8].contains("if-match: \"a7\"\r\n"));
    // Calls that no endpoint can answer are refused before anything is sent.
    let error = c.agents().list().await.unwrap_err();
    assert!(
        error.status().is_none() && error.to_string().contains("a list needs a workspace"),
        "{error}"
    );
    let compared = c.diff_versions(None, "writer", at, 2).await;
    assert!(
        compared
            .unwrap_err()
            .to_string()
            .contains("by its number or a label, not by a time")
    );
    assert_eq!(server.requests().len(), 15);
}

#[tokio::test]
async fn an_agent_has_the_version_that_the_header_names() {
    let agent = serde_json::to_string(&serde_json::json!({
        "id": workspace(), "workspace_id": workspace(), "agent_id": "writer", "display_name": "Writer", "role": null,
        "description": null, "agent_type": "ai", "model": null, "color": null, "persona_prompt": null, "capabilities": [],
        "parameters": {}, "is_active": true, "created_at": "2026-11-20T09:30:00.123Z", "updated_at": "2026-11-20T09:30:00.123Z",
    }))
    .unwrap();
    let headers = ["agent-version: 3\r\n", "", "agent-version: x\r\n"];
    let server = Server::start(headers.map(|header| answer(200, header, &agent))).await;
    let client = client(&server);
    for version in [3, 0, 0] {
        let agent = client.restore_agent(None, "writer", &Precondition::None).await.unwrap();
        assert_eq!(agent.version, version);
    }
}

#[tokio::test]
async fn every_request_has_the_headers_and_the_path_prefix() {
    let server = Server::start((0..3).map(|_| answer(200, "", "[]"))).await;
    let mounted = Client::builder(format!("{}/agentcfg/", server.url())).build().unwrap();
    mounted.list_workspaces().await.unwrap();
    let key = mounted.with_api_key("svc_test_canary").unwrap();
    key.list_workspaces().await.unwrap();
    key.with_session_token("a.b.c").unwrap().healthy().await.unwrap();
    let requests = server.requests();
    for (request, line) in requests.iter().zip([
        "GET /agentcfg/api/workspaces HTTP/1.1\r\n",
        "GET /agentcfg/api/workspaces HTTP/1.1\r\n",
        "GET /agentcfg/healthz HTTP/1.1\r\n",
    ]) {
        assert!(request.starts_with(line), "{request}");
        assert!(
            request.contains(&format!("\r\nhost: {}\r\n", server.address())),
            "{request}"
        );
        assert!(request.contains("\r\naccept: application/json\r\n"), "{request}");
        let agent = concat!("\r\nuser-agent: agentcfg-client/", env!("CARGO_PKG_VERSION"), "\r\n");
        assert!(request.contains(agent), "{request}");
        assert!(!request.contains("content-type"), "{request}");
    }
    assert!(!requests[0].contains("authorization"));
    assert!(requests[1].contains("\r\nauthorization: Bearer svc_test_canary\r\n"));
    assert!(requests[2].contains("\r\nauthorization: Bearer a.b.c\r\n"));
}

/// Compiles only if the futures of calls are `Send`.
#[test]
fn calls_can_be_sent_between_threads() {
    fn sendable(_: impl Send) {}
    let client = Client::builder("http://host").build().unwrap();
    sendable(client.list_agents(workspace(), &AgentFilter::default()));
    sendable(client.create_agent(&writer()));
    sendable(client.update_agent(None, "writer", &AgentPatch::default(), &Precondition::None));
    fn shareable<T: Send + Sync + Clone + std::fmt::Debug>(_: &T) {}
    shareable(&client);
}
