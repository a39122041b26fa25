//! OpenID Connect providers: tokens signed with keys that the provider publishes and changes.

mod keys;
mod schedule;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jsonwebtoken::Algorithm;
use tokio::sync::watch;

use self::keys::{KeySet, SignatureVerdict};
use self::schedule::{Reason, Schedule};
use super::jws::{Expected, Jws};
use super::{CookieLife, LEEWAY_SECONDS, Session, SessionError, SessionVerifier};
use crate::model::Timestamp;
use crate::sync::lock;

/// Fetches a provider's JWK set.
///
/// The core has no HTTP client; the server has an implementation, and an app can bring its own.
///
/// ```
/// use agentcfg_core::session::{FetchError, FetchJwks};
///
/// /// Reads the set from a file that another process keeps up to date.
/// struct File(std::path::PathBuf);
///
/// #[async_trait::async_trait]
/// impl FetchJwks for File {
///     async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
///         std::fs::read(&self.0).map_err(|error| FetchError(error.to_string()))
///     }
/// }
/// ```
#[async_trait]
pub trait FetchJwks: Send + Sync + 'static {
    /// The JSON text of the set as it is now.
    ///
    /// It must have a timeout of seconds: no other fetch starts before it has ended.
    ///
    /// # Errors
    ///
    /// When it cannot be fetched. Keys that were fetched before stay in use.
    ///
    /// ```no_run
    /// # async fn example(source: impl agentcfg_core::session::FetchJwks) -> Result<(), Box<dyn std::error::Error>> {
    /// let set = source.fetch().await?;
    /// println!("{}", String::from_utf8_lossy(&set));
    /// # Ok(())
    /// # }
    /// ```
    async fn fetch(&self) -> Result<Vec<u8>, FetchError>;
}

/// Why a key set could not be fetched; the text is for the log.
///
/// ```
/// use agentcfg_core::session::FetchError;
/// let failed = FetchError("the identity provider answered 502".into());
/// assert_eq!(failed.to_string(), "the identity provider answered 502");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Verifies the tokens of an OpenID Connect provider by the keys it publishes. Clones share the keys.
///
/// RS256, ES256 and EdDSA are accepted, and which of them is decided by the key alone. `iss`, `aud`
/// and `exp` must be present and valid.
///
/// Keys are fetched by tasks of their own, one at a time: when there are none yet, when they are ten
/// minutes old, and at most once in 30 seconds for a token that names an unknown key. A
/// fetch that fails leaves the keys as they are. Tokens by known keys never wait.
///
/// ```
/// use agentcfg_core::clock::{Clock, SystemClock};
/// use agentcfg_core::session::{FetchError, FetchJwks, JwksSessions, SessionError, SessionVerifier};
///
/// struct Pinned;
///
/// #[async_trait::async_trait]
/// impl FetchJwks for Pinned {
///     async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
///         let set = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1",
///             "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
///         Ok(set.into())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let sessions = JwksSessions::new("https://id.example.com", "agentcfg", Pinned);
/// assert!(sessions.ready().is_err());
/// sessions.refresh(SystemClock.now()).await;
/// assert!(sessions.ready().is_ok());
/// let forged = sessions.verify("a.b.c", SystemClock.now()).await;
/// assert!(matches!(forged, Err(SessionError::Invalid(_))));
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct JwksSessions {
    inner: Arc<Inner>,
}

impl fmt::Debug for JwksSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwksSessions")
            .field("issuer", &self.inner.issuer)
            .field("audience", &self.inner.audience)
            .finish_non_exhaustive()
    }
}

struct Inner {
    issuer: String,
    audience: String,
    source: Box<dyn FetchJwks>,
    schedule: Mutex<Schedule>,
    held: watch::Sender<Held>,
}

/// The keys, and the result of the last fetch.
#[derive(Debug, Clone, Default)]
struct Held {
    keys: Option<Arc<KeySet>>,
    /// When these keys were fetched.
    since: Option<Timestamp>,
    /// Whether the last fetch failed.
    failed: bool,
}

