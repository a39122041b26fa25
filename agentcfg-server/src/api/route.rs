//! The route of an endpoint: its path and method, and what a request for it must bring.

use agentcfg_core::model::Permission;
use agentcfg_core::routing::Catalogue;

/// The address of an endpoint, and what a request for it must have.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method, as text. `HEAD` is answered wherever `GET` is and there is no prefix.
    pub method: &'static str,
    /// The exact path, unless there is a prefix; then names in braces stand for what follows the prefix.
    pub path: &'static str,
    /// The prefix of the path, where the rest of it is a parameter.
    pub prefix: Option<Prefix>,
    /// The credential and permission that a request must have.
    pub needs: Needs,
}

/// A prefix of paths whose rest is a parameter.
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    /// The prefix.
    pub text: &'static str,
    /// Whether the endpoint accepts this rest of the path, with the providers of this catalogue.
    pub accepts: fn(&str, &Catalogue) -> bool,
    /// An example of a path that matches.
    pub example: &'static str,
}

/// What a request must have before its query and its body are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No credential.
    Nothing,
    /// Any valid credential.
    Credential,
    /// Any valid credential as bearer. Cookies, and pages of other origins, are refused.
    Bearer,
    /// A session token; an API key is refused.
    Session,
    /// A session token, or a login code in the body.
    SessionOrCode,
    /// A credential that can have this permission. The permission of a session's user depends on the workspace and is
    /// decided by the service.
    Permission(Permission),
    /// A credential that can have this permission, or for a dry run `agents:read`.
    PermissionUnlessDryRun(Permission),
    /// A session token of a user who can have this permission.
    SessionWith(Permission),
    /// A session token. The endpoint checks the permission itself, because some requests do not need it. The text names
    /// those requests and ends a sentence of the description.
    SessionUnless(Permission, &'static str),
}

impl Needs {
    /// The permission that the endpoint requires, whether it is checked here or by the endpoint.
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Nothing | Self::Credential | Self::Bearer | Self::Session | Self::SessionOrCode => None,
            Self::Permission(permission)
            | Self::PermissionUnlessDryRun(permission)
            | Self::SessionWith(permission)
            | Self::SessionUnless(permission, _) => Some(permission),
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

    /// Matches all paths with this prefix whose rest is accepted.
    #[must_use]
    pub const fn below(self, prefix: Prefix) -> Self {
        Self {
            prefix: Some(prefix),
            ..self
        }
    }

    /// Whether it also answers `HEAD`. A path behind a prefix belongs to another service, for which `HEAD` has no use.
    pub fn answers_head(&self) -> bool {
        self.method == "GET" && self.prefix.is_none()
    }

    /// An example of a path of this route.
    pub fn example(&self) -> &'static str {
        self.prefix.map_or(self.path, |prefix| prefix.example)
    }
}
