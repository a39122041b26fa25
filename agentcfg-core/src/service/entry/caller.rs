//! Callers: who sends a request, after its credential was verified, and the cached facts about an API key.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::prefetch::Prefetch;
use crate::error::{Error, ErrorKind};
use crate::model::{
    Actor, AgentId, Label, Message, Permission, PermissionSet, Scope, Timestamp, UserId, VersionSelector, WorkspaceId,
};
use crate::service::Settings;
use crate::service::key_limits::{KeyLimits, permissions_of};
use crate::service::records::{Profile, StoredApiKey};
use crate::store::{Stamp, Stamps};
use crate::token;

/// The one message for every credential that is not valid, so that an attacker learns nothing from it.
pub(in crate::service) fn unauthorized() -> Error {
    Error::new(ErrorKind::Unauthorized, "invalid credentials")
}

/// The refusal of an API key that lacks a permission. The reason is its scope, which has these permissions in this
/// deployment, or a limit of the key.
pub(in crate::service) fn lacks_scope(scope: Scope, granted: PermissionSet, permission: Permission) -> Error {
    match granted.contains(permission) {
        true => lacks("an API key that is limited to some permissions or agents", permission),
        false => lacks(format_args!("an API key of scope {scope}"), permission),
    }
}

/// The refusal of a caller that lacks a permission.
pub(in crate::service) fn lacks(who: impl fmt::Display, permission: Permission) -> Error {
    Error::new(ErrorKind::Forbidden, format!("{who} lacks the permission {permission}"))
}

/// An API key or a user whose credential was verified. See [`AgentCfg::authenticate`](crate::AgentCfg::authenticate).
///
/// It identifies the caller and carries no permissions: each method of the service decides on current records. Give it
/// to the service that made it, or to another one on the same store.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// assert_eq!(ada.user_id()?, "ada");
/// assert_eq!(format!("{ada:?}"), "Caller(user \"ada\")");
/// # Ok(()) }) }
/// ```
#[derive(Clone)]
pub struct Caller {
    pub(in crate::service) kind: CallerKind,
    /// The message for changes, which [`Caller::with_message`] sets.
    pub(in crate::service) message: Option<Message>,
    pub(in crate::service) request_id: Option<Arc<str>>,
}

#[derive(Clone)]
pub(in crate::service) enum CallerKind {
    ApiKey(ApiKeyCaller),
    User { user_id: UserId, session: UserSession },
}

#[derive(Clone)]
pub(in crate::service) struct ApiKeyCaller {
    pub(in crate::service) id: token::Id,
    /// The facts of the key's record on entry. Every use checks first whether they are still current.
    pub(in crate::service) facts: KeyFacts,
    pub(in crate::service) prefetch: Option<Arc<Prefetch>>,
}

/// The fields of an API key's record, at one version, that a request needs. A revoked key has none.
#[derive(Clone)]
pub(in crate::service) struct KeyFacts {
    pub(in crate::service) version: u64,
    pub(in crate::service) workspace_id: WorkspaceId,
    pub(in crate::service) permissions: PermissionSet,
    pub(in crate::service) rate_limit: u32,
    pub(in crate::service) scope: Scope,
    /// What the scope may do in this deployment.
    pub(in crate::service) granted: PermissionSet,
    pub(in crate::service) limits: KeyLimits,
    /// When the key expires, in milliseconds since the Unix epoch; `i64::MAX` for never. An `Option` would take twice
    /// the memory.
    expires_at: i64,
    /// The validity token: it tells without a read whether the record has changed.
    stamp: Option<Stamp>,
}

impl KeyFacts {
    /// The facts of a record that is not revoked. The stamp was taken before the record was read.
    pub(in crate::service) fn of(
        stored: &StoredApiKey,
        version: u64,
        stamp: Option<Stamp>,
        settings: &Settings,
    ) -> Self {
        let granted = settings.permissions_of(stored.scope);
        Self {
            version,
            workspace_id: stored.workspace_id,
            permissions: permissions_of(stored, granted),
            granted,
            limits: KeyLimits::of(stored),
            rate_limit: stored.rate_limit,
            scope: stored.scope,
            expires_at: stored.expires_at.map_or(i64::MAX, Timestamp::unix_millis),
            stamp,
        }
    }

    /// The same facts with a new stamp. The record of that version was read again after the stamp was taken.
    pub(super) fn with_stamp(self, stamp: Option<Stamp>) -> Self {
        Self { stamp, ..self }
    }

    /// Whether the record is still the one that these facts were read from.
    pub(in crate::service) fn are_current(&self, stamps: &Stamps) -> bool {
        self.stamp.is_some_and(|stamp| stamps.is_current(stamp))
    }

    /// When the key expires, if it does.
    pub(in crate::service) fn expires_at(&self) -> Option<Timestamp> {
        (self.expires_at != i64::MAX).then(|| Timestamp::from_unix_millis(self.expires_at))
    }

