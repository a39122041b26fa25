//! The table of routes: every path, method and permission of the API in one place.

use agentcfg_core::model::Permission;
use hyper::Method;

use crate::api::model_calls::Target;

/// What a request must bring before anything of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No credential.
    Nothing,
    /// Any good credential.
    Credential,
    /// A session token; an API key is refused.
    Session,
    /// A credential that can have this permission. What a session's user may do depends on the
    /// workspace and is decided there.
    Permission(Permission),
    /// A session token of somebody who can have this permission.
    SessionWith(Permission),
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named after the operation of the core that it calls")]
pub enum Operation {
    ListAgents,
    CreateAgent,
    UpdateAgent,
    DeleteAgent,
    RestoreAgent,
    AgentStatus,
    ReportStatus,
    CreateWorkspace,
    ListWorkspaces,
    UpdateWorkspace,
    ListMembers,
    SetMember,
    RemoveMember,
    ListApiKeys,
    CreateApiKey,
    RevokeApiKey,
    ListModels,
    CallModel,
    ListProviderKeys,
    SaveProviderKey,
    DeleteProviderKey,
    AuditLog,
    OpenApi,
    Health,
    Ready,
}

/// What body a route reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// None.
    Nothing,
    /// JSON.
    Json,
    /// What a model provider is to get: longer, and JSON only where something is looked for in it.
    ModelCall,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method, as text. `HEAD` is answered wherever `GET` is.
    pub method: &'static str,
    /// The exact path, unless there is a prefix; then names in braces stand for what follows the prefix.
    pub path: &'static str,
    /// What the path begins with, where a caller chooses how it goes on.
    pub prefix: Option<&'static str>,
    /// What it does.
    pub operation: Operation,
    /// What a request must bring.
    pub needs: Needs,
    /// What body is read.
    pub content: Content,
}

impl Route {
    /// A path that a request for this route can have: its own, or one of those that a caller may choose.
    pub fn example(&self) -> &'static str {
        match self.prefix {
            None => self.path,
            Some(_) => "/api/agents/model-calls/openai/v1/chat/completions",
        }
    }

    fn fits(&self, path: &str) -> bool {
        match self.prefix {
            None => self.path == path,
            Some(_) => target(path).is_some(),
        }
    }
}

const fn get(path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method: "GET",
        path,
        prefix: None,
        operation,
        needs,
        content: Content::Nothing,
    }
}

const fn delete(path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method: "DELETE",
        path,
        prefix: None,
        operation,
        needs,
        content: Content::Nothing,
    }
}

const fn send(method: &'static str, path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method,
        path,
        prefix: None,
        operation,
        needs,
        content: Content::Json,
    }
}

use Needs::{Credential, Nothing, Permission as Needed, Session, SessionWith};
use Operation as O;
use Permission as P;

const MODEL_CALLS: &str = "/api/agents/model-calls/";
const CONFIGS: &str = "/api/agents/configs";
const RESTORE: &str = "/api/agents/configs/restore";
const STATUS: &str = "/api/agents/status";
const WORKSPACES: &str = "/api/workspaces";
const MEMBERS: &str = "/api/workspaces/members";
const API_KEYS: &str = "/api/api-keys";
const PROVIDER_KEYS: &str = "/api/provider-keys";

/// Every route.
pub const ROUTES: &[Route] = &[
    get(CONFIGS, O::ListAgents, Needed(P::AgentsRead)),
    send("POST", CONFIGS, O::CreateAgent, Needed(P::AgentsConfigure)),
    send("PATCH", CONFIGS, O::UpdateAgent, Needed(P::AgentsConfigure)),
    delete(CONFIGS, O::DeleteAgent, Needed(P::AgentsConfigure)),
    Route {
        content: Content::Nothing,
        ..send("POST", RESTORE, O::RestoreAgent, Needed(P::AgentsConfigure))
    },
    get(STATUS, O::AgentStatus, Needed(P::AgentsRead)),
    send("PUT", STATUS, O::ReportStatus, Needed(P::TasksUpdate)),
    send("POST", WORKSPACES, O::CreateWorkspace, Session),
    get(WORKSPACES, O::ListWorkspaces, Credential),
    send("PATCH", WORKSPACES, O::UpdateWorkspace, Session),
    get(MEMBERS, O::ListMembers, Needed(P::UsersRead)),
    send("PUT", MEMBERS, O::SetMember, SessionWith(P::MembersManage)),
    // Members may remove themselves, so the permission is asked for where the member is known.
    delete(MEMBERS, O::RemoveMember, Session),
    get(API_KEYS, O::ListApiKeys, Needed(P::ApiKeysRead)),
    send("POST", API_KEYS, O::CreateApiKey, SessionWith(P::ApiKeysManage)),
    delete(API_KEYS, O::RevokeApiKey, SessionWith(P::ApiKeysManage)),
    get("/api/models", O::ListModels, Needed(P::AgentsRead)),
    Route {
        prefix: Some(MODEL_CALLS),
        content: Content::ModelCall,
        ..send(
            "POST",
            "/api/agents/model-calls/{provider}/{path}",
            O::CallModel,
            Needed(P::ModelsInvoke),
        )
    },
    get(PROVIDER_KEYS, O::ListProviderKeys, Needed(P::SettingsRead)),
    send(
        "PUT",
        PROVIDER_KEYS,
        O::SaveProviderKey,
        SessionWith(P::ProviderKeysManage),
    ),
    delete(PROVIDER_KEYS, O::DeleteProviderKey, SessionWith(P::ProviderKeysManage)),
    get("/api/audit-log", O::AuditLog, Needed(P::AuditLogRead)),
    get("/openapi.json", O::OpenApi, Nothing),
    get("/healthz", O::Health, Nothing),
    get("/readyz", O::Ready, Nothing),
];

