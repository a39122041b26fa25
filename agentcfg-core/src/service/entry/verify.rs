//! What an entry does for a credential that the key table does not know: the check of an API key by its record, steps 3
//! and 4, and of a session token by its verifier.

use std::sync::Arc;

use super::caller::{Caller, KeyFacts, UserSession, unauthorized};
use super::key_table::Verified;
use crate::clock::{Moment, SECOND};
use crate::error::{Error, ErrorKind};
use crate::service::records::{self, Encoded, Profile, StoredApiKey};
use crate::service::{AgentCfg, groups};
use crate::session::{CookieLife, LEEWAY_SECONDS, Session, SessionError};
use crate::store::Stamp;
use crate::token::{self, Parts};
use crate::validate::{Invalid, is_group_id};

impl AgentCfg {
    /// The caller behind a key, by its record as it is stored now.
    pub(super) async fn identify_by_record(&self, plaintext: &str, at: Moment) -> Result<Caller, Error> {
        let key_id = token::parse(plaintext).ok_or_else(unauthorized)?;
        let key = records::api_key(key_id);
        // Taken before the record is read, so that a change after the read ends the stamp.
        let stamp = self.store().stamp(key.raw());
        let record = self.read(key.encoded()).await?;
        self.check_record(plaintext, record, stamp, at).await
    }

    /// Decides on a plaintext by the key's record. The stamp is older than the record.
    pub(super) async fn check_record(
        &self,
        plaintext: &str,
        record: Option<Encoded<StoredApiKey>>,
        stamp: Option<Stamp>,
        at: Moment,
    ) -> Result<Caller, Error> {
        let text = Parts::of(plaintext).ok_or_else(unauthorized)?;
        let record = record.ok_or_else(unauthorized)?;
        let Parts { id, fingerprint } = text;
        let known = self.inner.keys.verified_at(&id, record.version());
        let is_known = known.is_some();
        let facts = match known {
            Some(verified) if verified.is_plaintext(&fingerprint) => verified.facts.with_stamp(stamp),
            Some(_) => return Err(unauthorized()),
            None => {
                let stored = record.decode()?;
                if !stored.value.is_valid_at(at.now) {
                    return Err(unauthorized());
                }
                let version = (id, stored.version);
                let plaintexts = &self.inner.plaintexts;
                plaintexts
                    .check(plaintext, fingerprint, version, &stored.value.hash)
                    .await?;
                KeyFacts::of(&stored.value, stored.version, stamp, &self.settings())
            }
        };
        if facts.are_expired(|| at.now) {
            return Err(unauthorized());
        }
        if !is_known || stamp.is_some() {
            let facts = facts.clone();
            self.inner.keys.remember(id, Verified { facts, fingerprint }, at);
        }
        if self.inner.keys.is_use_due(&id, at) {
            self.note_use(&id, at);
        }
        Ok(Caller::by_key(id, facts))
    }

    pub(super) async fn identify_session(&self, token: &str, at: Moment) -> Result<Caller, Error> {
        let verified = self.verify_token(token, at).await?;
        let user_id = verified.user_id.parse();
        let user_id = user_id.map_err(|error: Invalid| unauthorized().because(error))?;
        let profile = Profile::of_claims(&verified.claims);
        let leeway = match self.inner.sessions.cookie_life() {
            CookieLife::Own => 0,
            CookieLife::Token | CookieLife::Verified => i64::from(LEEWAY_SECONDS) * SECOND,
        };
        let session = UserSession {
            expires_at: verified.expires_at,
            valid_until: verified.expires_at.map(|end| end.plus_millis(leeway)),
            browser: None,
            groups: groups::of_claims(&self.settings(), &verified.claims),
            profile: (profile != Profile::default()).then(|| Arc::new(profile)),
        };
        Ok(Caller::user(user_id, session))
    }

    /// The session of a token, as the identity provider sees it now.
    pub(in crate::service) async fn verify_token(&self, token: &str, at: Moment) -> Result<Session, Error> {
        let verified = self.inner.sessions.verify(token, at.now).await;
        let session = verified.map_err(|error| match error {
            SessionError::Invalid(_) => refused(error),
            SessionError::Unavailable(_) => Error::new(
                ErrorKind::Unavailable,
                "the identity provider is unavailable, try again",
            )
            .because(error),
        })?;
        let settings = self.settings();
        if is_group_id(&session.user_id) {
            return Err(refused("its user has the identifier of a group"));
        }
        let required = &settings.required_claims;
        match required.iter().find(|claim| !claim.is_met_by(&session.claims)) {
            None => Ok(session),
            Some(claim) => Err(refused(format!(
                "the token of {} lacks the claim {claim}",
                session.user_id
            ))),
        }
    }
}

/// The refusal of a session token. The caller does not learn the reason; it is the cause, for the log.
fn refused(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    unauthorized().because(cause)
}
