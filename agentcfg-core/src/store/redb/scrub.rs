//! The scrub: it reads the whole file in small steps while the store is in use, so that damage is found while a backup
//! still has the data.

use std::ops::Bound;

use super::super::{StoreError, envelope};
use super::blocks::BLOCK;
use super::read::ReadFault;
use super::schema::RECORDS;
use super::store::RedbStore;

/// The number of records or of blocks that one step reads.
const STEP: u64 = 256;

/// The position of a scrub of a [`RedbStore`]; see [`RedbStore::scrub`]. The default begins at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scrub {
    stage: ScrubStage,
}

/// What the next step reads. The records come first: the second stage verifies only blocks that this process has read
/// or written before.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScrubStage {
    /// The records after this key. This finds damage in blocks that were not read since the start.
    Records(Vec<u8>),
    /// The blocks from this one on. This finds damage that the engine's page cache hides.
    Blocks(u64),
}

impl Default for ScrubStage {
    fn default() -> Self {
        Self::Records(Vec::new())
    }
}

/// The condition of the file of a [`RedbStore`]; see [`RedbStore::condition`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// The number of damaged blocks that reads and scrubs have found since the store was opened. Calls that need one of
    /// them return [`StoreError::Unavailable`]; the log names once for each what was read.
    pub damaged_blocks: u64,
    /// The number of bytes that scrubs have read since the store was opened.
    pub scrubbed_bytes: u64,
    /// How often the engine has failed and its file was reopened, since the store was opened.
    pub failures: u64,
    /// The number of commits that were refused before they touched the file, since the store was opened: while the disk
    /// was full, the file was not at its path, or was being reopened.
    pub refused_commits: u64,
    /// The length of the file.
    pub file_bytes: u64,
    /// The bytes that are free on its disk; `None` where the system does not tell.
    pub free_bytes: Option<u64>,
}

impl RedbStore {
    /// The condition of the file, as far as reads and scrubs have found.
    ///
    /// ```
    /// use agentcfg_core::store::redb::{RedbOptions, RedbStore};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// assert_eq!(store.condition().damaged_blocks, 0);
    /// # Ok::<(), agentcfg_core::store::redb::OpenError>(())
    /// ```
    pub fn condition(&self) -> Condition {
        let health = self.shared.health();
        Condition {
            damaged_blocks: health.damaged(),
            scrubbed_bytes: health.scrubbed() * BLOCK as u64,
            failures: health.failures(),
            refused_commits: health.refusals(),
            file_bytes: health.file_bytes().unwrap_or(0),
            free_bytes: health.room().space().map(|space| space.free),
        }
    }

    /// Reads and verifies the next 256 records or blocks of the file; returns `true` after the last step of a pass, and
    /// the next step begins another pass. Damage is logged and counted in [`RedbStore::condition`].
    ///
    /// The call blocks on the file: make it on a thread that may block. The interval of the calls sets the speed of the
    /// scrub.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the file cannot be read now. The next call repeats the step.
    ///
    /// ```
    /// use agentcfg_core::store::redb::{RedbOptions, RedbStore, Scrub};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let store = RedbStore::open(directory.path().join("store.redb"), RedbOptions::default())?;
    /// let mut scrub = Scrub::default();
    /// while !store.scrub(&mut scrub)? {}
    /// assert_eq!(store.condition().damaged_blocks, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scrub(&self, scrub: &mut Scrub) -> Result<bool, StoreError> {
        match &scrub.stage {
            ScrubStage::Records(after) => {
                scrub.stage = match self.scrub_records(after) {
                    Ok(Some(last)) => ScrubStage::Records(last),
                    Ok(None) => ScrubStage::Blocks(0),
                    Err(error @ StoreError::Unavailable(_)) if self.condition().damaged_blocks == 0 => {
                        return Err(error);
                    }
                    // Damage hides the records after it from this stage. The blocks can still be read. The damage
                    // itself is in the log, once.
                    Err(error) => {
                        tracing::debug!(%error, "the scrub could not read all records and continues with the blocks");
                        ScrubStage::Blocks(0)
                    }
                };
                Ok(false)
            }
            ScrubStage::Blocks(first) => {
                let first = *first;
                let ended = self.scrub_blocks(first)?;
                scrub.stage = match ended {
                    true => ScrubStage::default(),
                    false => ScrubStage::Blocks(first + STEP),
                };
                Ok(ended)
            }
        }
    }

    /// Reads records; returns the last key, or `None` at the end.
    fn scrub_records(&self, after: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let place = || match after {
            [] => "the first records".to_owned(),
            after => format!("records after {}", envelope::describe(after)),
        };
        self.shared.read(&self.queue, place, |snapshot| {
            let table = snapshot.open_table(RECORDS)?;
            let mut last = None;
            let from = Bound::Excluded(after);
            for entry in table.range::<&[u8]>((from, Bound::Unbounded))?.take(STEP as usize) {
                let (key, sealed) = entry?;
                // A damaged record in an undamaged block fails its own reads. Here it is only logged.
                if let Err(error) = envelope::open(key.value(), sealed.value()) {
                    tracing::error!(%error, "the scrub found a damaged record");
                }
                last = Some(key.value().to_vec());
            }
            Ok::<_, ReadFault>(last)
        })
    }

    /// Reads blocks; returns `true` at the end.
    fn scrub_blocks(&self, first: u64) -> Result<bool, StoreError> {
        let health = self.shared.health();
        let Some(blocks) = health.blocks() else {
            return Err(StoreError::Unavailable("the store file is not open".into()));
        };
        let scrubbed = blocks.scrub(first..first + STEP, &mut |damage| {
            health.report(damage, || "found by the scrub".into());
        });
        let count = blocks.count();
        match (scrubbed, count) {
            (Ok(read), Ok(count)) => {
                health.count(read);
                Ok(first + STEP >= count)
            }
            (Err(error), _) | (_, Err(error)) => Err(StoreError::Unavailable(error.to_string())),
        }
    }
}
