//! Entry: from the credential of a request to its caller.
//!
//! [`AgentCfg::enter`] is the whole sequence, for servers. [`AgentCfg::authenticate`] is the same without the rate window.
//!
//! 1. **Read the credential.** A text that starts with `svc_` is an API key, any other is a session token, which the
//!    [`SessionVerifier`](crate::session::SessionVerifier) verifies. A malformed key costs no read.
//! 2. **Known key.** A key that was verified before is in the key table. If the validity stamp of its record is current, the
//!    table answers alone: fingerprint, expiry, rate window and last use, in one lookup ([`key_table`]).
//! 3. **Record.** Otherwise the record is read ([`verify`]). A key that is missing, revoked or expired is refused here.
//! 4. **Slow check.** A plaintext that was not verified against this version of the record is hashed: once for all requests
//!    that bring it at the same time (single-flight), on threads of their own ([`plaintext`]).
//! 5. **Rate window.** Only requests with a valid credential count.
//! 6. **Last use.** It is noted in memory, and written periodically ([`last_use`]).
//!
//! On a store that is a network away, steps 3 and 5 run at the same time for a key that was verified before, and the records
//! that the request is likely to need are prefetched ([`prefetch`]).
//!
//! A revocation takes effect at once. What a [`Caller`] may do is decided again in each method of the service, on the
//! current record ([`access`](super::access)).

mod hashing;
mod key_table;
pub(super) mod last_use;
mod plaintext;
mod prefetch;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::Arc;

use self::key_table::Known;
pub(super) use self::key_table::{KeyFacts, KeyTable};
pub(super) use self::last_use::LastUses;
pub(super) use self::plaintext::Plaintexts;
pub(super) use self::prefetch::Prefetch;
use super::{AgentCfg, Counting};
use crate::clock::Moment;
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Message, Permission, RateStatus, Timestamp, UserId, WorkspaceId};
use crate::rate_limit::{RateDecision, RateLimited, Subject};
use crate::token;

/// An admitted request: its caller, and the figures of its rate window.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// # let new = NewApiKey {
/// #     workspace_id: studio,
/// #     name: "Nightly build".into(),
/// #     environment: Environment::Production,
/// #     scope: Scope::Read,
/// #     expires_at: None,
/// #     rate_limit: Some(600),
/// # };
/// # let key = service.create_api_key(&ada, new).await?.key;
/// let entry = service.enter(&key).await?;
/// assert_eq!(entry.caller.key_workspace(), Some(studio));
/// assert_eq!(entry.rate.remaining, 599);
/// # Ok(()) }) }
/// ```
#[derive(Debug)]
pub struct Entry {
    /// The authenticated caller.
    pub caller: Caller,
    /// The window after this request was counted.
    pub rate: RateStatus,
}

/// Why a request is not admitted.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// use agentcfg_core::service::EntryError;
/// match service.enter("no credential").await {
///     Ok(entry) => println!("{:?} may go on", entry.caller),
///     Err(EntryError::Credential(error)) => println!("refused: {error}"),
///     Err(EntryError::RateLimited(limited)) => println!("again in {} s", limited.retry_after_seconds()),
/// }
/// # Ok(()) }) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The credential is not valid, or cannot be verified now. The request did not count.
    #[error(transparent)]
    Credential(#[from] Error),
    /// The credential is valid and its limit is used up.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
}

/// The one message for every credential that is not valid, so that an attacker learns nothing from it.
pub(super) fn unauthorized() -> Error {
    Error::new(ErrorKind::Unauthorized, "invalid credentials")
}

