//! Who is calling: API keys and session tokens, decided anew on every request.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::AgentCfg;
use super::ahead::Ahead;
use super::schema::{self, StoredApiKey};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Permission, PermissionSet, Scope, WorkspaceId};
use crate::rate_limit::{RateDecision, Subject};
use crate::session::SessionError;
use crate::store::Record;
use crate::token;
use crate::validate::{self, Faults};

/// Decoded keys that are kept; each is good only while its version is the stored one.
const KNOWN_KEYS: u64 = 100_000;
/// What the table of them has room for at first; it grows with what comes.
const FIRST_KEYS: usize = 1024;

/// Someone whose credential was found good a moment ago.
#[derive(Clone)]
pub struct Caller(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    ApiKey {
        known: Arc<KnownKey>,
        permissions: PermissionSet,
        ahead: Option<Arc<Ahead>>,
    },
    User {
        user_id: Arc<str>,
    },
}

/// An API key's record, decoded, with what was learnt about it.
pub(super) struct KnownKey {
    pub(super) record: StoredApiKey,
    pub(super) version: u64,
    /// The fingerprint of the plaintext, once it was verified against the stored hash.
    verified: OnceLock<[u8; 32]>,
    /// When a use of the key was last noted, in milliseconds since the Unix epoch.
    pub(super) noted: AtomicI64,
}

/// What is remembered between requests to make the next check cheap. Nothing in here is believed
/// without a look at the key's current record.
pub(super) struct Authenticator {
    known: quick_cache::sync::Cache<Box<str>, Arc<KnownKey>>,
    /// How many hashes run at a time.
    hashing: Arc<Semaphore>,
}

impl Default for Authenticator {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            known: quick_cache::sync::Cache::with_weighter(FIRST_KEYS, KNOWN_KEYS, quick_cache::UnitWeighter),
            hashing: Arc::new(Semaphore::new(cores)),
        }
    }
}

impl Authenticator {
    /// The decoded record of a key at this version.
    fn recall(&self, key_id: &str, record: &Record) -> Result<Arc<KnownKey>, Error> {
        let cached = self.known.get(key_id);
        if let Some(known) = cached.as_ref().filter(|known| known.version == record.version) {
            return Ok(Arc::clone(known));
        }
        let stored: StoredApiKey = schema::decode(&schema::api_key(key_id), record)?;
        let verified = OnceLock::new();
        if let Some(fingerprint) = cached
            .filter(|old| old.record.hash == stored.hash)
            .and_then(|old| old.verified.get().copied())
        {
            let _ = verified.set(fingerprint);
        }
        let known = Arc::new(KnownKey {
            record: stored,
            version: record.version,
            verified,
            noted: AtomicI64::new(i64::MIN),
        });
        self.known.insert(key_id.into(), Arc::clone(&known));
        Ok(known)
    }

    /// The key behind a plaintext that was found right before, as it was then.
    pub(super) fn has_verified(&self, plaintext: &str) -> Option<Arc<KnownKey>> {
        if !plaintext.starts_with(token::MARK) {
            return None;
        }
        let known = self.known.get(token::parse(plaintext)?)?;
        let right = known.verified.get()?.ct_eq(&token::fingerprint(plaintext));
        bool::from(right).then_some(known)
    }

    /// Whether this is the key's plaintext. The slow hash runs on the first sight of a plaintext only,
    /// off the async threads and a few at a time.
    async fn is_plaintext_of(&self, plaintext: &str, known: &Arc<KnownKey>) -> Result<bool, Error> {
        let fingerprint = token::fingerprint(plaintext);
        if let Some(verified) = known.verified.get() {
            return Ok(verified.ct_eq(&fingerprint).into());
        }
        let plaintext = Zeroizing::new(plaintext.to_owned());
        let stored = Arc::clone(known);
        let right = self
            .hash(move || token::verify(&plaintext, &stored.record.hash))
            .await?;
        if right {
            let _ = known.verified.set(fingerprint);
        }
        Ok(right)
    }

    /// Runs a hash on a blocking thread when it is its turn.
    pub(super) async fn hash<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Internal, "the credential could not be hashed").because(error.to_string())
        };
        let turn = Arc::clone(&self.hashing)
            .acquire_owned()
            .await
            .map_err(|error| failed(&error))?;
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        })
        .await
        .map_err(|error| failed(&error))
    }
}

/// The one message for every credential that is not good, so that nothing is learnt from it.
fn unauthorized() -> Error {
    Error::new(ErrorKind::Unauthorized, "invalid credentials")
}

