//! Routing: from the path and the method of a request to its endpoint.

use std::sync::LazyLock;

use agentcfg_core::routing::Catalogue;
use hyper::Method;

use crate::api::endpoint::Definition;
use crate::api::endpoints;
use crate::api::route::{Prefix, Route};

/// The endpoints of one path.
#[derive(Debug)]
pub struct Resource {
    /// The path of their routes. It is the label in metrics, because clients must not be able to create new labels.
    pub template: &'static str,
    prefix: Option<Prefix>,
    endpoints: Vec<&'static Definition>,
    allowed: String,
}

impl Resource {
    /// The endpoint for a method.
    pub fn endpoint(&self, method: &Method) -> Option<&'static Definition> {
        let mut endpoints = self.endpoints.iter().copied();
        match *method == Method::HEAD {
            true => endpoints.find(|endpoint| endpoint.route.answers_head()),
            false => endpoints.find(|endpoint| endpoint.route.method == method.as_str()),
        }
    }

    /// The value of the header field `Allow`.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }

    fn add(&mut self, endpoint: &'static Definition) {
        if !self.allowed.is_empty() {
            self.allowed.push_str(", ");
        }
        self.allowed.push_str(endpoint.route.method);
        if endpoint.route.answers_head() {
            self.allowed.push_str(", HEAD");
        }
        self.endpoints.push(endpoint);
    }

    fn accepts(&self, path: &str, catalogue: &Catalogue) -> bool {
        match self.prefix {
            None => path == self.template,
            Some(prefix) => {
                let rest = path.strip_prefix(prefix.text);
                rest.is_some_and(|rest| (prefix.accepts)(rest, catalogue))
            }
        }
    }
}

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let mut resources: Vec<Resource> = Vec::new();
    for endpoint in endpoints::all() {
        let Route { path, prefix, .. } = endpoint.route;
        let known = resources.iter().position(|resource| resource.template == path);
        let at = known.unwrap_or_else(|| {
            resources.push(Resource {
                template: path,
                prefix,
                endpoints: Vec::new(),
                allowed: String::new(),
            });
            resources.len() - 1
        });
        resources[at].add(endpoint);
    }
    resources
});

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

/// The resource that a path names, if there is one.
pub fn find(path: &str, catalogue: &Catalogue) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.accepts(path, catalogue))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "/api/agents/model-calls/{provider}/{path}";
    const MODEL_CALL: &str = "/api/agents/model-calls/openai/v1/chat/completions";

    fn found(path: &str) -> Option<&'static Resource> {
        find(path, &Catalogue::default())
    }

    fn allowed(path: &str) -> &'static str {
        found(path).map_or("", Resource::allowed)
    }

    fn template(path: &str) -> Option<&'static str> {
        found(path).map(|resource| resource.template)
    }

    fn has(method: Method, path: &str) -> bool {
        found(path).is_some_and(|resource| resource.endpoint(&method).is_some())
    }

    #[test]
    fn a_model_call_chooses_its_path() {
        assert_eq!(template(MODEL_CALL), Some(CALL));
        assert_eq!(allowed(MODEL_CALL), "POST, GET, PUT, PATCH, DELETE");
        assert!(!has(Method::HEAD, MODEL_CALL));
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
        assert!(found("/api/agents/configs").is_some());
        for path in [
            "/api/agents/configs/",
            "/api/agents/config5",
            "//api/agents/configs",
            "/api/agents%2fconfigs",
            "/api/../healthz",
            "/",
            "",
        ] {
            assert!(found(path).is_none(), "{path}");
        }
    }

    #[test]
    fn each_endpoint_is_found_at_its_path_and_method() {
        for endpoint in endpoints::all() {
            let resource = found(endpoint.route.example()).unwrap();
            let method = Method::from_bytes(endpoint.route.method.as_bytes()).unwrap();
            let found = resource.endpoint(&method).unwrap();
            assert_eq!(found.doc.id, endpoint.doc.id);
            assert_eq!(resource.template, endpoint.route.path);
        }
    }

    #[test]
    fn head_is_where_get_is() {
        for endpoint in endpoints::all() {
            let path = endpoint.route.example();
            let expected = has(Method::GET, path) && path != MODEL_CALL;
            assert_eq!(has(Method::HEAD, path), expected, "{path}");
        }
        assert_eq!(allowed("/api/agents/status"), "GET, HEAD, PUT");
    }
}