    /// Whether the key has expired. For keys without an expiry the clock is not read.
    pub(in crate::service) fn are_expired(&self, now: impl FnOnce() -> Timestamp) -> bool {
        self.expires_at != i64::MAX && now().unix_millis >= self.expires_at
    }
}

/// The session of a user.
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct UserSession {
    /// When it ends; `None` for a user whom the embedding app has authenticated.
    pub(in crate::service) expires_at: Option<Timestamp>,
    /// Until when requests are served: that is later than the end, where the clock of the provider is another one.
    pub(in crate::service) valid_until: Option<Timestamp>,
    /// The hash of the cookie, if it is a browser session.
    pub(in crate::service) browser: Option<Arc<str>>,
    /// The groups that the token names, as they stand among members.
    pub(in crate::service) groups: Arc<[UserId]>,
    /// How the token names the user to people, if it does.
    pub(in crate::service) profile: Option<Arc<Profile>>,
}

impl Caller {
    pub(super) fn by_key(id: token::Id, facts: KeyFacts) -> Self {
        let kind = CallerKind::ApiKey(ApiKeyCaller {
            id,
            facts,
            prefetch: None,
        });
        Self {
            kind,
            message: None,
            request_id: None,
        }
    }

    pub(in crate::service) fn user(user_id: UserId, session: UserSession) -> Self {
        let kind = CallerKind::User { user_id, session };
        Self {
            kind,
            message: None,
            request_id: None,
        }
    }

    /// Adds the records that were prefetched on entry, if the caller is an API key.
    pub(super) fn with_prefetch(mut self, prefetch: Arc<Prefetch>) -> Self {
        if let CallerKind::ApiKey(key) = &mut self.kind {
            key.prefetch = Some(prefetch);
        }
        self
    }

    /// The same caller with a message for its next change: the audit entry keeps it, and so does the version if the
    /// change makes one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let ada = ada.with_message(Some("Not needed any more".parse()?));
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// let entry = service.audit_log(&ada, studio, 0, 1).await?.remove(0);
    /// assert_eq!(entry.message.unwrap(), "Not needed any more");
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn with_message(&self, message: Option<Message>) -> Self {
        Self {
            message,
            ..self.clone()
        }
    }

    /// The same caller with the identifier of a request, which the audit entries of its changes keep: in
    /// `agentcfg-server` the `X-Request-Id`, which finds the line of the access log.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let ada = ada.with_request_id("job-118");
    /// service.delete_agent(&ada, Some(studio), "writer", &Precondition::None).await?;
    /// let entry = service.audit_log(&ada, studio, 0, 1).await?.remove(0);
    /// assert_eq!(entry.request_id.as_deref(), Some("job-118"));
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn with_request_id(self, id: &str) -> Self {
        Self {
            request_id: Some(id.into()),
            ..self
        }
    }

    /// The same user with the `name` and the `email` of these claims, where the session token has none: those of an ID
    /// token of the user, of which [`AgentCfg::open_browser_session`](crate::AgentCfg::open_browser_session) keeps them
    /// for the list of members.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let claims = serde_json::json!({"sub": "ada", "name": "Ada Lovelace"});
    /// let ada = ada.with_profile(claims.as_object().unwrap());
    /// assert_eq!(ada.user_id()?, "ada");
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn with_profile(&self, claims: &Map<String, Value>) -> Self {
        let mut caller = self.clone();
        if let CallerKind::User { session, .. } = &mut caller.kind {
            let (own, other) = (
                session.profile.as_deref().cloned().unwrap_or_default(),
                Profile::of_claims(claims),
            );
            session.profile = Some(Arc::new(Profile {
                name: own.name.or(other.name),
                email: own.email.or(other.email),
            }));
        }
        caller
    }

