//! Renewal of browser sessions: the refresh token of a sign-in is kept sealed, and a session whose token has ended gets
//! a new one with it, up to the end of the session.
//!
//! A provider may take each refresh token once, so one request renews and the others wait for it, on all servers: it
//! holds a lease in the session's record. The exchange runs in a task of its own: a request that is cancelled would
//! lose the new refresh token.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::entry::unauthorized;
use super::records::{Done, Outcome, Stored, StoredBrowserSession, StoredRenewal, Transaction, encode};
use super::sign_in::digest;
use super::{AgentCfg, BrowserSession, Caller, groups};
use crate::error::{Error, ErrorKind};
use crate::model::Timestamp;
use crate::session::{MAX_TOKEN_BYTES, Renewed, Session, SessionError};
use crate::vault::Sealed;

/// How long a renewal has, in milliseconds. After that another request may try, such as when a server was stopped
/// during it.
const LEASE: i64 = 30_000;
/// How long another request waits before it reads again whether the session is renewed.
const PAUSE: Duration = Duration::from_millis(50);
/// How often it reads: 15 s in all.
const READS: u32 = 300;

impl AgentCfg {
    /// As [`Self::open_browser_session`], for a user who came with a refresh token too: the session renews itself with
    /// it when its token ends, up to 24 hours.
    ///
    /// Without a [`SessionRenewal`](crate::session::SessionRenewal), and without a master key to seal it with, the
    /// refresh token is not kept, and the session ends with its token.
    ///
    /// # Errors
    ///
    /// As [`Self::open_browser_session`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // Another provider would give these two.
    /// let (token, refresh_token) = ("access token", "refresh token");
    /// let session = service.open_renewable_browser_session(&ada, token, refresh_token).await?;
    /// assert_eq!(session.user_id, *ada.user_id()?);
    /// # Ok(()) }) }
    /// ```
    pub async fn open_renewable_browser_session(
        &self,
        caller: &Caller,
        token: &str,
        refresh_token: &str,
    ) -> Result<BrowserSession, Error> {
        self.open_session(caller, token, Some(refresh_token)).await
    }

    /// What renews a session whose token ends then, if something does.
    pub(super) fn renewal_of(
        &self,
        cookie: &str,
        refresh_token: Option<&str>,
        token_ends_at: Option<Timestamp>,
    ) -> Result<Option<StoredRenewal>, Error> {
        let (Some(refresh_token), Some(token_ends_at)) = (refresh_token, token_ends_at) else {
            return Ok(None);
        };
        let (Some(_), Some(vault)) = (&self.inner.renewal, self.vault()) else {
            return Ok(None);
        };
        if refresh_token.len() > MAX_TOKEN_BYTES {
            tracing::warn!("a refresh token is too long to be kept: the session will not be renewed");
            return Ok(None);
        }
        Ok(Some(StoredRenewal {
            refresh_token: vault.seal_token(digest(cookie), refresh_token, self.entropy())?,
            token_ends_at,
            renewing_until: None,
        }))
    }

