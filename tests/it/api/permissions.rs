//! Authentication: scopes, permissions, and the two statuses of refusal.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{NewAgent, Permission, Scope};
use agentcfg_tests::harness::{Server, Studio};

/// The permissions of an admin key, written out, so that a change of the table in the core is seen.
const ADMIN: [&str; 17] = [
    "tasks:create",
    "tasks:read",
    "tasks:update",
    "tasks:delete",
    "projects:create",
    "projects:read",
    "projects:update",
    "projects:delete",
    "agents:configure",
    "agents:read",
    "users:read",
    "settings:read",
    "analytics:read",
    "webhooks:manage",
    "webhooks:read",
    "api_keys:read",
    "audit_log:read",
];

#[test]
fn an_admin_key_has_the_seventeen_permissions() {
    let permissions = Scope::Admin.permissions();
    for name in ADMIN {
        let permission: Permission = name.parse().unwrap();
        assert!(permissions.contains(permission), "{name}");
    }
    let more: Vec<_> = permissions
        .iter()
        .map(Permission::as_str)
        .filter(|name| !ADMIN.contains(name))
        .collect();
    assert_eq!(more, ["models:invoke", "agents:release", "budgets:manage"]);
}

#[tokio::test]
async fn a_read_key_reads_and_changes_nothing() {
    let studio = Studio::open();
    let client = studio.server.client(&studio.key("read").key);
    client.list_agents(studio.id, &AgentFilter::default()).await.unwrap();
    client.agent_status(studio.id).await.unwrap();
    let error = client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap_err();
    assert!(
        error.is_forbidden() && error.message().contains("agents:configure"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_write_key_configures_agents_and_manages_nothing() {
    let studio = Studio::open();
    let client = studio.server.client(&studio.key("write").key);
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    let refused = [
        client.list_api_keys(studio.id).await.map(drop).unwrap_err(),
        client.list_members(studio.id).await.map(drop).unwrap_err(),
        client
            .audit_log(studio.id, &Default::default())
            .await
            .map(drop)
            .unwrap_err(),
    ];
    assert!(refused.iter().all(agentcfg_client::Error::is_forbidden), "{refused:?}");
}

#[tokio::test]
async fn an_admin_key_configures_agents_and_reads_keys_and_the_audit_log() {
    let studio = Studio::open();
    let client = studio.server.client(&studio.key("admin").key);
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    client.list_api_keys(studio.id).await.unwrap();
    client.list_members(studio.id).await.unwrap();
    client.audit_log(studio.id, &Default::default()).await.unwrap();
}

#[test]
fn a_missing_or_invalid_credential_is_401() {
    let server = Server::shared();
    let request = server.get("/api/workspaces");
    request.send().expect(401);
    for field in [
        "",
        "Bearer",
        "Bearer ",
        "Basic dTpw",
        "svc_live_x",
        "Bearer x",
        "Bearer svc_live_x",
        "Bearer a.b.c",
    ] {
        request.clone().header("Authorization", field).send().expect(401);
    }
}

#[test]
fn a_valid_credential_without_the_permission_is_403() {
    let studio = Studio::open();
    let target = format!("/api/audit-log?workspace_id={}", studio.id);
    for credential in [studio.key("read").key, studio.key("write").key, studio.member("viewer")] {
        studio
            .server
            .get(&target)
            .bearer(credential)
            .send()
            .refused(403, &["audit_log:read"]);
    }
}
