//! From the path and the method of a request to its endpoint.

use std::sync::LazyLock;

use agentcfg_core::model::Permission;
use hyper::Method;

use crate::api::endpoint::Definition;
use crate::api::endpoints;
use crate::api::model_calls::Target;

/// Where an endpoint is, and what a request for it must bring.
///
/// ```
/// let list = agentcfg_server::routes().find(|route| route.path == "/api/agents/configs" && route.method == "GET");
/// assert!(list.is_some());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method, as text. `HEAD` is answered wherever `GET` is.
    pub method: &'static str,
    /// The exact path, unless there is a prefix; then names in braces stand for what follows the prefix.
    pub path: &'static str,
    /// What the path begins with, where a caller chooses how it goes on.
    pub prefix: Option<Prefix>,
    /// What a request must bring.
    pub needs: Needs,
}

/// The beginning of paths that a caller chooses the rest of.
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    /// The beginning.
    pub text: &'static str,
    /// Whether the rest is one that the endpoint has.
    pub accepts: fn(&str) -> bool,
    /// A path that fits.
    pub example: &'static str,
}

/// What a request must bring before its query and its body are read.
///
/// ```
/// use agentcfg_server::{Needs, routes};
/// let open = routes().filter(|route| route.needs == Needs::Nothing);
/// for route in open {
///     println!("{} {}", route.method, route.path);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No credential.
    Nothing,
    /// Any good credential.
    Credential,
    /// A session token; an API key is refused.
    Session,
    /// A credential that can have this permission. What a session's user may do depends on the workspace and is
    /// decided there.
    Permission(Permission),
    /// A session token of a user who can have this permission.
    SessionWith(Permission),
    /// A session token. The endpoint asks for the permission itself, since there are requests that do without: these,
    /// as the rest of a sentence.
    SessionUnless(Permission, &'static str),
}

impl Needs {
    /// The permission that is asked for, here or by the endpoint.
    ///
    /// ```
    /// use agentcfg_core::model::Permission;
    /// use agentcfg_server::Needs;
    /// assert_eq!(Needs::Permission(Permission::AgentsRead).permission(), Some(Permission::AgentsRead));
    /// assert_eq!(Needs::Session.permission(), None);
    /// ```
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Nothing | Self::Credential | Self::Session => None,
            Self::Permission(permission) | Self::SessionWith(permission) | Self::SessionUnless(permission, _) => {
                Some(permission)
            }
        }
    }
}

impl Route {
    const fn new(method: &'static str, path: &'static str, needs: Needs) -> Self {
        Self {
            method,
            path,
            prefix: None,
            needs,
        }
    }

    /// `GET` of a path, and with it `HEAD`.
    pub const fn get(path: &'static str, needs: Needs) -> Self {
        Self::new("GET", path, needs)
    }

    /// `POST` to a path.
    pub const fn post(path: &'static str, needs: Needs) -> Self {
        Self::new("POST", path, needs)
    }

    /// `PUT` of a path.
    pub const fn put(path: &'static str, needs: Needs) -> Self {
        Self::new("PUT", path, needs)
    }

    /// `PATCH` of a path.
    pub const fn patch(path: &'static str, needs: Needs) -> Self {
        Self::new("PATCH", path, needs)
    }

    /// `DELETE` of a path.
    pub const fn delete(path: &'static str, needs: Needs) -> Self {
        Self::new("DELETE", path, needs)
    }

    /// Lets callers choose how the path goes on behind a prefix.
    #[must_use]
    pub const fn below(self, prefix: Prefix) -> Self {
        Self {
            prefix: Some(prefix),
            ..self
        }
    }

    /// A path that a request for this route can have: its own, or one of those that a caller may choose.
    ///
    /// ```
    /// for route in agentcfg_server::routes() {
    ///     println!("curl -X {} http://127.0.0.1:7420{}", route.method, route.example());
    /// }
    /// ```
    pub fn example(&self) -> &'static str {
        self.prefix.map_or(self.path, |prefix| prefix.example)
    }
}

/// The endpoints of one path.
#[derive(Debug)]
pub struct Place {
    /// The path of their routes: the label of metrics, since what a client sends must not make new ones.
    pub template: &'static str,
    prefix: Option<Prefix>,
    endpoints: Vec<&'static Definition>,
    allowed: String,
}

impl Place {
    /// The endpoint of a method.
    pub fn endpoint(&self, method: &Method) -> Option<&'static Definition> {
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        self.endpoints
            .iter()
            .copied()
            .find(|endpoint| endpoint.route.method == method)
    }

    /// The methods as the header `Allow` lists them.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }

    fn add(&mut self, endpoint: &'static Definition) {
        if !self.allowed.is_empty() {
            self.allowed.push_str(", ");
        }
        self.allowed.push_str(endpoint.route.method);
        if endpoint.route.method == "GET" {
            self.allowed.push_str(", HEAD");
        }
        self.endpoints.push(endpoint);
    }
}