impl AgentCfg {
    /// Admits a request: [authenticates](Self::authenticate) its credential and [counts](Self::admit) it. A server
    /// calls this once for each request.
    ///
    /// On a [remote store](super::Builder::remote_store) the first service method that is called with this caller, within
    /// a second, decides on the records that were read here; each further call reads again.
    ///
    /// ```
    /// use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Scope};
    /// use agentcfg_core::service::EntryError;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
    /// let new = NewApiKey {
    ///     workspace_id: studio.id,
    ///     name: "ci".into(),
    ///     environment: Environment::Production,
    ///     scope: Scope::Read,
    ///     expires_at: None,
    ///     rate_limit: Some(1),
    /// };
    /// let key = service.create_api_key(&ada, new).await?.key;
    ///
    /// let entry = service.enter(&key).await?;
    /// assert_eq!(entry.rate.remaining, 0);
    /// service.list_agents(&entry.caller, studio.id, &Default::default()).await?;
    /// match service.enter(&key).await {
    ///     Err(EntryError::RateLimited(limited)) => assert_eq!(limited.retry_after_seconds(), 60),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EntryError::Credential`] as [`Self::authenticate`]; [`EntryError::RateLimited`] over the limit, with the figures
    /// to answer with.
    pub async fn enter(&self, credential: &str) -> Result<Entry, EntryError> {
        let at = self.moment();
        // Windows are in the key table unless requests are counted together with other servers.
        if !self.inner.remote_store && matches!(self.inner.counting, Counting::Here(_)) {
            match self.known_caller(credential, at, true) {
                Some(Ok((caller, Some(decision)))) => {
                    let rate = decision.into_result()?;
                    return Ok(Entry { caller, rate });
                }
                Some(Err(error)) => return Err(error.into()),
                Some(Ok((_, None))) | None => {}
            }
        }
        // Rare. Boxed, so that the future of the fast path stays small: it is moved with the request.
        Box::pin(self.enter_by_store(credential, at)).await
    }

    /// Steps 1, 2 and 6 for an API key that the table knows and whose record has not changed, and step 5 if the request
    /// counts; `None` for any other credential.
    fn known_caller(
        &self,
        credential: &str,
        at: Moment,
        counts: bool,
    ) -> Option<Result<(Caller, Option<RateDecision>), Error>> {
        match self.inner.keys.enter(credential, at, &self.inner.stamps, counts) {
            Known::Good { id, facts, rate, note } => {
                if note {
                    self.note_use(&id, at);
                }
                Some(Ok((Caller::by_key(id, facts), rate)))
            }
            Known::Refused => Some(Err(unauthorized())),
            Known::Unknown => None,
        }
    }

    async fn enter_by_store(&self, credential: &str, at: Moment) -> Result<Entry, EntryError> {
        if self.inner.remote_store {
            return self.enter_with_prefetch(credential, at).await;
        }
        let caller = self.identify(credential, at).await?;
        let rate = self.count(&caller, at).await.into_result()?;
        Ok(Entry { caller, rate })
    }

