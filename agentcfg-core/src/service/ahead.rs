//! Reading ahead: where the store is a network away, what a request is likely to need is read along
//! with its credential, and the request is counted at the same time.
//!
//! Both are right only for a credential that this process has found good before. Its plaintext is known
//! then, so all that can make it bad is a revocation or its expiry, and those are for ever: a request that
//! is counted and then turns out to be refused has counted for nobody, since nobody is admitted by that
//! key again. For any other credential, counting waits for the verdict.

use std::sync::{Arc, Mutex, PoisonError};

use super::authn::Kind;
use super::known_keys::{KnownKey, Slot};
use super::{AgentCfg, Caller, Counting, schema};
use crate::error::Error;
use crate::model::Timestamp;
use crate::rate_limit::RateDecision;
use crate::store::{Key, Record};
use crate::token;

/// What was read in the snapshot of the credential. It is given once: a second look is for what changed
/// since, and has to go to the store.
pub(super) struct Ahead(Mutex<Option<WorkspaceRecords>>);

/// Two records of a key's workspace.
pub(super) struct WorkspaceRecords {
    pub(super) head: Option<Record>,
    pub(super) workspace: Option<Record>,
}

impl Ahead {
    pub(super) fn take(&self) -> Option<WorkspaceRecords> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl AgentCfg {
    /// [Authenticates](Self::authenticate) a credential and [counts](Self::admit) the request.
    ///
    /// The caller is for this one request: on a [distant store](super::Builder::distant_store) what the request
    /// sees may have been read together with the credential.
    ///
    /// # Errors
    ///
    /// As [`Self::authenticate`]; nothing is counted then for anybody.
    pub async fn enter(&self, credential: &str) -> Result<(Caller, RateDecision), Error> {
        let now = self.now();
        if self.inner.distant_store
            && let Some((id, known)) = self.inner.authenticator.has_verified(credential)
        {
            return Box::pin(self.enter_again(credential, id, &known, now)).await;
        }
        let is_here = matches!(self.inner.counting, Counting::Here(_));
        let count = |key: &KnownKey, slot: &Slot| is_here.then(|| slot.hit(key.rate_limit, now));
        let (caller, counted) = self.authenticate_and(credential, now, count).await?;
        let decision = match counted.flatten() {
            Some(decision) => decision,
            None => self.admit_at(&caller, now).await,
        };
        Ok((caller, decision))
    }

    async fn enter_again(
        &self,
        plaintext: &str,
        id: token::Id,
        known: &KnownKey,
        now: Timestamp,
    ) -> Result<(Caller, RateDecision), Error> {
        let workspace = known.workspace_id;
        let keys = [
            schema::api_key(id.as_str()),
            Key::log_head(workspace),
            schema::workspace(workspace),
        ];
        let (records, decision) = tokio::join!(self.store().get(&keys), self.count_key(&id, known.rate_limit, now));
        let mut records = records?;
        let (workspace, head) = (records.pop().flatten(), records.pop().flatten());
        let mut caller = self
            .caller_of_key(plaintext, records.pop().flatten(), None, now)
            .await?;
        if let Kind::ApiKey { ahead, .. } = &mut caller.0 {
            *ahead = Some(Arc::new(Ahead(Mutex::new(Some(WorkspaceRecords { head, workspace })))));
        }
        Ok((caller, decision))
    }
}