    /// The session with a token that has not ended: the one that was found, or after a renewal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unauthorized`] when the provider gives no token for the user any more: the session is ended.
    /// [`ErrorKind::Unavailable`] when it cannot be asked now.
    pub(super) async fn renewed(
        &self,
        cookie: &str,
        mut found: Stored<StoredBrowserSession>,
    ) -> Result<Stored<StoredBrowserSession>, Error> {
        for _ in 0..READS {
            let now = self.now();
            let Some(renewal) = found
                .value
                .renewal
                .clone()
                .filter(|renewal| renewal.token_ends_at <= now)
            else {
                return Ok(found);
            };
            let key = found.key.clone();
            match renewal.renewing_until.is_some_and(|until| now < until) {
                true => sleep(PAUSE).await,
                false => {
                    if let Some(led) = self.lead_renewal(found, renewal.clone(), now).await? {
                        return self.renew_in_task(cookie.to_owned(), led, renewal.refresh_token).await;
                    }
                }
            }
            found = self.read(key).await?.ok_or_else(unauthorized)?;
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "the session is being renewed, try again",
        ))
    }

    /// Takes the lease of a renewal; `None` when another request was first.
    async fn lead_renewal(
        &self,
        found: Stored<StoredBrowserSession>,
        renewal: StoredRenewal,
        now: Timestamp,
    ) -> Result<Option<Stored<StoredBrowserSession>>, Error> {
        let renewal = StoredRenewal {
            renewing_until: Some(now.plus_millis(LEASE)),
            ..renewal
        };
        self.replace_session(found, |session| session.renewal = Some(renewal))
            .await
    }

    /// Replaces the record of a session; `None` when it is another one now.
    async fn replace_session(
        &self,
        found: Stored<StoredBrowserSession>,
        change: impl FnOnce(&mut StoredBrowserSession),
    ) -> Result<Option<Stored<StoredBrowserSession>>, Error> {
        let mut value = found.value.clone();
        change(&mut value);
        let transaction = Transaction::default()
            .check(found.unchanged())
            .put_subject(found.key.clone(), encode(&value)?);
        Ok(match self.commit(transaction).await? {
            Outcome::Done(Done { version, .. }) => Some(Stored {
                key: found.key,
                version,
                value,
            }),
            Outcome::Raced | Outcome::Limit => None,
        })
    }

    async fn renew_in_task(
        &self,
        cookie: String,
        led: Stored<StoredBrowserSession>,
        refresh_token: Sealed,
    ) -> Result<Stored<StoredBrowserSession>, Error> {
        let service = self.clone();
        let renewing = tokio::spawn(async move { service.renew(&cookie, led, &refresh_token).await });
        renewing
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "a renewal was not finished").because(error))?
    }

    /// Renews a session, of which this task has the lease.
    async fn renew(
        &self,
        cookie: &str,
        led: Stored<StoredBrowserSession>,
        refresh_token: &Sealed,
    ) -> Result<Stored<StoredBrowserSession>, Error> {
        let vault = self.vault().ok_or_else(unauthorized)?;
        let provider = self.inner.renewal.as_ref().ok_or_else(unauthorized)?;
        // A rotation of the master key may have dropped the key that sealed it: the user signs in again.
        let refresh = vault
            .open_token(digest(cookie), refresh_token)
            .map_err(|error| unauthorized().because(error))?;
        let refresh = std::str::from_utf8(&refresh).map_err(|error| unauthorized().because(error))?;
        let renewed = match provider.renew(refresh).await {
            Ok(renewed) => renewed,
            Err(error @ SessionError::Invalid(_)) => return Err(self.end_unrenewed(led, error).await),
            Err(error @ SessionError::Unavailable(_)) => {
                self.give_lease_back(led, refresh_token.clone()).await;
                return Err(unavailable().because(error));
            }
        };
        let next = match &renewed.refresh_token {
            Some(next) if next.len() <= MAX_TOKEN_BYTES => vault.seal_token(digest(cookie), next, self.entropy())?,
            _ => refresh_token.clone(),
        };
        let session = match self.accepted(&renewed, &led.value).await {
            Ok(session) => session,
            Err(error) if error.kind() == ErrorKind::Unauthorized => return Err(self.end_unrenewed(led, error).await),
            Err(error) => {
                // The old refresh token may have been used up.
                self.give_lease_back(led, next).await;
                return Err(error);
            }
        };
        let groups = groups::of_claims(&self.settings(), &session.claims);
        let ends_at = led.value.expires_at;
        let after = |stored: &mut StoredBrowserSession| {
            stored.groups = groups.to_vec();
            stored.renewal = Some(StoredRenewal {
                refresh_token: next,
                token_ends_at: session.expires_at.unwrap_or(ends_at),
                renewing_until: None,
            });
        };
        // The user may have signed out meanwhile.
        self.replace_session(led, after).await?.ok_or_else(unauthorized)
    }

    /// The first of the new tokens that this service accepts as a bearer.
    async fn accepted(&self, renewed: &Renewed, stored: &StoredBrowserSession) -> Result<Session, Error> {
        let mut refused = unauthorized();
        for token in &renewed.tokens {
            match self.verify_token(token, self.moment()).await {
                Ok(session) if stored.user_id == *session.user_id => return Ok(session),
                Ok(_) => return Err(unauthorized().because("the renewed token has another user")),
                Err(error) if error.kind() == ErrorKind::Unauthorized => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// Ends a session that the provider does not renew.
    async fn end_unrenewed(
        &self,
        led: Stored<StoredBrowserSession>,
        why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        let why = why.into();
        tracing::info!(%why, user_id = %led.value.user_id, "a browser session was not renewed, and has ended");
        let hash = Arc::from(led.key.item());
        if let Err(error) = self
            .end_sessions(Transaction::default().delete(led.key), vec![hash])
            .await
        {
            tracing::warn!(?error, "could not remove a browser session that has ended");
        }
        unauthorized().because(why)
    }

    /// Lets the next request try again at once, with this refresh token.
    async fn give_lease_back(&self, led: Stored<StoredBrowserSession>, refresh_token: Sealed) {
        let free = |stored: &mut StoredBrowserSession| {
            if let Some(renewal) = &mut stored.renewal {
                renewal.refresh_token = refresh_token;
                renewal.renewing_until = None;
            }
        };
        if let Err(error) = self.replace_session(led, free).await {
            tracing::warn!(?error, "could not give the lease of a renewal back, it ends by itself");
        }
    }
}

fn unavailable() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the identity provider is unavailable, so the session cannot be renewed now; try again",
    )
}
