//! For each route a request that succeeds with sufficient rights, also repeatedly.

use agentcfg_tests::harness::{Request, Response, Studio, unique};
use serde_json::{Value, json};

use super::credentials::Credential;

const ABSENT: &str = "018f2d7c-0000-7000-8000-000000000001";

/// The record that a request needs to succeed; it is created beforehand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Agent,
    /// An agent in a workspace with a key for a provider.
    CallingAgent,
    DeletedAgent,
    /// An agent with two versions.
    ChangedAgent,
    /// An agent with the label `live`.
    Label,
    Member,
    Key,
    ProviderKey,
    Webhook,
}

/// How to build the request of a route.
pub(super) struct Recipe {
    pub(super) method: &'static str,
    /// The path in the route table.
    name: &'static str,
    path: &'static str,
    before: Before,
    /// The query, with `{name}` placeholders that the place fills in.
    query: &'static str,
    /// The body, with the same placeholders.
    body: Option<&'static str>,
}

const fn plain(method: &'static str, path: &'static str, query: &'static str) -> Recipe {
    Recipe {
        method,
        name: path,
        path,
        before: Before::Nothing,
        query,
        body: None,
    }
}

const AGENT: &str = "workspace_id={workspace}&agent_id={item}";
const LABEL: &str = "workspace_id={workspace}&agent_id={item}&label=live";
const BUDGET: &str = "workspace_id={workspace}&scope=user&scope_id=mel&period=day";
const NO_BUDGET: &str = "workspace_id={workspace}&scope=user&scope_id=eve&period=day";
const MEMBER: &str = "workspace_id={workspace}&user_id={item}";
const PROVIDER: &str = "workspace_id={workspace}&provider=openai";
const WEBHOOK: &str = "webhook_id={item}";
const WORKSPACE: &str = "workspace_id={workspace}";

