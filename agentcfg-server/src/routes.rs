//! The table of routes: every path, method and permission of the API in one place.

use agentcfg_core::model::Permission;
use hyper::Method;

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
    ListProviderKeys,
    SaveProviderKey,
    DeleteProviderKey,
    AuditLog,
    OpenApi,
    Health,
    Ready,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method, as text. `HEAD` is answered wherever `GET` is.
    pub method: &'static str,
    /// The exact path.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
    /// What a request must bring.
    pub needs: Needs,
    /// Whether a JSON body is read.
    pub body: bool,
}

const fn get(path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method: "GET",
        path,
        operation,
        needs,
        body: false,
    }
}

const fn delete(path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method: "DELETE",
        path,
        operation,
        needs,
        body: false,
    }
}

const fn send(method: &'static str, path: &'static str, operation: Operation, needs: Needs) -> Route {
    Route {
        method,
        path,
        operation,
        needs,
        body: true,
    }
}

use Needs::{Credential, Nothing, Permission as Needed, Session, SessionWith};
use Operation as O;
use Permission as P;

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
        body: false,
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

/// Finds the route of a request.
pub fn find(method: &Method, path: &str) -> Match {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut found = Match::Nothing;
    for route in ROUTES.iter().filter(|route| route.path == path) {
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
    for route in ROUTES.iter().filter(|route| route.path == path) {
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
        .find(|route| route.path == path)
        .map_or("none", |route| route.path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