impl JwksSessions {
    /// A verifier of tokens that this issuer made for this audience.
    ///
    /// Nothing is fetched yet: the first token does that, or [`JwksSessions::refresh`].
    ///
    /// ```no_run
    /// # use agentcfg_core::session::FetchJwks;
    /// use agentcfg_core::session::JwksSessions;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # fn example(source: impl FetchJwks) {
    /// let sessions = JwksSessions::new("https://id.example.com", "agentcfg", source);
    /// let service = AgentCfg::builder(MemoryStore::new()).sessions(sessions).build();
    /// # }
    /// ```
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, source: impl FetchJwks) -> Self {
        Self {
            inner: Arc::new(Inner {
                issuer: issuer.into(),
                audience: audience.into(),
                source: Box::new(source),
                schedule: Mutex::default(),
                held: watch::Sender::default(),
            }),
        }
    }

    /// Fetches the keys when that is due, and waits for it.
    ///
    /// Call this periodically, so that removed keys are dropped in time even if no token comes.
    /// It must run on a tokio runtime, as verifying must.
    ///
    /// ```no_run
    /// # use agentcfg_core::session::JwksSessions;
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// # async fn example(sessions: JwksSessions) {
    /// sessions.refresh(SystemClock.now()).await;
    /// # }
    /// ```
    pub async fn refresh(&self, now: Timestamp) {
        let mut watched = self.inner.held.subscribe();
        let held = watched.borrow_and_update().clone();
        let reason = if held.keys.is_none() {
            Reason::NoKeys
        } else if held.is_stale(now) {
            Reason::OldKeys
        } else {
            return;
        };
        if self.fetch(reason, now) {
            let _ = watched.changed().await;
        }
    }

    /// Fetches the keys whether they are due or not, and waits for it: [`SessionVerifier::ready`] tells afterwards
    /// whether the provider could be reached.
    ///
    /// ```no_run
    /// # use agentcfg_core::session::JwksSessions;
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// use agentcfg_core::session::SessionVerifier;
    /// # async fn example(sessions: JwksSessions) {
    /// sessions.probe(SystemClock.now()).await;
    /// println!("{:?}", sessions.ready());
    /// # }
    /// ```
    pub async fn probe(&self, now: Timestamp) {
        let mut watched = self.inner.held.subscribe();
        if self.fetch(Reason::Probe, now) {
            let _ = watched.changed().await;
        }
    }

    /// Starts a fetch when it is due. Returns whether one is running now: the keys may change when it
    /// ends.
    ///
    /// It runs in a task of its own, so that it goes on when its caller is cancelled.
    fn fetch(&self, reason: Reason, now: Timestamp) -> bool {
        let mut schedule = lock(&self.inner.schedule);
        if schedule.start(reason, now) {
            let running = Running {
                inner: Arc::clone(&self.inner),
                now,
                result: Err(FetchError("it was interrupted".to_owned())),
            };
            tokio::spawn(async move {
                let mut running = running;
                running.result = running.inner.source.fetch().await;
            });
        }
        schedule.is_running()
    }

    async fn is_signed(&self, token: &Jws<'_>, algorithm: Algorithm, now: Timestamp) -> Result<(), SessionError> {
        // A fetch that was running already may have read the set too early, so a second one may follow.
        const ROUNDS: usize = 3;
        let mut watched = self.inner.held.subscribe();
        for round in 1..=ROUNDS {
            let held = watched.borrow_and_update().clone();
            let reason = match &held.keys {
                None => Reason::NoKeys,
                Some(keys) => match keys.judge(token, algorithm) {
                    SignatureVerdict::Good => {
                        if held.is_stale(now) {
                            self.fetch(Reason::OldKeys, now);
                        }
                        return Ok(());
                    }
                    SignatureVerdict::Bad => return Err(SessionError::Invalid("its signature is wrong")),
                    SignatureVerdict::Unknown => Reason::UnknownKey,
                },
            };
            // A fetch may also have ended since the keys were read.
            if round < ROUNDS && (self.fetch(reason, now) || watched.has_changed().unwrap_or(false)) {
                let _ = watched.changed().await;
                continue;
            }
            return Err(match reason {
                // The key may be a new one, and the provider cannot be reached.
                Reason::UnknownKey if held.failed => not_again(),
                Reason::UnknownKey => SessionError::Invalid("it is signed with no key of the identity provider"),
                Reason::NoKeys | Reason::OldKeys | Reason::Probe => no_keys(),
            });
        }
        Err(no_keys())
    }
}

impl Held {
    fn is_stale(&self, now: Timestamp) -> bool {
        self.since.is_none_or(|since| schedule::is_stale(since, now))
    }
}

fn not_again() -> SessionError {
    SessionError::Unavailable("its keys could not be fetched again".to_owned())
}

fn no_keys() -> SessionError {
    SessionError::Unavailable("no keys of the identity provider were fetched yet".to_owned())
}

#[async_trait]
impl SessionVerifier for JwksSessions {
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Session, SessionError> {
        let mut token = Jws::parse(token)?;
        let algorithm =
            keys::algorithm(&token.algorithm).ok_or(SessionError::Invalid("its algorithm is not accepted"))?;
        // Claims are checked first: a token that would be refused anyway must not cause a fetch.
        let expected = Expected {
            issuer: &self.inner.issuer,
            audience: &self.inner.audience,
            leeway_seconds: LEEWAY_SECONDS,
        };
        let session = token.session(&expected, now)?;
        self.is_signed(&token, algorithm, now).await?;
        Ok(session)
    }

    fn ready(&self) -> Result<(), SessionError> {
        match &*self.inner.held.borrow() {
            Held { keys: None, .. } => Err(no_keys()),
            Held { failed: true, .. } => Err(not_again()),
            _ => Ok(()),
        }
    }

    fn cookie_life(&self) -> CookieLife {
        CookieLife::Token
    }

    fn origin(&self) -> String {
        format!("{}\n{}", self.inner.issuer, self.inner.audience)
    }
}

/// A running fetch. Its end is signalled when this is dropped, so also when the fetch panics.
struct Running {
    inner: Arc<Inner>,
    now: Timestamp,
    result: Result<Vec<u8>, FetchError>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Ok(Vec::new()));
        let keys = result.map_err(|error| error.0).and_then(|text| KeySet::parse(&text));
        // Under the lock, so that no caller sees the fetch as ended before its outcome is stored.
        let mut schedule = lock(&self.inner.schedule);
        schedule.stop();
        self.inner.held.send_modify(|held| match keys {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "fetched the keys of the identity provider");
                if keys.is_empty() {
                    tracing::warn!("the identity provider publishes no key for RS256, ES256 or EdDSA");
                }
                *held = Held {
                    keys: (!keys.is_empty()).then(|| Arc::new(keys)),
                    since: Some(self.now),
                    failed: false,
                };
            }
            Err(why) => {
                tracing::warn!(why, "could not fetch the keys of the identity provider");
                held.failed = true;
            }
        });
    }
}
