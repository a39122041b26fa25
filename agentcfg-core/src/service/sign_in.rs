//! Browser sessions: a cookie in place of a session token, and login codes that open one.
//!
//! The cookie and the code are random texts of which the store keeps hashes only. A session of the local identity
//! provider ends after 24 hours, or 8 hours without a request; one of another provider ends with its token, or is
//! renewed ([`super::renewal`]).
//!
//! Sessions and codes belong to a user, not to a workspace, so no audit log records them.

use std::fmt;
use std::sync::Arc;

use base64ct::{Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::entry::{CallerKind, EntryError, UserSession, unauthorized};
use super::records::{self, Outcome, Profile, Stored, StoredBrowserSession, StoredLoginCode, Transaction};
use super::{AgentCfg, Caller, Entry, Settings, groups};
use crate::clock::{DAY, HOUR, MINUTE, Moment, SECOND};
use crate::error::{Error, ErrorKind};
use crate::model::{Timestamp, UserId};
use crate::session::{CookieLife, SessionVerifier};
use crate::token;

/// Characters of a cookie: 256 bits.
const COOKIE: usize = 43;
/// Random characters at the beginning of a login code: 142 bits. The user's id follows, so that a page can name the
/// user before it redeems the code.
const CODE: usize = 24;

/// The longest life of a session that the local identity provider opened.
const LONGEST: i64 = DAY;
/// How long such a session may go without a request.
const IDLE: i64 = 8 * HOUR;

/// Seconds that a login code is valid.
///
/// ```
/// assert_eq!(agentcfg_core::service::LOGIN_CODE_SECONDS, 300);
/// ```
pub const LOGIN_CODE_SECONDS: u32 = 300;

/// A new browser session.
#[non_exhaustive]
pub struct BrowserSession {
    /// The secret that the cookie holds. The store has its hash alone.
    pub cookie: Zeroizing<String>,
    /// The user who is signed in.
    pub user_id: UserId,
    /// When the session ends at the latest.
    pub expires_at: Timestamp,
    /// Seconds from now to that end.
    pub seconds: i64,
}

/// A text that signs a user in once.
#[non_exhaustive]
pub struct LoginCode {
    /// The code: a random text, `-`, and the id of the user in the URL-safe form of base64. The store has its hash
    /// alone.
    pub code: Zeroizing<String>,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl fmt::Debug for BrowserSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserSession")
            .field("cookie", &"[redacted]")
            .field("user_id", &self.user_id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LoginCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginCode")
            .field("code", &"[redacted]")
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

impl AgentCfg {
    /// Opens a browser session for the user of a session token.
    ///
    /// The caller is the one that [`Self::enter`] made of the token.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key; [`ErrorKind::NotConfigured`] when the token must be kept sealed and
    /// there is no master key.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::{Clock, SystemClock};
    /// use agentcfg_core::session::LocalSessions;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let sessions = Arc::new(LocalSessions::new(&[7; 32])?);
    /// let token = sessions.issue("ada", 3600, SystemClock.now())?;
    /// let service = AgentCfg::builder(MemoryStore::new()).sessions(sessions).build();
    ///
    /// let caller = service.enter(&token).await?.caller;
    /// let session = service.open_browser_session(&caller, &token).await?;
    /// let entry = service.enter_browser_session(&session.cookie).await?;
    /// assert_eq!(*entry.caller.user_id()?, "ada");
    ///
    /// service.close_browser_session(&entry.caller).await?;
    /// assert!(service.enter_browser_session(&session.cookie).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn open_browser_session(&self, caller: &Caller, token: &str) -> Result<BrowserSession, Error> {
        self.open_session(caller, token, None).await
    }

    pub(super) async fn open_session(
        &self,
        caller: &Caller,
        token: &str,
        refresh_token: Option<&str>,
    ) -> Result<BrowserSession, Error> {
        let CallerKind::User { user_id, session } = &caller.kind else {
            caller.user_id()?;
            return Err(unauthorized());
        };
        let cookie = token::random_text(COOKIE, self.entropy())?;
        let now = self.now();
        let day = now.plus_millis(LONGEST);
        let life = self.inner.sessions.cookie_life();
        // The token may be taken for some seconds more. The cookie could not.
        if session.expires_at.is_some_and(|end| end <= now) {
            return Err(unauthorized().because("the session token is in the leeway after its end"));
        }
        let kept = match life {
            CookieLife::Own | CookieLife::Token => None,
            CookieLife::Verified => {
                let vault = self.vault().ok_or_else(|| {
                    Error::new(
                        ErrorKind::NotConfigured,
                        "this server has no master key to keep session tokens sealed with; its operator can configure one",
                    )
                })?;
                Some(vault.seal_token(digest(&cookie), token, self.entropy())?)
            }
        };
        let renewal = match life {
            CookieLife::Token => self.renewal_of(&cookie, refresh_token, session.expires_at)?,
            CookieLife::Own | CookieLife::Verified => None,
        };
        let stored = StoredBrowserSession {
            user_id: user_id.clone(),
            epoch: self.epoch().await?,
            admission: self.inner.admission.clone(),
            created_at: now,
            expires_at: match life {
                CookieLife::Own => day,
                CookieLife::Token if renewal.is_some() => day,
                CookieLife::Token | CookieLife::Verified => session.expires_at.unwrap_or(day),
            },
            last_used_at: matches!(life, CookieLife::Own).then_some(now),
            token: kept,
            groups: session.groups.to_vec(),
            renewal,
        };
        self.note_sign_in(user_id, &session.profile.as_deref().cloned().unwrap_or_default())
            .await?;
        self.keep(cookie, stored, Transaction::default())
            .await?
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a fresh cookie was taken"))
    }

    /// A random text of this many characters, `0-9A-Za-z`: 5.95 bits each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when the system has no randomness.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert_eq!(service.random_text(43)?.len(), 43);
    /// # Ok::<(), agentcfg_core::Error>(())
    /// ```
    pub fn random_text(&self, characters: usize) -> Result<Zeroizing<String>, Error> {
        Ok(token::random_text(characters, self.entropy())?)
    }

    /// Makes a code that signs this user in once, within [`LOGIN_CODE_SECONDS`]. It is for the operator of the local
    /// identity provider, who can issue tokens for any user.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the identifier of a group, which no user has.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let login = service.make_login_code(ada.user_id()?).await?;
    /// let session = service.redeem_login_code(&login.code).await?;
    /// assert_eq!(session.user_id, *ada.user_id()?);
    /// assert!(service.redeem_login_code(&login.code).await.is_err(), "it was used");
    /// # Ok(()) }) }
    /// ```
    pub async fn make_login_code(&self, user_id: &UserId) -> Result<LoginCode, Error> {
        groups::require_user(user_id)?;
        let mut code = token::random_text(CODE, self.entropy())?;
        code.push('-');
        code.push_str(&Base64UrlUnpadded::encode_string(user_id.as_str().as_bytes()));
        let expires_at = self.now().plus_millis(i64::from(LOGIN_CODE_SECONDS) * SECOND);
        let stored = StoredLoginCode {
            user_id: user_id.clone(),
            epoch: self.epoch().await?,
            expires_at,
        };
        let key = records::login_code(&hash(&code));
        let transaction = Transaction::default().check(key.absent()).put(key, &stored)?;
        match self.commit(transaction).await? {
            Outcome::Done(_) => Ok(LoginCode { code, expires_at }),
            Outcome::Raced | Outcome::Limit => Err(Error::new(ErrorKind::Internal, "a fresh login code was taken")),
        }
    }

    /// Opens a browser session with a login code. The code is used up by that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] for a code that is unknown, used or old, and for each code where another provider
    /// than the local one issues the session tokens.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(service.redeem_login_code("no code").await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn redeem_login_code(&self, code: &str) -> Result<BrowserSession, Error> {
        let refused = || {
            Error::new(
                ErrorKind::Unauthorized,
                "the login code is unknown, was used or is too old",
            )
        };
        let is_possible = code.split_once('-').is_some_and(|(secret, _)| is_secret(secret, CODE));
        // A code brings no token of another provider, and so none of the claims that one must have.
        let is_local = self.inner.sessions.cookie_life() == CookieLife::Own;
        if !is_possible || !is_local {
            return Err(refused());
        }
        let found = self.read(records::login_code(&hash(code))).await?.ok_or_else(refused)?;
        let (now, epoch) = (self.now(), self.epoch().await?);
        if now >= found.value.expires_at || found.value.epoch != epoch {
            return Err(refused());
        }
        let stored = StoredBrowserSession {
            user_id: found.value.user_id.clone(),
            epoch,
            admission: self.inner.admission.clone(),
            created_at: now,
            expires_at: now.plus_millis(LONGEST),
            last_used_at: Some(now),
            token: None,
            groups: Vec::new(),
            renewal: None,
        };
        let cookie = token::random_text(COOKIE, self.entropy())?;
        // A login code brings no claims.
        self.note_sign_in(&stored.user_id, &Profile::default()).await?;
        let used = Transaction::default().check(found.unchanged()).delete(found.key);
        // Another request used the code first.
        self.keep(cookie, stored, used).await?.ok_or_else(refused)
    }

    /// Stores a session together with what `transaction` does; `None` after a lost race.
    async fn keep(
        &self,
        cookie: Zeroizing<String>,
        stored: StoredBrowserSession,
        transaction: Transaction,
    ) -> Result<Option<BrowserSession>, Error> {
        let key = records::browser_session(&hash(&cookie));
        let transaction = transaction.check(key.absent()).put(key, &stored)?;
        Ok(match self.commit(transaction).await? {
            Outcome::Done(_) => Some(BrowserSession {
                cookie,
                seconds: (stored.expires_at.unix_millis() - stored.created_at.unix_millis()).max(0) / 1000,
                user_id: stored.user_id,
                expires_at: stored.expires_at,
            }),
            Outcome::Raced | Outcome::Limit => None,
        })
    }

    /// Admits a request with the cookie of a browser session, as [`Self::enter`] does with a credential. The request
    /// counts in the window of the user.
    ///
    /// # Errors
    ///
    /// As [`Self::enter`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let login = service.make_login_code(ada.user_id()?).await?;
    /// let session = service.redeem_login_code(&login.code).await?;
    /// let entry = service.enter_browser_session(&session.cookie).await?;
    /// assert_eq!(entry.caller.expires_at(), Some(session.expires_at));
    /// # Ok(()) }) }
    /// ```
    pub async fn enter_browser_session(&self, cookie: &str) -> Result<Entry, EntryError> {
        let at = self.moment();
        let caller = self.identify_browser_session(cookie, at).await?;
        let decision = self.count(&caller, at).await;
        Entry::admitted(caller, decision)
    }

    /// Verifies the cookie of a browser session, as [`Self::authenticate`] does with a credential: no request is
    /// counted.
    ///
    /// # Errors
    ///
    /// As [`Self::authenticate`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let login = service.make_login_code(ada.user_id()?).await?;
    /// let session = service.redeem_login_code(&login.code).await?;
    /// let caller = service.authenticate_browser_session(&session.cookie).await?;
    /// service.close_browser_session(&caller).await?;
    /// assert!(service.authenticate_browser_session(&session.cookie).await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn authenticate_browser_session(&self, cookie: &str) -> Result<Caller, Error> {
        self.identify_browser_session(cookie, self.moment()).await
    }

    async fn identify_browser_session(&self, cookie: &str, at: Moment) -> Result<Caller, Error> {
        if !is_secret(cookie, COOKIE) {
            return Err(unauthorized());
        }
        let hash = hash(cookie);
        let found = self
            .read(records::browser_session(&hash))
            .await?
            .ok_or_else(unauthorized)?;
        let is_of_these_rules = found.value.admission == self.inner.admission;
        if found.value.has_ended(at.now) || !is_of_these_rules || found.value.epoch != self.epoch().await? {
            return Err(unauthorized());
        }
        let found = match found.value.renewal {
            // Rare, and boxed so that the future of other requests stays small.
            Some(_) => Box::pin(self.renewed(cookie, found)).await?,
            None => found,
        };
        let stored = &found.value;
        let mut groups: Arc<[UserId]> = stored.groups.iter().cloned().collect();
        if let Some(sealed) = &stored.token {
            let vault = self.vault().ok_or_else(unauthorized)?;
            // A rotation of the master key may have dropped the key that sealed the token: the user signs in again.
            let token = vault
                .open_token(digest(cookie), sealed)
                .map_err(|error| unauthorized().because(error))?;
            let token = std::str::from_utf8(&token).map_err(|error| unauthorized().because(error))?;
            let verified = self.verify_token(token, at).await?;
            if stored.user_id != *verified.user_id {
                return Err(unauthorized().because("the session token has another user now"));
            }
            groups = groups::of_claims(&self.settings(), &verified.claims);
        }
        let session = UserSession {
            expires_at: Some(stored.expires_at),
            valid_until: Some(stored.expires_at),
            browser: Some(Arc::from(hash)),
            groups,
            profile: None,
        };
        let caller = Caller::user(stored.user_id.clone(), session);
        if stored.is_use_due(at.now) {
            self.note_session_use(found, at.now).await;
        }
        Ok(caller)
    }

    /// Stores the time of this use. A failure is ignored: the next request tries again.
    async fn note_session_use(&self, found: Stored<StoredBrowserSession>, now: Timestamp) {
        let used = StoredBrowserSession {
            last_used_at: Some(now),
            ..found.value.clone()
        };
        // The check keeps this write from bringing back a session that was closed meanwhile.
        let transaction = Transaction::default().check(found.unchanged()).put(found.key, &used);
        let written = match transaction {
            Ok(transaction) => self.commit(transaction).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::warn!(
                ?error,
                "could not write when a browser session was last used, trying again"
            );
        }
    }
}