/// The recipe of a route, if there is one.
pub(super) fn recipe(method: &'static str, path: &'static str) -> Option<Recipe> {
    let with = |before, query, body| Recipe {
        before,
        body,
        ..plain(method, path, query)
    };
    Some(match (method, path) {
        (
            "GET",
            "/api/agents/configs"
            | "/api/agents/status"
            | "/api/agents/status/history"
            | "/api/agents/versions"
            | "/api/agents/labels"
            | "/api/workspaces/members"
            | "/api/api-keys"
            | "/api/audit-log"
            | "/api/usage"
            | "/api/usage/calls"
            | "/api/budgets"
            | "/api/webhooks",
        ) => with(Before::Nothing, WORKSPACE, None),
        ("PUT", "/api/budgets") => with(Before::Nothing, BUDGET, Some(r#"{"limit_usd": "1"}"#)),
        // There is none; 404 shows that the removal was permitted.
        ("DELETE", "/api/budgets") => with(Before::Nothing, NO_BUDGET, None),
        ("POST", "/api/budgets/settle") => with(Before::Nothing, WORKSPACE, None),
        ("GET", "/api/operator/workspaces") => with(Before::Nothing, "", None),
        ("GET" | "DELETE", "/api/operator/api-keys") => with(Before::Key, "key_id={item}", None),
        ("DELETE", "/api/operator/users") => with(Before::Member, "user_id={item}", None),
        ("GET", "/api/whoami" | "/api/workspaces" | "/openapi.json" | "/healthz" | "/readyz") => {
            with(Before::Nothing, "", None)
        }
        ("GET", "/api/changes") => with(Before::Nothing, "workspace_id={workspace}&after=now", None),
        ("POST", "/api/agents/configs") => with(
            Before::Nothing,
            "",
            Some(r#"{"workspace_id": "{workspace}", "agent_id": "{fresh}", "display_name": "x"}"#),
        ),
        ("PATCH", "/api/agents/configs") => with(Before::Agent, AGENT, Some(r#"{"role": "{fresh}"}"#)),
        ("DELETE", "/api/agents/configs") => with(Before::Agent, AGENT, None),
        ("POST", "/api/agents/configs/restore") => with(Before::DeletedAgent, AGENT, None),
        ("POST", "/api/agents/apply") => with(
            Before::Nothing,
            WORKSPACE,
            Some(r#"{"agents": [{"agent_id": "{fresh}", "display_name": "x"}]}"#),
        ),
        ("GET", "/api/agents/version") => with(Before::Agent, AGENT, None),
        ("GET", "/api/agents/diff") => with(Before::Agent, "workspace_id={workspace}&agent_id={item}&from=1", None),
        ("POST", "/api/agents/prompt") => with(Before::Agent, AGENT, Some("{}")),
        ("POST", "/api/agents/rollback") => with(Before::ChangedAgent, AGENT, Some(r#"{"version": 1}"#)),
        ("GET", "/api/agents/released" | "/api/agents/labels/history") => {
            with(Before::Nothing, "workspace_id={workspace}&label=live", None)
        }
        ("POST", "/api/agents/labels/restore") => {
            with(Before::Nothing, WORKSPACE, Some(r#"{"label": "live", "revision": 1}"#))
        }
        ("PUT", "/api/agents/labels") => with(Before::Agent, LABEL, Some(r#"{"version": 1}"#)),
        ("DELETE", "/api/agents/labels") => with(Before::Label, LABEL, None),
        ("POST", "/api/agents/labels/promote") => with(
            Before::Agent,
            WORKSPACE,
            Some(r#"{"from": "latest", "to": "live", "agent_ids": ["{item}"]}"#),
        ),
        ("PUT", "/api/agents/status") => with(Before::Agent, AGENT, Some(r#"{"status": "idle"}"#)),
        ("POST", "/api/workspaces") => with(Before::Nothing, "", Some(r#"{"name": "x"}"#)),
        ("PATCH", "/api/workspaces") => with(Before::Nothing, WORKSPACE, Some(r#"{"name": "{fresh}"}"#)),
        // The name is wrong, so that the workspace stays; 400 shows that the deletion was permitted.
        ("DELETE", "/api/workspaces") => with(Before::Nothing, "workspace_id={workspace}&confirm={fresh}", None),
        ("PUT", "/api/workspaces/members") => with(Before::Member, MEMBER, Some(r#"{"role": "member"}"#)),
        ("DELETE", "/api/workspaces/members") => with(Before::Member, MEMBER, None),
        ("POST", "/api/api-keys") => with(
            Before::Nothing,
            "",
            Some(r#"{"workspace_id": "{workspace}", "name": "x", "environment": "production", "scope": "read"}"#),
        ),
        // An unreachable provider is detected after all other checks, so 502 shows that the call was permitted.
        ("POST", "/api/agents/model-calls/{provider}/{path}") => Recipe {
            path: "/api/agents/model-calls/openai/v1/responses",
            name: path,
            ..with(Before::Agent, AGENT, Some(r#"{"model": "gpt-5.5"}"#))
        },
        // Of these, managed credentials pay for none.
        ("GET" | "PUT" | "PATCH" | "DELETE", "/api/agents/model-calls/{provider}/{path}") => Recipe {
            path: "/api/agents/model-calls/openai/v1/responses/r1",
            name: path,
            ..with(Before::CallingAgent, AGENT, None)
        },
        ("GET", "/api/models" | "/api/provider-keys" | "/api/workspaces/export") => {
            with(Before::Nothing, WORKSPACE, None)
        }
        ("PUT", "/api/provider-keys") => with(Before::Nothing, PROVIDER, Some(r#"{"api_key": "{fresh}"}"#)),
        // The provider cannot be reached, which the answer says.
        ("POST", "/api/provider-keys/test") => with(Before::ProviderKey, PROVIDER, None),
        ("DELETE", "/api/provider-keys") => with(Before::ProviderKey, PROVIDER, None),
        ("POST" | "DELETE", "/api/sessions") => with(Before::Nothing, "", None),
        ("POST", "/mcp") => with(
            Before::Nothing,
            "",
            Some(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#),
        ),
        ("POST", "/api/api-keys/rotate") => with(Before::Key, "key_id={item}", None),
        ("DELETE", "/api/api-keys") => with(Before::Key, "key_id={item}", None),
        ("POST", "/api/webhooks") => with(
            Before::Nothing,
            "",
            Some(r#"{"workspace_id": "{workspace}", "url": "https://localhost/"}"#),
        ),
        ("PATCH", "/api/webhooks") => with(Before::Webhook, WEBHOOK, Some(r#"{"description": "{fresh}"}"#)),
        ("DELETE", "/api/webhooks") | ("POST", "/api/webhooks/rotate-secret") => with(Before::Webhook, WEBHOOK, None),
        // The URL of the webhook leads nowhere, so nothing leaves the machine.
        ("POST", "/api/webhooks/test") => with(Before::Webhook, WEBHOOK, None),
        ("GET", "/api/webhooks/deliveries") => with(Before::Webhook, WEBHOOK, None),
        ("POST", "/api/webhooks/replay") => with(Before::Webhook, WEBHOOK, Some(r#"{"after": "start"}"#)),
        _ => return None,
    })
}

/// The place that a request acts in.
pub(super) struct Place<'a> {
    pub(super) name: &'static str,
    /// The workspace; an absent one has its own id on the server of `own`.
    studio: Studio<'a>,
    /// The identifier of the record that the request acts on.
    item: std::cell::RefCell<String>,
}

impl<'a> Place<'a> {
    pub(super) fn new(name: &'static str, own: &Studio<'a>, foreign: &Studio<'a>) -> Self {
        let studio = match name {
            "own" => own.clone(),
            "foreign" => foreign.clone(),
            _ => Studio {
                id: ABSENT.parse().unwrap(),
                ..own.clone()
            },
        };
        Self {
            name,
            studio,
            item: "nothing".to_owned().into(),
        }
    }

    /// The audit log of the workspace; `None` for an absent workspace.
    pub(super) fn audit_log(&self) -> Option<Vec<Value>> {
        (self.name != "absent").then(|| self.studio.audit())
    }
}

impl Recipe {
    /// The route as in the table.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.name)
    }

    /// Creates the record that the request acts on.
    pub(super) fn prepare(&self, place: &Place<'_>) {
        if place.name == "absent" {
            if self.before == Before::Webhook {
                ABSENT.clone_into(&mut place.item.borrow_mut());
            }
            return;
        }
        let (studio, item) = (&place.studio, unique("item"));
        *place.item.borrow_mut() = match self.before {
            Before::Nothing => item,
            Before::Agent => {
                studio.create(&item, &Value::Null).expect(201);
                item
            }
            Before::CallingAgent => {
                save_provider_key(studio, &item);
                studio.create(&item, &Value::Null).expect(201);
                item
            }
            Before::DeletedAgent => {
                studio.create(&item, &Value::Null).expect(201);
                studio.remove(&item).expect(200);
                item
            }
            Before::ChangedAgent => {
                studio.create(&item, &Value::Null).expect(201);
                studio.change(&item, &json!({"role": "second"})).expect(200);
                item
            }
            Before::Label => {
                studio.create(&item, &Value::Null).expect(201);
                let target = format!(
                    "/api/agents/labels?workspace_id={}&agent_id={item}&label=live",
                    studio.id
                );
                let request = studio.server.put(target).bearer(&studio.owner);
                request.json(&json!({"version": 1})).send().expect(200);
                item
            }
            Before::Member => {
                studio.set_member(&item, "viewer").expect(200);
                item
            }
            Before::Key => studio.key_with(&json!({})).id,
            Before::ProviderKey => {
                save_provider_key(studio, &item);
                item
            }
            Before::Webhook => webhook(studio),
        };
    }

    pub(super) fn send(&self, place: &Place<'_>, credential: &Credential) -> Response {
        self.send_as(self.method, place, credential)
    }

    /// Sends the request with another method.
    pub(super) fn send_as(&self, method: &str, place: &Place<'_>, credential: &Credential) -> Response {
        let fill = |template: &str| {
            template
                .replace("{workspace}", &place.studio.id.to_string())
                .replace("{item}", &place.item.borrow())
                .replace("{fresh}", &unique("fresh"))
        };
        let target = match self.query {
            "" => self.path.to_owned(),
            query => format!("{}?{}", self.path, fill(query)),
        };
        let mut request: Request = place.studio.server.request(method, target);
        if let Some(credential) = &credential.text {
            request = request.bearer(credential);
        }
        if let Some(body) = self.body {
            request = request.text(fill(body));
        }
        request.send()
    }
}

fn save_provider_key(studio: &Studio<'_>, key: &str) {
    let target = format!("/api/provider-keys?workspace_id={}&provider=openai", studio.id);
    let request = studio.server.put(target).bearer(&studio.owner);
    request.json(&json!({"api_key": key})).send().expect(200);
}

/// Creates a webhook that is sent nothing. Those that were there are deleted, so that the limit is not reached.
fn webhook(studio: &Studio<'_>) -> String {
    let target = format!("/api/webhooks?workspace_id={}", studio.id);
    let all = studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    for old in all.as_array().unwrap() {
        let target = format!("/api/webhooks?webhook_id={}", old["id"].as_str().unwrap());
        studio.server.delete(target).bearer(&studio.owner).send().expect(200);
    }
    studio.webhook("https://localhost/")["id"].as_str().unwrap().to_owned()
}