    /// Refuses an API key whose scope, as it was on entry, lacks the permission. A user is never refused here: the role
    /// depends on the workspace.
    ///
    /// It costs no read, so that a server can refuse early, before it reads a body. It grants nothing:
    /// [`AgentCfg::authorize`](crate::AgentCfg::authorize) decides.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when an API key's scope lacks the permission.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let eve = service.trusted_user("eve")?;
    /// assert!(eve.check_scope(Permission::AgentsConfigure).is_ok(), "she has no scope that could lack it");
    /// assert!(service.authorize(&eve, studio, Permission::AgentsConfigure).await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub fn check_scope(&self, permission: Permission) -> Result<(), Error> {
        match &self.kind {
            CallerKind::ApiKey(ApiKeyCaller { facts, .. }) if !facts.permissions.contains(permission) => {
                Err(lacks_scope(facts.scope, facts.granted, permission))
            }
            CallerKind::ApiKey(_) | CallerKind::User { .. } => Ok(()),
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
        match &self.kind {
            CallerKind::User { user_id, .. } => Ok(user_id),
            CallerKind::ApiKey(_) => Err(Error::new(
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
        match &self.kind {
            CallerKind::ApiKey(key) => Some(key.facts.workspace_id),
            CallerKind::User { .. } => None,
        }
    }

    /// The agent of an API key that is limited to exactly one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let new = NewApiKey::new(studio, "Writer", Environment::Production, Scope::Write).agents(vec!["writer".parse()?]);
    /// let key = service.create_api_key(&ada, new).await?.key;
    /// assert_eq!(service.authenticate(&key).await?.only_agent().unwrap(), "writer");
    /// assert_eq!(ada.only_agent(), None);
    /// # Ok(()) }) }
    /// ```
    pub fn only_agent(&self) -> Option<&AgentId> {
        let agents = self.limits()?.agents()?;
        agents.first().filter(|_| agents.len() == 1)
    }

    /// Refuses an API key that is limited to other agents than this one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) where the key is limited and this agent is not listed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let new = NewApiKey::new(studio, "Writer", Environment::Production, Scope::Write).agents(vec!["writer".parse()?]);
    /// let writer = service.authenticate(&service.create_api_key(&ada, new).await?.key).await?;
    /// assert!(writer.may_name("writer").is_ok() && writer.may_name("editor").is_err());
    /// assert!(ada.may_name("editor").is_ok(), "a user is not limited");
    /// # Ok(()) }) }
    /// ```
    pub fn may_name(&self, agent_id: &str) -> Result<(), Error> {
        self.limits().map_or(Ok(()), |limits| limits.require_agent(agent_id))
    }

    /// The label that an API key is pinned to: it selects the version of model calls, prompts and releases.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let label: Label = "production".parse()?;
    /// let new = NewApiKey::new(studio, "Reader", Environment::Production, Scope::Read).label(label.clone());
    /// let key = service.create_api_key(&ada, new).await?.key;
    /// assert_eq!(service.authenticate(&key).await?.pinned_label(), Some(&label));
    /// assert_eq!(ada.pinned_label(), None);
    /// # Ok(()) }) }
    /// ```
    pub fn pinned_label(&self) -> Option<&Label> {
        self.limits()?.label()
    }

    /// The version that a reader of released texts gets: the selected one, or that at the label which an API key is
    /// pinned to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) for another selection than the pinned label.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.select_version(VersionSelector::Current)?, VersionSelector::Current);
    /// let new = NewApiKey::new(studio, "Reader", Environment::Production, Scope::Read).label("production".parse::<Label>()?);
    /// let reader = service.authenticate(&service.create_api_key(&ada, new).await?.key).await?;
    /// assert_eq!(reader.select_version(VersionSelector::Current)?, VersionSelector::Label("production"));
    /// assert!(reader.select_version(VersionSelector::Label("staging")).is_err());
    /// # Ok(()) }) }
    /// ```
    pub fn select_version<'a>(&'a self, selector: VersionSelector<'a>) -> Result<VersionSelector<'a>, Error> {
        self.limits().map_or(Ok(selector), |limits| limits.select(selector))
    }

    fn limits(&self) -> Option<&KeyLimits> {
        match &self.kind {
            CallerKind::ApiKey(key) => Some(&key.facts.limits),
            CallerKind::User { .. } => None,
        }
    }

    /// When the credential expires; `None` for a key without an expiry, and for a user whom the embedding app has
    /// authenticated.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.expires_at(), None, "the example authenticated her itself");
    /// # Ok(()) }) }
    /// ```
    pub fn expires_at(&self) -> Option<Timestamp> {
        match &self.kind {
            CallerKind::ApiKey(key) => key.facts.expires_at(),
            CallerKind::User { session, .. } => session.expires_at,
        }
    }

    /// Until when requests of this caller are served.
    pub(in crate::service) fn valid_until(&self) -> Option<Timestamp> {
        match &self.kind {
            CallerKind::ApiKey(key) => key.facts.expires_at(),
            CallerKind::User { session, .. } => session.valid_until,
        }
    }

    /// The hash of the cookie, for a caller who came with a browser session.
    pub(in crate::service) fn browser_session(&self) -> Option<&Arc<str>> {
        match &self.kind {
            CallerKind::ApiKey(_) => None,
            CallerKind::User { session, .. } => session.browser.as_ref(),
        }
    }

    /// The actor of this caller's changes, for the audit log.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(ada.actor().kind, ActorType::User);
    /// # Ok(()) }) }
    /// ```
    pub fn actor(&self) -> Actor {
        match &self.kind {
            CallerKind::ApiKey(key) => Actor::api_key(key.id.as_str()),
            CallerKind::User { user_id, .. } => Actor::user(user_id.as_str()),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CallerKind::ApiKey(key) => write!(f, "Caller(API key {})", key.id.as_str()),
            CallerKind::User { user_id, .. } => write!(f, "Caller(user {user_id:?})"),
        }
    }
}