/// Which tokens open a browser session, as a digest. A session ends when the provider, the claims that tokens must have
/// or the claim of groups change, because its token was verified by other rules. Where each request verifies the token,
/// its rules hold anyway.
pub(super) fn admission(sessions: &dyn SessionVerifier, settings: &Settings) -> String {
    let mut rules = vec![sessions.origin()];
    match sessions.cookie_life() {
        CookieLife::Own => rules.push("own".to_owned()),
        CookieLife::Token => rules.push("token".to_owned()),
        CookieLife::Verified => return "verified".to_owned(),
    }
    rules.push(settings.groups_claim.clone().unwrap_or_default());
    let mut claims: Vec<_> = settings.required_claims.iter().map(ToString::to_string).collect();
    claims.sort();
    rules.append(&mut claims);
    hash(&serde_json::json!(rules).to_string())
}

impl StoredBrowserSession {
    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        let is_idle = self.last_used_at.is_some_and(|used| now >= used.plus_millis(IDLE));
        is_idle || now >= self.expires_at
    }

    /// Whether the last use is to be written: a minute after the previous one, so that most requests write nothing.
    fn is_use_due(&self, now: Timestamp) -> bool {
        self.last_used_at.is_some_and(|used| now >= used.plus_millis(MINUTE))
    }
}

/// Whether a text has the form of a secret of this length. Any other text is refused without a read.
fn is_secret(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The hash of a secret. The secrets are random, so that a fast hash cannot be reversed.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

fn hash(secret: &str) -> String {
    crate::hex::encode(&digest(secret))
}
