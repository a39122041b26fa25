//! Entry: from the credential of a request to its caller.
//!
//! [`AgentCfg::enter`] is the whole sequence, for servers. [`AgentCfg::authenticate`] is the same without the rate
//! window.
//!
//! 1. **Read the credential.** A text that starts with `svc_` is an API key, any other is a session token, which the
//!    [`SessionVerifier`](crate::session::SessionVerifier) verifies. A malformed key costs no read.
//! 2. **Known key.** A key that was verified before is in the key table. If the validity stamp of its record is current, the
//!    table answers alone: fingerprint, expiry, rate window and last use, in one lookup ([`key_table`]).
//! 3. **Record.** Otherwise the record is read ([`verify`]). A key that is missing, revoked or expired is refused here.
//! 4. **Slow check.** A plaintext that was not verified against this version of the record is hashed: once for all requests
//!    that bring it at the same time (single-flight), on threads of their own ([`plaintext_check`]).
//! 5. **Last use.** It is noted in memory, and written periodically ([`last_use`]).
//! 6. **Rate window.** Only requests with a valid credential count.
//!
//! On a store that is a network away, steps 3 and 6 run at the same time for a key that was verified before, and the
//! records that the request is likely to need are prefetched ([`prefetch`]).
//!
//! A revocation takes effect at once. What a [`Caller`] may do is decided again in each method of the service, on the
//! current record ([`access`](super::access)).

mod caller;
mod hashing;
mod key_table;
pub(super) mod last_use;
mod plaintext_check;
mod prefetch;
#[cfg(test)]
mod tests;
mod verify;

use std::sync::Arc;

pub use self::caller::Caller;
pub(super) use self::caller::{ApiKeyCaller, CallerKind, KeyFacts, UserSession, lacks, lacks_scope, unauthorized};
use self::key_table::KeyLookup;
pub(super) use self::key_table::KeyTable;
pub(super) use self::last_use::LastUses;
pub(super) use self::plaintext_check::Plaintexts;
pub(super) use self::prefetch::Prefetch;
use self::prefetch::WorkspaceRecords;
use super::records;
use super::{AgentCfg, groups};
use crate::clock::Moment;
use crate::error::Error;
use crate::model::{RateStatus, UserId};
use crate::rate_limit::{MemoryLimiter, RateDecision, RateLimited, RateLimiter, Subject};
use crate::token::{self, Parts};

/// Where requests are counted in rate windows.
pub(super) enum RateCounting {
    /// In this process: requests of users in this limiter, requests of API keys in the key table.
    InProcess(MemoryLimiter),
    /// In a limiter of the embedding app, or in one that several servers share.
    External(Arc<dyn RateLimiter>),
}

/// An admitted request: its caller, and the figures of its rate window.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// # let new = NewApiKey::new(studio, "Nightly build", Environment::Production, Scope::Read).rate_limit(600);
/// # let key = service.create_api_key(&ada, new).await?.key;
/// let entry = service.enter(&key).await?;
/// assert_eq!(entry.caller.key_workspace(), Some(studio));
/// assert_eq!(entry.rate.remaining, 599);
/// # Ok(()) }) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The authenticated caller.
    pub caller: Caller,
    /// The window after this request was counted.
    pub rate: RateStatus,
}

impl Entry {
    /// Turns the decision of the rate window into an entry or its error.
    pub(super) fn admitted(caller: Caller, decision: RateDecision) -> Result<Self, EntryError> {
        match decision.into_result() {
            Ok(rate) => Ok(Self { caller, rate }),
            Err(limited) => Err(EntryError::RateLimited {
                limited,
                caller: Box::new(caller),
            }),
        }
    }
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
///     Err(EntryError::RateLimited { limited, .. }) => println!("again in {} s", limited.retry_after_seconds()),
///     Err(other) => println!("not admitted: {other}"),
/// }
/// # Ok(()) }) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The credential is not valid, or cannot be verified now. The request did not count.
    #[error(transparent)]
    Credential(#[from] Error),
    /// The credential is valid and its limit is used up.
    #[error("{limited}")]
    RateLimited {
        /// The figures of the window, and when the next request is admitted.
        limited: RateLimited,
        /// Whose limit it is.
        caller: Box<Caller>,
    },
}

impl AgentCfg {
    /// Admits a request: [authenticates](Self::authenticate) its credential and [counts](Self::admit) it. A server
    /// calls this once for each request.
    ///
    /// On a [shared store](crate::store::Store::is_shared) the first service method that is called with this caller,
    /// within a second, decides on the records that were read here; each further call reads again.
    ///
    /// ```
    /// use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Scope};
    /// use agentcfg_core::service::EntryError;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let new = NewApiKey::new(studio.id, "ci", Environment::Production, Scope::Read).rate_limit(1);
    /// let key = service.create_api_key(&ada, new).await?.key;
    ///
    /// let entry = service.enter(&key).await?;
    /// assert_eq!(entry.rate.remaining, 0);
    /// service.list_agents(&entry.caller, studio.id, &Default::default()).await?;
    /// match service.enter(&key).await {
    ///     Err(EntryError::RateLimited { limited, .. }) => assert_eq!(limited.retry_after_seconds(), 60),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EntryError::Credential`] as [`Self::authenticate`]; [`EntryError::RateLimited`] over the limit, with the
    /// figures to answer with.
    pub async fn enter(&self, credential: &str) -> Result<Entry, EntryError> {
        let at = self.moment();
        // Windows are in the key table unless requests are counted together with other servers.
        let is_counted_here = !self.store().is_shared() && matches!(self.inner.counting, RateCounting::InProcess(_));
        let known = match is_counted_here {
            true => self.known(self.inner.keys.enter(credential, at, &self.inner.stamps), at),
            false => None,
        };
        match known {
            Some(known) => known
                .map_err(EntryError::from)
                .and_then(|(caller, decision)| Entry::admitted(caller, decision)),
            // Rare. Boxed, so that the future of the fast path stays small: it is moved with the request.
            None => Box::pin(self.enter_by_store(credential, at)).await,
        }
    }

