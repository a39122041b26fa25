//! When API keys were last used: noted in memory, written now and then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::AgentCfg;
use super::known_keys::Slot;
use super::schema::{self, StoredUse};
use crate::error::Error;
use crate::model::Timestamp;
use crate::store::{Batch, Write};
use crate::token;

/// A use is noted again after so many milliseconds.
const NOTE_EVERY: i64 = 15_000;
/// At most so many uses are written in one commit.
const BATCH: usize = 256;

/// Uses that are not written yet.
#[derive(Default)]
pub(super) struct KeyUses {
    pending: Mutex<HashMap<String, Timestamp>>,
}

impl KeyUses {
    /// Notes that a key is used now. Costs a look at a number unless some time has passed.
    pub(super) fn note(&self, id: &token::Id, slot: &Slot, now: Timestamp) {
        if slot.is_due(NOTE_EVERY, now) {
            self.put(id.as_str().to_owned(), now);
        }
    }

    /// What is noted and not yet written.
    pub(super) fn pending(&self, key_id: &str) -> Option<Timestamp> {
        self.lock().get(key_id).copied()
    }

    fn put(&self, key_id: String, at: Timestamp) {
        let mut pending = self.lock();
        let noted = pending.entry(key_id).or_insert(at);
        *noted = at.max(*noted);
    }

    /// Forgets what is written, unless a later use was noted meanwhile.
    fn written(&self, uses: &[(String, Timestamp)]) {
        let mut pending = self.lock();
        for (key_id, at) in uses {
            if pending.get(key_id) == Some(at) {
                pending.remove(key_id);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Timestamp>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentCfg {
    /// Writes down when API keys were last used. Call it about twice a minute and before the end;
    /// what is not written by then is lost, and nothing else.
    ///
    /// # Errors
    ///
    /// When storage fails; what was not written is kept for the next call.
    pub async fn flush(&self) -> Result<(), Error> {
        let uses: Vec<_> = self
            .inner
            .uses
            .lock()
            .iter()
            .map(|(key_id, at)| (key_id.clone(), *at))
            .collect();
        for uses in uses.chunks(BATCH) {
            let mut batch = Batch::default();
            for (key_id, at) in uses {
                let value = schema::encode(&StoredUse { last_used_at: *at })?;
                batch.writes.push(Write::Put(schema::key_use(key_id), value));
            }
            self.store().commit(batch).await.map_err(super::change::failed)?;
            self.inner.uses.written(uses);
        }
        Ok(())
    }
}