/// All places, so arranged that one is found by a few comparisons however many there are.
struct Places {
    /// Exact paths by their length, which tells most of them apart.
    by_length: Vec<Vec<Place>>,
    prefixes: Vec<Place>,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let mut places = Places {
        by_length: Vec::new(),
        prefixes: Vec::new(),
    };
    for endpoint in endpoints::all() {
        places.group(&endpoint.route).add(endpoint);
    }
    places
});

impl Places {
    /// The place of a route, which is made when there is none yet.
    fn group(&mut self, route: &Route) -> &mut Place {
        let group = if route.prefix.is_some() {
            &mut self.prefixes
        } else {
            let length = route.path.len();
            if self.by_length.len() <= length {
                self.by_length.resize_with(length + 1, Vec::new);
            }
            &mut self.by_length[length]
        };
        let at = group.iter().position(|place| place.template == route.path);
        let at = at.unwrap_or_else(|| {
            group.push(Place {
                template: route.path,
                prefix: route.prefix,
                endpoints: Vec::new(),
                allowed: String::new(),
            });
            group.len() - 1
        });
        &mut group[at]
    }

    fn find(&self, path: &str) -> Option<&Place> {
        let group = self.by_length.get(path.len()).map(Vec::as_slice).unwrap_or_default();
        let exact = group.iter().find(|place| place.template == path);
        exact.or_else(|| self.prefixes.iter().find(|place| place.accepts(path)))
    }
}

impl Place {
    fn accepts(&self, path: &str) -> bool {
        self.prefix
            .is_some_and(|prefix| path.strip_prefix(prefix.text).is_some_and(prefix.accepts))
    }
}

/// The route of every endpoint.
///
/// ```
/// for route in agentcfg_server::routes() {
///     println!("{} {}", route.method, route.path);
/// }
/// ```
pub fn all() -> impl Iterator<Item = &'static Route> + Clone {
    endpoints::all().map(|endpoint| &endpoint.route)
}

/// The place that a path names, if there is one.
pub fn find(path: &str) -> Option<&'static Place> {
    PLACES.find(path)
}

/// Paths of model calls. What follows is a provider and a path there.
pub const MODEL_CALLS: Prefix = Prefix {
    text: "/api/agents/model-calls/",
    accepts: |rest| Target::parse(rest).is_some(),
    example: "/api/agents/model-calls/openai/v1/chat/completions",
};

/// The place at a provider that the path of a model call names; `None` for every other path.
pub fn target(path: &str) -> Option<Target<'_>> {
    path.strip_prefix(MODEL_CALLS.text).and_then(Target::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "/api/agents/model-calls/{provider}/{path}";

    fn allowed(path: &str) -> &'static str {
        find(path).map_or("", Place::allowed)
    }

    fn template(path: &str) -> Option<&'static str> {
        find(path).map(|place| place.template)
    }

    fn has(method: Method, path: &str) -> bool {
        find(path).is_some_and(|place| place.endpoint(&method).is_some())
    }

    #[test]
    fn a_model_call_chooses_its_path() {
        assert_eq!(template(MODEL_CALLS.example), Some(CALL));
        assert!(has(Method::POST, MODEL_CALLS.example));
        assert_eq!(allowed(MODEL_CALLS.example), "POST");
        assert!(!has(Method::GET, MODEL_CALLS.example));
        assert!(!has(Method::HEAD, MODEL_CALLS.example));
        for path in [
            "/api/agents/model-calls",
            "/api/agents/model-calls/",
            "/api/agents/model-calls/openai",
            "/api/agents/model-calls/openai/",
            CALL,
            "/api/agents/model-calls/openai/{path}",
            "/api/agents/model-calls/google/v1/responses",
            "/api/agents/model-calls/openai/v1/../responses",
            "/api/agents/model-calls//openai/v1/responses",
        ] {
            assert_eq!(template(path), None, "{path}");
        }
    }

    #[test]
    fn paths_are_exact() {
        assert!(find("/api/agents/configs").is_some());
        for path in [
            "/api/agents/configs/",
            "/api/agents/config5",
            "//api/agents/configs",
            "/api/agents%2fconfigs",
            "/api/../healthz",
            "/",
            "",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn each_endpoint_is_found_at_its_path_and_method() {
        for endpoint in endpoints::all() {
            let place = find(endpoint.route.example()).unwrap();
            let method = Method::from_bytes(endpoint.route.method.as_bytes()).unwrap();
            let found = place.endpoint(&method).unwrap();
            assert_eq!(found.doc.id, endpoint.doc.id);
            assert_eq!(place.template, endpoint.route.path);
        }
    }

    #[test]
    fn head_is_where_get_is() {
        for endpoint in endpoints::all() {
            let path = endpoint.route.example();
            assert_eq!(has(Method::HEAD, path), has(Method::GET, path), "{path}");
        }
        assert_eq!(allowed("/api/agents/status"), "GET, HEAD, PUT");
    }
}
