//! Who makes a request.

use std::fmt;
use std::sync::Arc;

use super::{KeyFacts, Prefetch};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Permission, WorkspaceId};
use crate::token;

/// An API key or a user whose credential was good. See [`AgentCfg::authenticate`](crate::AgentCfg::authenticate).
///
/// It says who acts, not what that one may do: each method of the service decides on current records. Give it to the
/// service that made it, or to another one on the same store.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// assert_eq!(ada.user_id()?, "ada");
/// assert_eq!(format!("{ada:?}"), "Caller(user \"ada\")");
/// # Ok(()) }) }
/// ```
#[derive(Clone)]
pub struct Caller(pub(in crate::service) Kind);

#[derive(Clone)]
pub(in crate::service) enum Kind {
    ApiKey(ApiKeyCaller),
    User { user_id: Arc<str> },
}

#[derive(Clone)]
pub(in crate::service) struct ApiKeyCaller {
    pub(in crate::service) id: token::Id,
    /// What its record said on entry. Whether that still holds is the first question of every use.
    pub(in crate::service) facts: KeyFacts,
    pub(in crate::service) prefetch: Option<Arc<Prefetch>>,
}

impl Caller {
    pub(super) fn by_key(id: token::Id, facts: KeyFacts) -> Self {
        Self(Kind::ApiKey(ApiKeyCaller {
            id,
            facts,
            prefetch: None,
        }))
    }

    pub(super) fn user(user_id: &str) -> Self {
        Self(Kind::User {
            user_id: user_id.into(),
        })
    }

    /// Whether this caller could have the permission at all: an API key by the scope that it had on entry. A user's role
    /// depends on the workspace and is looked at when the workspace is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when an API key's scope lacks the permission.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // The role of a user is looked at in each call of the service.
    /// assert!(ada.could(Permission::AgentsConfigure).is_ok());
    /// # Ok(()) }) }
    /// ```
    pub fn could(&self, permission: Permission) -> Result<(), Error> {
        match &self.0 {
            Kind::ApiKey(ApiKeyCaller { facts, .. }) if !facts.permissions.contains(permission) => Err(Error::new(
                ErrorKind::Forbidden,
                format!("an API key of scope {} lacks the permission {permission}", facts.scope),
            )),
            Kind::ApiKey(_) | Kind::User { .. } => Ok(()),
        }
    }

    /// The user, when a session is required.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.user_id()?, "ada");
    /// # Ok(()) }) }
    /// ```
    pub fn user_id(&self) -> Result<&str, Error> {
        match &self.0 {
            Kind::User { user_id } => Ok(user_id),
            Kind::ApiKey(_) => Err(Error::new(
                ErrorKind::Forbidden,
                "this needs a session token, API keys cannot do it",
            )),
        }
    }

    /// The workspace of an API key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.key_workspace(), None, "a user may have many workspaces");
    /// # Ok(()) }) }
    /// ```
    pub fn key_workspace(&self) -> Option<WorkspaceId> {
        match &self.0 {
            Kind::ApiKey(key) => Some(key.facts.workspace_id),
            Kind::User { .. } => None,
        }
    }

    /// How the audit log names this caller.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.actor(), Actor { kind: ActorType::User, id: "ada".into() });
    /// # Ok(()) }) }
    /// ```
    pub fn actor(&self) -> Actor {
        match &self.0 {
            Kind::ApiKey(key) => Actor {
                kind: ActorType::ApiKey,
                id: key.id.as_str().to_owned(),
            },
            Kind::User { user_id } => Actor {
                kind: ActorType::User,
                id: user_id.to_string(),
            },
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::ApiKey(key) => write!(f, "Caller(API key {})", key.id.as_str()),
            Kind::User { user_id } => write!(f, "Caller(user {user_id:?})"),
        }
    }
}