impl AgentCfg {
    /// Finds out who is behind a credential: an API key or a session token.
    ///
    /// An API key is held against its current record each time, so that revocation and expiry take
    /// effect at once. (Interface specification, *Authentication*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] with one same message for every credential that is not good;
    /// [`ErrorKind::Unavailable`] when that cannot be found out now.
    pub async fn authenticate(&self, credential: &str) -> Result<Caller, Error> {
        if credential.starts_with(token::MARK) {
            self.authenticate_key(credential).await
        } else {
            self.authenticate_session(credential).await
        }
    }

    async fn authenticate_key(&self, plaintext: &str) -> Result<Caller, Error> {
        let key_id = token::parse(plaintext).ok_or_else(unauthorized)?;
        let record = self.store().get(&[schema::api_key(key_id)]).await?.pop().flatten();
        self.caller_of_key(plaintext, key_id, record).await
    }

    /// The caller behind a plaintext, decided on the key's current record.
    pub(super) async fn caller_of_key(
        &self,
        plaintext: &str,
        key_id: &str,
        record: Option<Record>,
    ) -> Result<Caller, Error> {
        let record = record.ok_or_else(unauthorized)?;
        let known = self.inner.authenticator.recall(key_id, &record)?;
        let now = self.now();
        if !known.record.is_good(now) || !self.inner.authenticator.is_plaintext_of(plaintext, &known).await? {
            return Err(unauthorized());
        }
        self.inner.uses.note(&known, now);
        let mut permissions = known.record.scope.permissions();
        if known.record.scope == Scope::Write && !self.settings().write_scope_configures_agents {
            permissions = permissions.without(Permission::AgentsConfigure);
        }
        Ok(Caller(Kind::ApiKey {
            known,
            permissions,
            ahead: None,
        }))
    }

    async fn authenticate_session(&self, token: &str) -> Result<Caller, Error> {
        let session = self
            .inner
            .sessions
            .verify(token, self.now())
            .await
            .map_err(|error| match error {
                SessionError::Invalid(_) => unauthorized().because(error),
                SessionError::Unavailable(_) => Error::new(
                    ErrorKind::Unavailable,
                    "the identity provider is unavailable, try again",
                )
                .because(error),
            })?;
        self.trusted_user(&session.user_id)
            .map_err(|error| unauthorized().because(error))
    }

    /// The caller for a user whom the embedding app has authenticated by itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] when this cannot be a user's identifier.
    pub fn trusted_user(&self, user_id: &str) -> Result<Caller, Error> {
        let mut faults = Faults::default();
        validate::user_id(user_id, &mut faults);
        faults.into_result()?;
        Ok(Caller(Kind::User {
            user_id: user_id.into(),
        }))
    }

    /// Counts one request of this caller against the caller's limit.
    pub async fn admit(&self, caller: &Caller) -> RateDecision {
        let (subject, limit) = match &caller.0 {
            Kind::ApiKey { known, .. } => (Subject::ApiKey(&known.record.id), known.record.rate_limit),
            Kind::User { user_id } => (Subject::User(user_id), self.settings().session_rate_limit),
        };
        self.inner.limiter.hit(subject, limit, self.now()).await
    }
}

impl Caller {
    /// Whether this caller could have the permission at all: an API key by its scope. A user's role
    /// depends on the workspace and is looked at when the workspace is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when an API key's scope lacks the permission.
    pub fn could(&self, permission: Permission) -> Result<(), Error> {
        match &self.0 {
            Kind::ApiKey { permissions, known, .. } if !permissions.contains(permission) => Err(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "an API key of scope {} lacks the permission {permission}",
                    known.record.scope
                ),
            )),
            Kind::ApiKey { .. } | Kind::User { .. } => Ok(()),
        }
    }

    /// The user, when a session is required.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key.
    pub fn user_id(&self) -> Result<&str, Error> {
        match &self.0 {
            Kind::User { user_id } => Ok(user_id),
            Kind::ApiKey { .. } => Err(Error::new(
                ErrorKind::Forbidden,
                "this needs a session token, API keys cannot do it",
            )),
        }
    }

    /// The workspace of an API key.
    pub fn key_workspace(&self) -> Option<WorkspaceId> {
        match &self.0 {
            Kind::ApiKey { known, .. } => Some(known.record.workspace_id),
            Kind::User { .. } => None,
        }
    }

    /// How the audit log names this caller.
    pub fn actor(&self) -> Actor {
        match &self.0 {
            Kind::ApiKey { known, .. } => Actor {
                kind: ActorType::ApiKey,
                id: known.record.id.clone(),
            },
            Kind::User { user_id } => Actor {
                kind: ActorType::User,
                id: user_id.to_string(),
            },
        }
    }
}
