//! When API keys were last used: noted in memory, written periodically (write-behind).

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::clock::Moment;
use crate::error::Error;
use crate::model::Timestamp;
use crate::service::budgets::BudgetReport;
use crate::service::records::{self, Outcome, StoredUse, Transaction};
use crate::service::retry::Rounds;
use crate::service::{AgentCfg, Inner};
use crate::sync::lock;
use crate::token;

/// How often the service writes the noted uses.
const WRITE_EVERY: Duration = Duration::from_secs(30);
/// The greatest number of uses in one commit.
const BATCH: usize = 256;

/// The uses that were not written yet, and the thread that writes them.
pub(in crate::service) struct LastUses {
    pending: Mutex<HashMap<String, Timestamp>>,
    writer: OnceLock<Option<Thread>>,
    pub(in crate::service) write_every: Duration,
}

impl Default for LastUses {
    fn default() -> Self {
        Self {
            pending: Mutex::default(),
            writer: OnceLock::new(),
            write_every: WRITE_EVERY,
        }
    }
}

impl LastUses {
    /// The noted use of a key, if it was not written yet.
    pub(in crate::service) fn pending(&self, key_id: &str) -> Option<Timestamp> {
        lock(&self.pending).get(key_id).copied()
    }

    fn put(&self, key_id: String, at: Timestamp) {
        let mut pending = lock(&self.pending);
        let noted = pending.entry(key_id).or_insert(at);
        *noted = at.max(*noted);
    }

    /// Removes the written uses, unless a later use was noted meanwhile.
    fn forget(&self, written: &[(String, Timestamp)]) {
        let mut pending = lock(&self.pending);
        for (key_id, at) in written {
            if pending.get(key_id) == Some(at) {
                pending.remove(key_id);
            }
        }
    }
}

impl Drop for LastUses {
    /// Ends the writing thread.
    fn drop(&mut self) {
        if let Some(Some(writer)) = self.writer.get() {
            writer.unpark();
        }
    }
}

impl AgentCfg {
    /// Notes a use of a key now. The first note starts the writing thread.
    pub(super) fn note_use(&self, id: &token::Id, at: Moment) {
        let uses = &self.inner.uses;
        uses.put(id.as_str().to_owned(), at.now);
        uses.writer.get_or_init(|| {
            // The store may need the runtime. Where there is none, only `flush` writes.
            let runtime = Handle::try_current().ok()?;
            let (every, service) = (uses.write_every, std::sync::Arc::downgrade(&self.inner));
            let writer = thread::Builder::new().name("agentcfg-uses".into());
            match writer.spawn(move || write_now_and_then(every, &service, &runtime)) {
                Ok(writer) => Some(writer.thread().clone()),
                Err(error) => {
                    tracing::error!(%error, "the thread that writes last uses of API keys could not be started");
                    None
                }
            }
        });
    }

    /// Writes when API keys were last used, the usage of model calls and what budgets have spent. The service does so
    /// itself, twice a minute and within a second. Call this before the process ends: what was not written is lost, and
    /// budgets get back what no call has reserved. Nothing else is kept in memory alone.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// // … until the app shuts down, and then:
    /// service.flush().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When storage fails; what was not written is kept for the next call.
    pub async fn flush(&self) -> Result<(), Error> {
        // One that fails does not keep the other from being written.
        let usage = self.write_usage().await;
        let budgets = self.report_budgets(BudgetReport::GiveBack).await;
        self.flush_uses().await.and(usage).and(budgets)
    }

    async fn flush_uses(&self) -> Result<(), Error> {
        let uses = &self.inner.uses;
        let noted: Vec<_> = lock(&uses.pending)
            .iter()
            .map(|(key_id, at)| (key_id.clone(), *at))
            .collect();
        for some in noted.chunks(BATCH) {
            let mut rounds = Rounds::default();
            while !self.write_uses(some).await? {
                rounds.lost().await?;
            }
            uses.forget(some);
        }
        Ok(())
    }

    /// Writes the uses that are later than the stored ones: another server on the same store may have seen a later one.
    /// `false` when such a server wrote in between.
    async fn write_uses(&self, uses: &[(String, Timestamp)]) -> Result<bool, Error> {
        let of = |key_id: &String| (records::api_key(key_id), records::key_use(key_id));
        let stored = self
            .read(uses.iter().map(|(key_id, _)| of(key_id)).collect::<Vec<_>>())
            .await?;
        let mut transaction = Transaction::default();
        for ((api_key, stored), (key_id, at)) in stored.into_iter().zip(uses) {
            // The key of a deleted workspace is removed, and a use of it would stay for ever.
            let Some(api_key) = api_key else { continue };
            if stored.as_ref().is_some_and(|stored| stored.value.last_used_at >= *at) {
                continue;
            }
            let key = records::key_use(key_id);
            let unchanged = key.unchanged(stored.as_ref());
            transaction = transaction
                .check(api_key.unchanged())
                .check(unchanged)
                .put(key, &StoredUse { last_used_at: *at })?;
        }
        if transaction.is_empty() {
            return Ok(true);
        }
        Ok(matches!(self.commit(transaction).await?, Outcome::Done(_)))
    }
}

/// Writes periodically until the service is dropped.
fn write_now_and_then(every: Duration, service: &Weak<Inner>, runtime: &Handle) {
    let _runtime = runtime.enter();
    loop {
        thread::park_timeout(every);
        let Some(inner) = service.upgrade() else { return };
        if let Err(error) = runtime.block_on(AgentCfg::of(inner).flush_uses()) {
            tracing::warn!(?error, "could not write when API keys were last used, trying again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_that_was_noted_during_a_write_is_kept() {
        let uses = LastUses::default();
        let [early, late] = [1, 2].map(Timestamp::from_unix_millis);
        uses.put("a".to_owned(), late);
        uses.put("b".to_owned(), early);
        uses.forget(&[("a".to_owned(), early), ("b".to_owned(), early)]);
        assert_eq!((uses.pending("a"), uses.pending("b")), (Some(late), None));
    }
}
