//! The slow check of a plaintext against the hash of its key.

use ctutils::CtEq;
use zeroize::Zeroizing;

use super::caller::unauthorized;
use super::hashing::Hashing;
use crate::error::Error;
use crate::service::AgentCfg;
use crate::token::{self, Fingerprint};

/// How many slow checks, running or recent, are kept.
const CHECKED_KEYS: usize = 256;

/// Slow checks, each run once for all requests that need it at the same time (single-flight).
pub(in crate::service) struct Plaintexts {
    /// The fingerprint of a verified plaintext, by key and version of the key's record.
    checked: quick_cache::sync::Cache<(token::Id, u64), Fingerprint>,
    pub(super) hashing: Hashing,
}

impl Default for Plaintexts {
    fn default() -> Self {
        Self {
            checked: quick_cache::sync::Cache::new(CHECKED_KEYS),
            hashing: Hashing::default(),
        }
    }
}

impl Plaintexts {
    /// Whether a plaintext is that of a key at a version of its record. Nearly every wrong plaintext costs one fast
    /// hash only. If the request that runs the slow hash is cancelled, another one that waits for it runs it.
    pub(super) async fn check(
        &self,
        plaintext: &str,
        fingerprint: Fingerprint,
        key: (token::Id, u64),
        hash: &str,
    ) -> Result<(), Error> {
        if !token::may_match(plaintext, hash) {
            return Err(unauthorized());
        }
        let right = self.checked.get_or_insert_async(&key, async {
            let (plaintext, hash) = (Zeroizing::new(plaintext.to_owned()), hash.to_owned());
            let is_right = self.hashing.run(move || token::verify(&plaintext, &hash)).await?;
            is_right.then_some(fingerprint).ok_or_else(unauthorized)
        });
        let is_right: bool = right.await?.ct_eq(&fingerprint).into();
        is_right.then_some(()).ok_or_else(unauthorized)
    }
}

impl AgentCfg {
    /// The slow hash of a new key, for its record.
    pub(in crate::service) async fn hash_plaintext(&self, plaintext: &str) -> Result<String, Error> {
        let plaintext = Zeroizing::new(plaintext.to_owned());
        let entropy = std::sync::Arc::clone(&self.inner.entropy);
        let hashing = &self.inner.plaintexts.hashing;
        Ok(hashing.run(move || token::hash(&plaintext, &*entropy)).await??)
    }
}
