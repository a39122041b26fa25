//! The end of browser sessions: by their users, by operators, and by themselves.

use std::sync::Arc;

use super::chunked_reads::Chunks;
use super::entry::{CallerKind, unauthorized};
use super::feed::EndedEntry;
use super::records::{self, Entity, Entries, Outcome, StoredBrowserSession, StoredLoginCode, Transaction};
use super::{AgentCfg, Caller};
use crate::error::{Error, ErrorKind};
use crate::model::UserId;
use crate::store::Partition;

impl AgentCfg {
    /// Ends the browser session that the caller came with: the next request with its cookie is refused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] when the caller did not come with a browser session.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert!(service.close_browser_session(&ada).await.is_err(), "she came without a cookie");
    /// # Ok(()) }) }
    /// ```
    pub async fn close_browser_session(&self, caller: &Caller) -> Result<(), Error> {
        caller.user_id()?;
        let CallerKind::User { session, .. } = &caller.kind else {
            return Err(unauthorized());
        };
        let Some(hash) = &session.browser else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the request has no browser session to end: a session token ends by itself",
            ));
        };
        let transaction = Transaction::default().delete(records::browser_session(hash));
        self.end_sessions(transaction, vec![Arc::clone(hash)]).await
    }

    /// Deletes browser sessions, and ends their watches.
    pub(super) async fn end_sessions(&self, transaction: Transaction, hashes: Vec<Arc<str>>) -> Result<(), Error> {
        let ended = self.commit(transaction).await;
        for hash in hashes {
            // Also when the outcome is unknown.
            self.entry_ended(EndedEntry::Session(hash));
        }
        ended.map(drop)
    }

    /// Removes browser sessions and login codes that have ended. A server calls this periodically.
    ///
    /// # Errors
    ///
    /// When storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.make_login_code(ada.user_id()?).await?;
    /// assert_eq!(service.sweep_browser_sessions().await?, 0, "the code has not ended");
    /// # Ok(()) }) }
    /// ```
    pub async fn sweep_browser_sessions(&self) -> Result<usize, Error> {
        let now = self.now();
        let sessions = self
            .sweep(records::browser_sessions, |session: &StoredBrowserSession| {
                session.has_ended(now)
            })
            .await?;
        let codes = self
            .sweep(records::login_codes, |code: &StoredLoginCode| now >= code.expires_at)
            .await?;
        Ok(sessions + codes)
    }

    async fn sweep<T: Entity>(&self, place: fn() -> Partition, has_ended: impl Fn(&T) -> bool) -> Result<usize, Error> {
        let mut removed = 0;
        let mut pieces = Chunks::of(Entries::<T>::of(place()));
        while let Some(found) = pieces.next(self).await? {
            let (mut transaction, mut ended) = (Transaction::default(), 0);
            for record in found {
                let record = record.decode()?;
                if has_ended(&record.value) {
                    transaction = transaction.check(record.unchanged()).delete(record.key);
                    ended += 1;
                }
            }
            // One that was used again meanwhile leaves this piece to the next sweep.
            if !transaction.is_empty()
                && let Outcome::Done(_) = self.commit(transaction).await?
            {
                removed += ended;
            }
        }
        Ok(removed)
    }

    /// Ends all browser sessions of a user.
    pub(super) async fn close_browser_sessions_of(&self, user_id: &UserId) -> Result<(), Error> {
        let mut pieces = Chunks::of(Entries::<StoredBrowserSession>::of(records::browser_sessions()));
        while let Some(piece) = pieces.next(self).await? {
            let (mut transaction, mut closed) = (Transaction::default(), Vec::new());
            for record in piece {
                let record = record.decode()?;
                if record.value.user_id == *user_id {
                    closed.push(Arc::from(record.key.item()));
                    transaction = transaction.delete(record.key);
                }
            }
            if !transaction.is_empty() {
                self.end_sessions(transaction, closed).await?;
            }
        }
        Ok(())
    }
}
