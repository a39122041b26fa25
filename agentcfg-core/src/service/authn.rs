//! Who is calling: API keys and session tokens, decided anew on every request.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::ahead::Ahead;
use super::hashing::Hashing;
use super::known_keys::{KnownKey, KnownKeys, Slot, Verified};
use super::schema::{self, StoredApiKey};
use super::{AgentCfg, Counting};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Permission, Scope, Timestamp, WorkspaceId};
use crate::rate_limit::{RateDecision, Subject};
use crate::session::SessionError;
use crate::store::{Record, Stamp};
use crate::token::{self, Fingerprint};
use crate::validate::{self, Faults};

/// Keys whose slow check is under way or was done a moment ago.
const CHECKED_KEYS: usize = 256;

/// Someone whose credential was found good a moment ago.
#[derive(Clone)]
pub struct Caller(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    ApiKey {
        id: token::Id,
        known: KnownKey,
        ahead: Option<Arc<Ahead>>,
    },
    User {
        user_id: Arc<str>,
    },
}

impl Verified {
    /// Whether a text with the key's identifier is its plaintext, and the key opens anything at this time. It was not
    /// revoked at this version, or it would not be known.
    fn admits(&self, fingerprint: &Fingerprint, now: Timestamp) -> bool {
        let is_right: bool = self.fingerprint.ct_eq(fingerprint).into();
        is_right && now.unix_millis() < self.expires_at
    }
}

/// What is remembered between requests to make the next check cheap. Nothing in here is believed
/// unless the key's record is known to be the current one.
pub(super) struct Authenticator {
    pub(super) known: KnownKeys,
    /// The right text of a key at a version. Those who come with a new key at the same time wait for one check here.
    checked: quick_cache::sync::Cache<(token::Id, u64), Fingerprint>,
    pub(super) hashing: Hashing,
}

impl Default for Authenticator {
    fn default() -> Self {
        Self {
            known: KnownKeys::default(),
            checked: quick_cache::sync::Cache::new(CHECKED_KEYS),
            hashing: Hashing::default(),
        }
    }
}

impl Authenticator {
    /// The key behind a plaintext that was found right before, as it was then.
    pub(super) fn has_verified(&self, plaintext: &str) -> Option<(token::Id, KnownKey)> {
        let text = token::Parts::of(plaintext)?;
        let (id, fingerprint) = (text.id(), text.fingerprint());
        let key = self.known.look(&id, |slot| {
            let verified = slot.verified()?;
            bool::from(verified.fingerprint.ct_eq(&fingerprint)).then_some(verified.key)
        })?;
        key.map(|key| (id, key))
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
        self.authenticate_at(credential, self.now()).await
    }

    pub(super) async fn authenticate_at(&self, credential: &str, now: Timestamp) -> Result<Caller, Error> {
        self.authenticate_and(credential, now, |_, _| ())
            .await
            .map(|(caller, _)| caller)
    }

    /// Authenticates a credential. For an API key of which all is known, `also` is called with what is kept of it.
    pub(super) async fn authenticate_and<R>(
        &self,
        credential: &str,
        now: Timestamp,
        also: impl FnOnce(&KnownKey, &Slot) -> R,
    ) -> Result<(Caller, Option<R>), Error> {
        if !credential.starts_with(token::MARK) {
            let caller = Box::pin(self.authenticate_session(credential, now)).await?;
            return Ok((caller, None));
        }
        let text = token::Parts::of(credential).ok_or_else(unauthorized)?;
        if let Some(found) = self.known_caller(text, now, also) {
            return found.map(|(caller, also)| (caller, Some(also)));
        }
        // The rest is rare, and a future that holds it too would be moved about on every request.
        let caller = Box::pin(self.authenticate_key(credential, now)).await?;
        Ok((caller, None))
    }

    /// The caller behind a key, by its record as it is stored now.
    async fn authenticate_key(&self, plaintext: &str, now: Timestamp) -> Result<Caller, Error> {
        let key_id = token::parse(plaintext).ok_or_else(unauthorized)?;
        let key = schema::api_key(key_id);
        let stamp = self.store().stamp(&key);
        let record = self.store().get(&[key]).await?.pop().flatten();
        self.caller_of_key(plaintext, record, stamp, now).await
    }

    /// The caller behind a text of which all is known: its key was verified, and the key's record has not changed since.
    /// For a good one, `also` is called with what is kept of the key.
    fn known_caller<R>(
        &self,
        text: token::Parts<'_>,
        now: Timestamp,
        also: impl FnOnce(&KnownKey, &Slot) -> R,
    ) -> Option<Result<(Caller, R), Error>> {
        // Before the look, which should be short.
        let (id, fingerprint) = (text.id(), text.fingerprint());
        let Authenticator { known, .. } = &self.inner.authenticator;
        known.look(&id, |slot| {
            let verified = slot.verified()?;
            if !verified.stamp.is_some_and(|stamp| self.store().is_current(stamp)) {
                return None;
            }
            if !verified.admits(&fingerprint, now) {
                return Some(Err(unauthorized()));
            }
            self.inner.uses.note(&id, slot, now);
            let also = also(&verified.key, slot);
            Some(Ok((Caller::by_key(id, verified.key), also)))
        })?
    }

