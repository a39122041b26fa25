//! Who is calling: API keys and session tokens, decided anew on every request.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::AgentCfg;
use super::ahead::Ahead;
use super::hashing::Hashing;
use super::schema::{self, StoredApiKey};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ActorType, Permission, PermissionSet, Scope, Timestamp, WorkspaceId};
use crate::rate_limit::{RateDecision, Subject, Tally};
use crate::session::SessionError;
use crate::store::{Record, Stamp};
use crate::token::{self, Fingerprint};
use crate::validate::{self, Faults};

/// Verified keys that are kept; each is good only while its version is the stored one.
const KNOWN_KEYS: u64 = 200_000;
/// What the table of them has room for at first; it grows with what comes.
const FIRST_KEYS: usize = 1024;
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

/// What matters of an API key's record at one version, once a plaintext was verified against it.
#[derive(Clone)]
pub(super) struct KnownKey {
    pub(super) version: u64,
    pub(super) workspace_id: WorkspaceId,
    /// In milliseconds since the Unix epoch, the greatest number for never; an option would take twice the room.
    expires_at: i64,
    pub(super) tally: Arc<Tally>,
    pub(super) permissions: PermissionSet,
    pub(super) rate_limit: u32,
    scope: Scope,
    /// Whether its requests are counted in the tally.
    counts_here: bool,
}

impl KnownKey {
    /// Whether the key opens anything at this time. It was not revoked at this version, or it would not be known.
    fn is_good(&self, now: Timestamp) -> bool {
        now.unix_millis() < self.expires_at
    }
}

/// A key that was verified, and how to know that its record is still the one that was read. It lies in the table as it
/// is, under its identifier, and is kept small, because each line of memory that a request has to look at costs it dearly
/// when the keys are many.
#[derive(Clone)]
struct Entry {
    key: KnownKey,
    fingerprint: Fingerprint,
    stamp: Option<Stamp>,
}

impl Entry {
    /// Whether a text with the key's identifier is its plaintext.
    fn is_of(&self, text: token::Parts<'_>) -> bool {
        self.fingerprint.ct_eq(&text.fingerprint()).into()
    }
}

/// What is remembered between requests to make the next check cheap. Nothing in here is believed
/// unless the key's record is known to be the current one.
pub(super) struct Authenticator {
    known: quick_cache::sync::Cache<token::Id, Entry>,
    /// The right text of a key at a version. Those who come with a new key at the same time wait for one check here.
    checked: quick_cache::sync::Cache<(token::Id, u64), Fingerprint>,
    pub(super) hashing: Hashing,
}

impl Default for Authenticator {
    fn default() -> Self {
        Self {
            known: quick_cache::sync::Cache::with_weighter(FIRST_KEYS, KNOWN_KEYS, quick_cache::UnitWeighter),
            checked: quick_cache::sync::Cache::new(CHECKED_KEYS),
            hashing: Hashing::default(),
        }
    }
}

impl Authenticator {
    /// The key behind a plaintext that was found right before, as it was then.
    pub(super) fn has_verified(&self, plaintext: &str) -> Option<(token::Id, KnownKey)> {
        let text = token::Parts::of(plaintext)?;
        let entry = self.known.get(&text.id())?;
        entry.is_of(text).then_some((text.id(), entry.key))
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
        if credential.starts_with(token::MARK) {
            self.authenticate_key(credential, now).await
        } else {
            Box::pin(self.authenticate_session(credential, now)).await
        }
    }

    async fn authenticate_key(&self, plaintext: &str, now: Timestamp) -> Result<Caller, Error> {
        let text = token::Parts::of(plaintext).ok_or_else(unauthorized)?;
        if let Some(entry) = self.inner.authenticator.known.get(&text.id())
            && entry.stamp.is_some_and(|stamp| self.store().is_current(stamp))
        {
            return self.caller_behind(entry, text, now);
        }
        // The rest is rare, and a future that holds it too would be moved about on every request.
        Box::pin(async move {
            let key_id = token::parse(plaintext).ok_or_else(unauthorized)?;
            let key = schema::api_key(key_id);
            let stamp = self.store().stamp(&key);
            let record = self.store().get(&[key]).await?.pop().flatten();
            self.caller_of_key(plaintext, record, stamp, now).await
        })
        .await
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
        let (id, known) = (text.id(), &self.inner.authenticator.known);
        let record = record.ok_or_else(unauthorized)?;
        if let Some(entry) = known.get(&id).filter(|entry| entry.key.version == record.version) {
            if stamp.is_some() {
                known.insert(id, Entry { stamp, ..entry.clone() });
            }
            return self.caller_behind(entry, text, now);
        }
        let stored: StoredApiKey = schema::decode(&schema::api_key(id.as_str()), &record)?;
        if !stored.is_good(now) {
            return Err(unauthorized());
        }
        let fingerprint = text.fingerprint();
        self.check_plaintext(plaintext, fingerprint, (id, record.version), &stored.hash)
            .await?;
        let mut permissions = stored.scope.permissions();
        if stored.scope == Scope::Write && !self.settings().write_scope_configures_agents {
            permissions = permissions.without(Permission::AgentsConfigure);
        }
        let tally = self.inner.limiter.tally(Subject::ApiKey(&stored.id), now);
        let key = KnownKey {
            version: record.version,
            workspace_id: stored.workspace_id,
            permissions,
            scope: stored.scope,
            rate_limit: stored.rate_limit,
            expires_at: stored.expires_at.map_or(i64::MAX, Timestamp::unix_millis),
            counts_here: tally.is_some(),
            tally: tally.unwrap_or_default(),
        };
        let entry = Entry {
            key,
            fingerprint,
            stamp,
        };
        known.insert(id, entry.clone());
        self.caller_behind(entry, text, now)
    }

    /// The caller behind a text with the identifier of a key whose record is current.
    fn caller_behind(&self, entry: Entry, text: token::Parts<'_>, now: Timestamp) -> Result<Caller, Error> {
        if !entry.is_of(text) || !entry.key.is_good(now) {
            return Err(unauthorized());
        }
        let id = text.id();
        self.inner.uses.note(&id, &entry.key.tally, now);
        Ok(Caller(Kind::ApiKey {
            id,
            known: entry.key,
            ahead: None,
        }))
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
        let (subject, limit) = match &caller.0 {
            Kind::ApiKey { id, known, .. } => {
                if known.counts_here {
                    return known.tally.window().hit(known.rate_limit, now);
                }
                (Subject::ApiKey(id.as_str()), known.rate_limit)
            }
            Kind::User { user_id } => (Subject::User(user_id), self.settings().session_rate_limit),
        };
        self.inner.limiter.hit(subject, limit, now).await
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
