//! The store's epoch, which each tag names.

use super::AgentCfg;
use super::records::{self, Outcome, StoredEpoch, Transaction};
use crate::error::{Error, ErrorKind};
use crate::model::Epoch;

impl AgentCfg {
    /// The store's epoch. It does not change while a store is open, so each handle reads it once.
    ///
    /// Call it before the commit whose answer has a tag, so that a change that was made is not answered with the
    /// failure of this read.
    pub(super) async fn epoch(&self) -> Result<Epoch, Error> {
        match self.inner.epoch.get() {
            Some(epoch) => Ok(*epoch),
            // Rare. Boxed, so that the future of the fast path stays small.
            None => Box::pin(self.load_epoch()).await,
        }
    }

    async fn load_epoch(&self) -> Result<Epoch, Error> {
        let epoch = self.inner.epoch.get_or_try_init(|| async {
            match self.read(records::epoch()).await? {
                Some(found) => Ok(found.value.epoch),
                None => self.make_epoch().await,
            }
        });
        epoch.await.copied()
    }

    /// Gives an epoch to a store that is new or was made from a backup. Several servers may do this at the same time:
    /// the first commit wins (compare-and-set), and the others read its epoch.
    async fn make_epoch(&self) -> Result<Epoch, Error> {
        let mut random = [0; 8];
        self.entropy().fill(&mut random)?;
        let epoch = Epoch::from_random(u64::from_le_bytes(random));
        let key = records::epoch();
        let transaction = Transaction::default()
            .check(key.absent())
            .put(key, &StoredEpoch { epoch })?;
        match self.commit(transaction).await? {
            Outcome::Done(_) => Ok(epoch),
            Outcome::Raced | Outcome::Limit => {
                let found = self.read(records::epoch()).await?.map(|found| found.value.epoch);
                found.ok_or_else(|| Error::new(ErrorKind::Unavailable, "the store's epoch was removed, try again"))
            }
        }
    }
}