    /// Turns a hit of the key table into a caller, with its count, and notes the use; `None` when the table cannot
    /// answer.
    fn known<R>(&self, found: KeyLookup<R>, at: Moment) -> Option<Result<(Caller, R), Error>> {
        match found {
            KeyLookup::Good {
                id,
                facts,
                counted,
                note,
            } => {
                if note {
                    self.note_use(&id, at);
                }
                Some(Ok((Caller::by_key(id, facts), counted)))
            }
            KeyLookup::Refused => Some(Err(unauthorized())),
            KeyLookup::Unknown => None,
        }
    }

    /// [`Self::enter`] for a credential that the key table cannot answer for.
    async fn enter_by_store(&self, credential: &str, at: Moment) -> Result<Entry, EntryError> {
        if self.store().is_shared() {
            return self.enter_with_prefetch(credential, at).await;
        }
        let caller = self.identify(credential, at).await?;
        let decision = self.count(&caller, at).await;
        Entry::admitted(caller, decision)
    }

    /// [`Self::enter`] on a remote store: steps 3 and 6 at the same time.
    async fn enter_with_prefetch(&self, credential: &str, at: Moment) -> Result<Entry, EntryError> {
        let known = Parts::of(credential).and_then(|text| Some((text.id, self.inner.keys.verified(&text)?)));
        let (caller, decision, records) = match known {
            Some((id, facts)) => {
                let query = (
                    records::api_key(id.as_str()).encoded(),
                    records::revision(facts.workspace_id),
                    records::workspace_plan(facts.workspace_id).encoded(),
                );
                let (read, decision) = tokio::join!(self.read(query), self.count_key(&id, facts.rate_limit, at));
                let (record, revision, plan) = read?;
                let caller = self.check_record(credential, record, None, at).await?;
                let records = WorkspaceRecords {
                    revision: Some(revision),
                    plan,
                };
                (caller, decision, records)
            }
            None => {
                let caller = self.identify(credential, at).await?;
                let decision = self.count(&caller, at).await;
                (caller, decision, WorkspaceRecords::default())
            }
        };
        Entry::admitted(caller.with_prefetch(Prefetch::new(at, records)), decision)
    }

    /// Verifies a credential, an API key or a session token, and returns its caller.
    ///
    /// The caller may be kept. Each method that it is given to decides on the current state: calls with a revoked or
    /// expired key are refused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`](crate::ErrorKind::Unauthorized) with one same message for every credential that is
    /// not valid; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when it cannot be verified now.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # let new = NewApiKey::new(studio, "Nightly build", Environment::Production, Scope::Read);
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
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when this is not a valid user id.
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
        let user_id: UserId = user_id.parse()?;
        groups::require_user(&user_id)?;
        Ok(Caller::user(user_id, UserSession::default()))
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

    /// Steps 1 to 5 of the module's text: the credential.
    async fn identify(&self, credential: &str, at: Moment) -> Result<Caller, Error> {
        let known = self.inner.keys.authenticate(credential, at, &self.inner.stamps);
        match self.known(known, at) {
            Some(known) => known.map(|(caller, ())| caller),
            // Both are rare. Boxed, so that the future of the fast path stays small.
            None if credential.starts_with(token::MARK) => Box::pin(self.identify_by_record(credential, at)).await,
            None => Box::pin(self.identify_session(credential, at)).await,
        }
    }

    /// Step 6 of the module's text: the rate window.
    pub(super) async fn count(&self, caller: &Caller, at: Moment) -> RateDecision {
        match &caller.kind {
            CallerKind::ApiKey(key) => self.count_key(&key.id, key.facts.rate_limit, at).await,
            CallerKind::User { user_id, .. } => {
                let limit = self.settings().session_rate_limit;
                match &self.inner.counting {
                    RateCounting::InProcess(users) => users.count(Subject::User(user_id), limit, at),
                    RateCounting::External(limiter) => limiter.hit(Subject::User(user_id), limit, at).await,
                }
            }
        }
    }

    async fn count_key(&self, id: &token::Id, limit: u32, at: Moment) -> RateDecision {
        match &self.inner.counting {
            RateCounting::InProcess(_) => self.inner.keys.count(id, limit, at),
            RateCounting::External(limiter) => limiter.hit(Subject::ApiKey(id.as_str()), limit, at).await,
        }
    }

    pub(in crate::service) fn moment(&self) -> Moment {
        Moment::of(&*self.inner.clock)
    }
}