    /// Verifies a credential, an API key or a session token, and returns its caller.
    ///
    /// The caller may be kept. Each method that it is given to decides on the current state: calls with a revoked or expired
    /// key are refused. (Interface specification, *Authentication*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] with one same message for every credential that is not valid;
    /// [`ErrorKind::Unavailable`] when it cannot be verified now.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # let new = NewApiKey {
    /// #     workspace_id: studio,
    /// #     name: "Nightly build".into(),
    /// #     environment: Environment::Production,
    /// #     scope: Scope::Read,
    /// #     expires_at: None,
    /// #     rate_limit: None,
    /// # };
    /// # let key = service.create_api_key(&ada, new).await?.key;
    /// let caller = service.authenticate(&key).await?;
    /// service.list_agents(&caller, studio, &Default::default()).await?;
    /// assert!(service.authenticate("something else").await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn authenticate(&self, credential: &str) -> Result<Caller, Error> {
        self.identify(credential, self.moment()).await
    }

    /// The caller for a user whom the embedding app has authenticated.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] when this is not a valid user id.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let grace = service.trusted_user("grace@example.com")?;
    /// assert!(service.list_workspaces(&grace).await?.is_empty());
    /// assert!(service.trusted_user("").is_err());
    /// # Ok(()) }) }
    /// ```
    pub fn trusted_user(&self, user_id: &str) -> Result<Caller, Error> {
        Ok(Caller::user(user_id.parse()?, UserSession::default()))
    }

    /// Counts one request of this caller against the caller's limit, and returns the figures of the window.
    ///
    /// [`Self::enter`] has counted its request already.
    ///
    /// # Errors
    ///
    /// [`RateLimited`] over the limit, with the figures to answer with.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let rate = service.admit(&ada).await?;
    /// assert_eq!(rate.remaining, rate.limit - 1);
    /// # Ok(()) }) }
    /// ```
    pub async fn admit(&self, caller: &Caller) -> Result<RateStatus, RateLimited> {
        self.count(caller, self.moment()).await.into_result()
    }

    /// Steps 1 to 4 and 6.
    async fn identify(&self, credential: &str, at: Moment) -> Result<Caller, Error> {
        match self.known_caller(credential, at, false) {
            Some(known) => known.map(|(caller, _)| caller),
            // Both are rare. Boxed, so that the future of the fast path stays small.
            None if credential.starts_with(token::MARK) => Box::pin(self.identify_by_record(credential, at)).await,
            None => Box::pin(self.identify_session(credential, at)).await,
        }
    }

    /// Step 5.
    pub(super) async fn count(&self, caller: &Caller, at: Moment) -> RateDecision {
        match &caller.kind {
            Kind::ApiKey(key) => self.count_key(&key.id, key.facts.rate_limit, at).await,
            Kind::User { user_id, .. } => {
                let limit = self.settings().session_rate_limit;
                match &self.inner.counting {
                    Counting::Here(users) => users.count(Subject::User(user_id), limit, at),
                    Counting::Elsewhere(limiter) => limiter.hit(Subject::User(user_id), limit, at).await,
                }
            }
        }
    }

    async fn count_key(&self, id: &token::Id, limit: u32, at: Moment) -> RateDecision {
        match &self.inner.counting {
            Counting::Here(_) => self.inner.keys.count(id, limit, at),
            Counting::Elsewhere(limiter) => limiter.hit(Subject::ApiKey(id.as_str()), limit, at).await,
        }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment::of(&*self.inner.clock)
    }
}

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
pub struct Caller {
    pub(super) kind: Kind,
    /// The reason that this caller gives for changes.
    pub(super) message: Option<Message>,
}

#[derive(Clone)]
pub(super) enum Kind {
    ApiKey(ApiKeyCaller),
    User { user_id: UserId, session: UserSession },
}

#[derive(Clone)]
pub(super) struct ApiKeyCaller {
    pub(super) id: token::Id,
    /// The facts of its record on entry. Every use first checks whether they are still current.
    pub(super) facts: KeyFacts,
    pub(super) prefetch: Option<Arc<Prefetch>>,
}

/// The session of a user.
#[derive(Debug, Clone, Default)]
pub(super) struct UserSession {
    /// When it ends; `None` for a user whom the embedding app has authenticated.
    pub(super) expires_at: Option<Timestamp>,
    /// The hash of the cookie, if it is a browser session.
    pub(super) browser: Option<Arc<str>>,
}

impl Caller {
    fn by_key(id: token::Id, facts: KeyFacts) -> Self {
        let kind = Kind::ApiKey(ApiKeyCaller {
            id,
            facts,
            prefetch: None,
        });
        Self { kind, message: None }
    }

    pub(super) fn user(user_id: UserId, session: UserSession) -> Self {
        let kind = Kind::User { user_id, session };
        Self { kind, message: None }
    }

    /// The same caller with what was read on entry, if it is an API key.
    fn with_prefetch(mut self, prefetch: Arc<Prefetch>) -> Self {
        if let Kind::ApiKey(key) = &mut self.kind {
            key.prefetch = Some(prefetch);
        }
        self
    }

    /// The same caller, who gives this reason for a change: it is kept in the audit entry, and with the version if the
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
            kind: self.kind.clone(),
            message,
        }
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
        match &self.kind {
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
        match &self.kind {
            Kind::ApiKey(key) => Some(key.facts.workspace_id),
            Kind::User { .. } => None,
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
            Kind::ApiKey(key) => key.facts.expires_at(),
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
        match &self.kind {
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
        match &self.kind {
            Kind::ApiKey(key) => write!(f, "Caller(API key {})", key.id.as_str()),
            Kind::User { user_id, .. } => write!(f, "Caller(user {user_id:?})"),
        }
    }
}
