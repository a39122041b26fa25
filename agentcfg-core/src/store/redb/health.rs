//! The condition of the store file: its damaged blocks, whether it is at its path, and how much of it was scrubbed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;

use super::blocks::{Blocks, Damage, WeakBlocks};
use super::place::Place;

/// See the module's text. It stays when the file is reopened.
#[derive(Debug, Default)]
pub(super) struct Health {
    damaged: Mutex<BTreeSet<u64>>,
    /// The file as it was opened last.
    blocks: Mutex<Option<WeakBlocks<FileBackend>>>,
    place: Mutex<Option<Place>>,
    scrubbed: AtomicU64,
}

impl Health {
    /// Sets the file that was just opened.
    pub(super) fn watch(&self, blocks: &Blocks<FileBackend>, place: Place) {
        *lock(&self.blocks) = Some(blocks.downgrade());
        *lock(&self.place) = Some(place);
    }

    /// What happened to the file, unless it is still at its path.
    pub(super) fn lost(&self) -> Option<String> {
        lock(&self.place).as_ref().and_then(Place::lost)
    }

    /// The file, while it is open.
    pub(super) fn blocks(&self) -> Option<Blocks<FileBackend>> {
        lock(&self.blocks).as_ref().and_then(WeakBlocks::upgrade)
    }

    /// Records a damaged block, and logs it the first time. `place` describes what was read.
    pub(super) fn report(&self, damage: Damage, place: impl FnOnce() -> String) {
        if lock(&self.damaged).insert(damage.block) {
            tracing::error!(
                block = damage.block,
                place = place(),
                "a block of the store file does not match its checksum: requests that need it are refused, all others are served; \
                 stop the server, run `agentcfg-server check`, and restore a backup into a new directory"
            );
        }
    }

    /// The number of damaged blocks that were found since the store was opened.
    pub(super) fn damaged(&self) -> u64 {
        lock(&self.damaged).len() as u64
    }

    /// Counts blocks that a scrub has read.
    pub(super) fn count(&self, blocks: u64) {
        self.scrubbed.fetch_add(blocks, Ordering::Relaxed);
    }

    /// The number of blocks that scrubs have read since the store was opened.
    pub(super) fn scrubbed(&self) -> u64 {
        self.scrubbed.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
