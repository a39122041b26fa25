//! A test workspace, with credentials of every kind.

use std::sync::atomic::{AtomicU32, Ordering};

use agentcfg_client::Client;
use agentcfg_client::model::WorkspaceId;
use serde_json::{Value, json};

use super::{Request, Response, Server};

/// An API key as the server created it.
#[derive(Debug, Clone)]
pub struct Key {
    pub id: String,
    pub key: String,
}

/// The workspace of one test, on the plan `enterprise`, so that no test hits a limit by accident.
#[derive(Clone)]
pub struct Studio<'a> {
    pub server: &'a Server,
    pub id: WorkspaceId,
    /// The user id of the owner.
    pub user: String,
    /// A session token of the owner.
    pub owner: String,
}

/// A test workspace without a server, for tests that start one server after another on the same data.
#[derive(Debug, Clone)]
pub struct Identity {
    id: WorkspaceId,
    user: String,
    owner: String,
}

impl Identity {
    /// The workspace on a server that has its data.
    pub fn on<'a>(&self, server: &'a Server) -> Studio<'a> {
        let Self { id, user, owner } = self.clone();
        Studio {
            server,
            id,
            user,
            owner,
        }
    }
}

/// A name that is unique among all tests.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Studio<'static> {
    /// A new workspace on the shared server.
    pub fn open() -> Self {
        Self::on_plan("enterprise")
    }

    /// A new workspace on the shared server, on this plan.
    pub fn on_plan(plan: &str) -> Self {
        let studio = Self::on(Server::shared());
        studio.set_plan(plan);
        studio
    }
}

impl<'a> Studio<'a> {
    /// A new workspace on a server, on that server's default plan.
    pub fn on(server: &'a Server) -> Self {
        let user = unique("owner");
        let owner = server.token(&user);
        let request = server
            .post("/api/workspaces")
            .bearer(&owner)
            .json(&json!({"name": "Studio"}));
        let id = request.send().expect(201).json()["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        Self {
            server,
            id,
            user,
            owner,
        }
    }

    /// The workspace without its server.
    pub fn identity(&self) -> Identity {
        Identity {
            id: self.id,
            user: self.user.clone(),
            owner: self.owner.clone(),
        }
    }

    /// Another workspace of the same owner.
    pub fn sibling(&self) -> Self {
        let request = self
            .server
            .post("/api/workspaces")
            .bearer(&self.owner)
            .json(&json!({"name": "Sibling"}));
        let id = request.send().expect(201).json()["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        Self { id, ..self.clone() }
    }

    /// Changes the plan as the operator.
    pub fn set_plan(&self, plan: &str) {
        let target = format!("/api/workspaces?workspace_id={}", self.id);
        let request = self.server.patch(target).bearer(self.server.operator());
        request.json(&json!({"plan": plan})).send().expect(200);
    }

    /// A new API key with this scope and default attributes.
    pub fn key(&self, scope: &str) -> Key {
        self.key_with(&json!({"scope": scope}))
    }

    /// A new API key with these attributes; the default is an admin key for development.
    pub fn key_with(&self, attributes: &Value) -> Key {
        let created = self.create_key(attributes).expect(201).json();
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        Key {
            id: text("id"),
            key: text("key"),
        }
    }

    /// The response to the creation of an API key with these attributes.
    pub fn create_key(&self, attributes: &Value) -> Response {
        let mut body = json!({
            "workspace_id": self.id, "name": "key", "environment": "development", "scope": "admin",
        });
        body.as_object_mut()
            .unwrap()
            .extend(attributes.as_object().unwrap().clone());
        self.server.post("/api/api-keys").bearer(&self.owner).json(&body).send()
    }

    pub fn revoke(&self, key: &Key) {
        let target = format!("/api/api-keys?key_id={}", key.id);
        self.server.delete(target).bearer(&self.owner).send().expect(200);
    }

    /// A session token of a new user with this role.
    pub fn member(&self, role: &str) -> String {
        let user = unique(role);
        self.set_member(&user, role).expect(200);
        self.server.token(&user)
    }

    pub fn set_member(&self, user: &str, role: &str) -> Response {
        let target = format!("/api/workspaces/members?workspace_id={}&user_id={user}", self.id);
        self.server
            .put(target)
            .bearer(&self.owner)
            .json(&json!({"role": role}))
            .send()
    }

    /// A session token of a user who is no member of the workspace.
    pub fn outsider(&self) -> String {
        self.server.token(&unique("outsider"))
    }

    /// Creates a webhook for events that never happen, as the owner.
    #[track_caller]
    pub fn webhook(&self, url: &str) -> Value {
        let body = json!({"workspace_id": self.id, "url": url, "types": ["unused.*"]});
        let request = self.server.post("/api/webhooks").bearer(&self.owner);
        request.json(&body).send().expect(201).json()
    }

    /// The real client with the owner's session token.
    pub fn client(&self) -> Client {
        self.server.client(&self.owner)
    }

    /// A request for an agent's record as the owner.
    pub fn on_agent(&self, method: &str, agent_id: &str) -> Request {
        let target = format!("/api/agents/configs?workspace_id={}&agent_id={agent_id}", self.id);
        self.server.request(method, target).bearer(&self.owner)
    }

    /// The body that creates an agent with these fields and defaults.
    pub fn agent(&self, agent_id: &str, fields: &Value) -> Value {
        let mut body = json!({"workspace_id": self.id, "agent_id": agent_id, "display_name": "Agent"});
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().cloned().unwrap_or_default());
        body
    }

    /// Creates an agent with these fields as the owner.
    pub fn create(&self, agent_id: &str, fields: &Value) -> Response {
        let request = self.server.post("/api/agents/configs").bearer(&self.owner);
        request.json(&self.agent(agent_id, fields)).send()
    }

    /// Changes an agent as the owner.
    pub fn change(&self, agent_id: &str, fields: &Value) -> Response {
        self.on_agent("PATCH", agent_id).json(fields).send()
    }

    /// Deletes an agent as the owner.
    pub fn remove(&self, agent_id: &str) -> Response {
        self.on_agent("DELETE", agent_id).send()
    }

    /// Restores an agent as the owner.
    pub fn restore(&self, agent_id: &str) -> Response {
        let target = format!(
            "/api/agents/configs/restore?workspace_id={}&agent_id={agent_id}",
            self.id
        );
        self.server.post(target).bearer(&self.owner).send()
    }

    /// The list of agents, requested by the owner.
    pub fn list(&self) -> Response {
        self.list_request("").send().expect(200)
    }

    /// A request for the list with more parameters, such as `&limit=3`.
    pub fn list_request(&self, more: &str) -> Request {
        let target = format!("/api/agents/configs?workspace_id={}{more}", self.id);
        self.server.get(target).bearer(&self.owner)
    }

    /// The identifiers in the list of agents.
    pub fn agent_ids(&self) -> Vec<String> {
        let list = self.list().json();
        let ids = list
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| agent["agent_id"].as_str().unwrap().to_owned());
        ids.collect()
    }

    /// The audit log, newest entry first.
    pub fn audit(&self) -> Vec<Value> {
        self.audit_page(1000)
    }

    /// The newest entries of the audit log.
    pub fn audit_page(&self, limit: usize) -> Vec<Value> {
        let target = format!("/api/audit-log?workspace_id={}&limit={limit}", self.id);
        let log = self.server.get(target).bearer(&self.owner).send().expect(200).json();
        log.as_array().unwrap().clone()
    }
}