/// What the table says of a path and a method.
#[derive(Debug, Clone, Copy)]
pub enum Match {
    /// This route.
    Route(&'static Route),
    /// The path exists, with other methods.
    OtherMethods,
    /// Nothing has this path.
    Nothing,
}

/// The place at a provider that the path of a model call names; `None` for every other path.
pub fn target(path: &str) -> Option<Target<'_>> {
    path.strip_prefix(MODEL_CALLS).and_then(Target::parse)
}

/// Finds the route of a request.
pub fn find(method: &Method, path: &str) -> Match {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut found = Match::Nothing;
    for route in ROUTES.iter().filter(|route| route.fits(path)) {
        if route.method == method {
            return Match::Route(route);
        }
        found = Match::OtherMethods;
    }
    found
}

/// The methods of a path as the header `Allow` lists them.
pub fn allowed(path: &str) -> String {
    let mut methods = Vec::new();
    for route in ROUTES.iter().filter(|route| route.fits(path)) {
        methods.push(route.method);
        if route.method == "GET" {
            methods.push("HEAD");
        }
    }
    methods.join(", ")
}

/// The path of a route for a metric's label: what a client sends must not make new ones.
pub fn template(path: &str) -> &'static str {
    ROUTES
        .iter()
        .find(|route| route.fits(path))
        .map_or("none", |route| route.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_call_chooses_its_path() {
        let path = "/api/agents/model-calls/openai/v1/chat/completions";
        assert!(matches!(find(&Method::POST, path), Match::Route(route) if route.operation == O::CallModel));
        assert!(ROUTES.iter().all(|route| route.fits(route.example())));
        assert_eq!(template(path), "/api/agents/model-calls/{provider}/{path}");
        assert_eq!(allowed(path), "POST");
        assert!(matches!(find(&Method::GET, path), Match::OtherMethods));
        assert!(matches!(find(&Method::HEAD, path), Match::OtherMethods));
        for path in [
            "/api/agents/model-calls",
            "/api/agents/model-calls/",
            "/api/agents/model-calls/openai",
            "/api/agents/model-calls/openai/",
            "/api/agents/model-calls/{provider}/{path}",
            "/api/agents/model-calls/openai/{path}",
            "/api/agents/model-calls/google/v1/responses",
            "/api/agents/model-calls/openai/v1/../responses",
            "/api/agents/model-calls//openai/v1/responses",
        ] {
            assert!(matches!(find(&Method::POST, path), Match::Nothing), "{path}");
            assert_eq!(template(path), "none");
        }
    }

    #[test]
    fn paths_are_exact() {
        let found = |path| matches!(find(&Method::GET, path), Match::Route(_));
        assert!(found("/api/agents/configs"));
        for path in [
            "/api/agents/configs/",
            "//api/agents/configs",
            "/api/agents%2fconfigs",
            "/api/../healthz",
            "/",
            "",
        ] {
            assert!(!found(path), "{path}");
        }
    }

    #[test]
    fn head_is_where_get_is() {
        for route in ROUTES {
            let head = find(&Method::HEAD, route.path);
            let has_get = ROUTES
                .iter()
                .any(|other| other.path == route.path && other.method == "GET");
            assert_eq!(matches!(head, Match::Route(_)), has_get, "{}", route.path);
        }
        assert_eq!(allowed(STATUS), "GET, HEAD, PUT");
    }

    #[test]
    fn no_route_is_listed_twice() {
        let mut seen = std::collections::HashSet::new();
        assert!(ROUTES.iter().all(|route| seen.insert((route.method, route.path))));
    }
}
