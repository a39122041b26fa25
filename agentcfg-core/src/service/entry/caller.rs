//! The authenticated caller of a request.

use std::fmt;
use std::sync::Arc;

use super::{KeyFacts, Prefetch};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Permission, Timestamp, UserId, WorkspaceId};
use crate::token;

/// An API key or a user whose credential was verified. See [`AgentCfg::authenticate`](crate::AgentCfg::authenticate).
///
/// It identifies the caller and carries no permissions: each method of the service decides on current records. Give it to the
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
    User { user_id: UserId, session: UserSession },
}

#[derive(Clone)]
pub(in crate::service) struct ApiKeyCaller {
    pub(in crate::service) id: token::Id,
    /// The facts of its record on entry. Every use first checks whether they are still current.
    pub(in crate::service) facts: KeyFacts,
    pub(in crate::service) prefetch: Option<Arc<Prefetch>>,
}

/// The session of a user.
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct UserSession {
    /// When it ends; `None` for a user whom the embedding app has authenticated.
    pub(in crate::service) expires_at: Option<Timestamp>,
    /// The hash of the cookie, if it is a browser session.
    pub(in crate::service) browser: Option<Arc<str>>,
}

impl Caller {
    pub(super) fn by_key(id: token::Id, facts: KeyFacts) -> Self {
        Self(Kind::ApiKey(ApiKeyCaller {
            id,
            facts,
            prefetch: None,
        }))
    }

    pub(in crate::service) fn user(user_id: UserId, session: UserSession) -> Self {
        Self(Kind::User { user_id, session })
    }

    /// Whether this caller can have the permission: an API key by the scope that it had on entry. A user's role
    /// depends on the workspace and is checked when the workspace is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when an API key's scope lacks the permission.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // The role of a user is read in each call of the service.
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
    /// assert_eq!(ada.user_id()?.as_str(), "ada");
    /// # Ok(()) }) }
    /// ```
    pub fn user_id(&self) -> Result<&UserId, Error> {
        match &self.0 {
            Kind::User { user_id, .. } => Ok(user_id),
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

    /// When the session of a user ends; `None` for an API key, and for a user whom the embedding app has authenticated.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.expires_at(), None, "the example authenticated her itself");
    /// # Ok(()) }) }
    /// ```
    pub fn expires_at(&self) -> Option<Timestamp> {
        match &self.0 {
            Kind::ApiKey(_) => None,
            Kind::User { session, .. } => session.expires_at,
        }
    }

    /// The actor of this caller's changes, for the audit log.
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
            Kind::User { user_id, .. } => Actor {
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
            Kind::User { user_id, .. } => write!(f, "Caller(user {user_id:?})"),
        }
    }
}