    /// The caller behind a plaintext of good form, decided on the key's current record. The stamp is older
    /// than the record.
    pub(super) async fn caller_of_key(
        &self,
        plaintext: &str,
        record: Option<Record>,
        stamp: Option<Stamp>,
        now: Timestamp,
    ) -> Result<Caller, Error> {
        let text = token::Parts::of(plaintext).ok_or_else(unauthorized)?;
        let (id, fingerprint) = (text.id(), text.fingerprint());
        let known = &self.inner.authenticator.known;
        let record = record.ok_or_else(unauthorized)?;
        let found = known.look(&id, |slot| slot.verified().copied()).flatten();
        let found = found.filter(|verified| verified.key.version == record.version);
        let verified = match found {
            Some(verified) => Verified { stamp, ..verified },
            None => {
                let stored: StoredApiKey = schema::decode(&schema::api_key(id.as_str()), &record)?;
                if !stored.is_good(now) {
                    return Err(unauthorized());
                }
                self.check_plaintext(plaintext, fingerprint, (id, record.version), &stored.hash)
                    .await?;
                self.verified(&stored, record.version, fingerprint, stamp)
            }
        };
        if found.is_none() || stamp.is_some() {
            known.remember(id, verified, now);
        }
        if !verified.admits(&fingerprint, now) {
            return Err(unauthorized());
        }
        known.look(&id, |slot| self.inner.uses.note(&id, slot, now));
        Ok(Caller::by_key(id, verified.key))
    }

    /// What is known of a key from its record, once the right plaintext was found.
    fn verified(
        &self,
        stored: &StoredApiKey,
        version: u64,
        fingerprint: Fingerprint,
        stamp: Option<Stamp>,
    ) -> Verified {
        let mut permissions = stored.scope.permissions();
        if stored.scope == Scope::Write && !self.settings().write_scope_configures_agents {
            permissions = permissions.without(Permission::AgentsConfigure);
        }
        Verified {
            key: KnownKey {
                version,
                workspace_id: stored.workspace_id,
                permissions,
                rate_limit: stored.rate_limit,
                scope: stored.scope,
            },
            expires_at: stored.expires_at.map_or(i64::MAX, Timestamp::unix_millis),
            stamp,
            fingerprint,
        }
    }

    /// Holds a plaintext against the hash of a key at a version. To find that it is right is slow, so that it runs off the
    /// async threads, a few at a time, and once for all who come with it meanwhile.
    async fn check_plaintext(
        &self,
        plaintext: &str,
        fingerprint: Fingerprint,
        key: (token::Id, u64),
        hash: &str,
    ) -> Result<(), Error> {
        if !token::fits(plaintext, hash) {
            return Err(unauthorized());
        }
        let Authenticator { checked, hashing, .. } = &self.inner.authenticator;
        let right = checked.get_or_insert_async(&key, async {
            let (plaintext, hash) = (Zeroizing::new(plaintext.to_owned()), hash.to_owned());
            let is_right = hashing.run(move || token::verify(&plaintext, &hash)).await?;
            is_right.then_some(fingerprint).ok_or_else(unauthorized)
        });
        let is_right: bool = right.await?.ct_eq(&fingerprint).into();
        is_right.then_some(()).ok_or_else(unauthorized)
    }

    async fn authenticate_session(&self, token: &str, now: Timestamp) -> Result<Caller, Error> {
        let session = self
            .inner
            .sessions
            .verify(token, now)
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
        self.admit_at(caller, self.now()).await
    }

    pub(super) async fn admit_at(&self, caller: &Caller, now: Timestamp) -> RateDecision {
        match &caller.0 {
            Kind::ApiKey { id, known, .. } => self.count_key(id, known.rate_limit, now).await,
            Kind::User { user_id } => {
                let limit = self.settings().session_rate_limit;
                match &self.inner.counting {
                    Counting::Here(users) => users.count(Subject::User(user_id), limit, now),
                    Counting::Elsewhere(limiter) => limiter.hit(Subject::User(user_id), limit, now).await,
                }
            }
        }
    }

    /// Counts one request of an API key.
    pub(super) async fn count_key(&self, id: &token::Id, limit: u32, now: Timestamp) -> RateDecision {
        match &self.inner.counting {
            Counting::Here(_) => self.inner.authenticator.known.count(id, limit, now),
            Counting::Elsewhere(limiter) => limiter.hit(Subject::ApiKey(id.as_str()), limit, now).await,
        }
    }
}

impl Caller {
    fn by_key(id: token::Id, known: KnownKey) -> Self {
        Self(Kind::ApiKey { id, known, ahead: None })
    }

    /// Whether this caller could have the permission at all: an API key by its scope. A user's role
    /// depends on the workspace and is looked at when the workspace is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] when an API key's scope lacks the permission.
    pub fn could(&self, permission: Permission) -> Result<(), Error> {
        match &self.0 {
            Kind::ApiKey { known, .. } if !known.permissions.contains(permission) => Err(Error::new(
                ErrorKind::Forbidden,
                format!("an API key of scope {} lacks the permission {permission}", known.scope),
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
            Kind::ApiKey { known, .. } => Some(known.workspace_id),
            Kind::User { .. } => None,
        }
    }

    /// How the audit log names this caller.
    pub fn actor(&self) -> Actor {
        match &self.0 {
            Kind::ApiKey { id, .. } => Actor {
                kind: ActorType::ApiKey,
                id: id.as_str().to_owned(),
            },
            Kind::User { user_id } => Actor {
                kind: ActorType::User,
                id: user_id.to_string(),
            },
        }
    }
}
