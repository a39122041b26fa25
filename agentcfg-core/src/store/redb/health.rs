//! The condition of the store file: its damaged blocks, whether it is at its path, whether its disk has room for
//! commits, and how much of it was scrubbed.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;

use super::blocks::{Blocks, Damage, WeakBlocks};
use super::draft::Draft;
use super::opened_file::{self, OpenedFile};
use super::room::Room;
use crate::sync::lock;

/// See the module's text. It stays when the file is reopened.
#[derive(Debug, Default)]
pub(super) struct Health {
    damaged: Mutex<BTreeSet<u64>>,
    /// The file as it was opened last.
    blocks: Mutex<Option<WeakBlocks<FileBackend>>>,
    file: Mutex<Option<OpenedFile>>,
    room: Room,
    /// Whether the file was opened for reading.
    is_for_reading: bool,
    failures: AtomicU64,
    refused: AtomicU64,
    scrubbed: AtomicU64,
}

impl Health {
    /// The condition of a file that was opened for reading.
    pub(super) fn for_reading() -> Self {
        Self {
            is_for_reading: true,
            ..Self::default()
        }
    }

    /// Why no commit is taken, whatever the disk has room for.
    fn for_reading_alone(&self) -> Option<String> {
        self.is_for_reading
            .then(|| "the store was opened for reading".to_owned())
    }

    /// Sets the file that was just opened.
    pub(super) fn watch(&self, blocks: &Blocks<FileBackend>, file: OpenedFile) {
        *lock(&self.blocks) = Some(blocks.downgrade());
        let path = file.path().to_owned();
        self.room.measure(move || opened_file::space(&path));
        *lock(&self.file) = Some(file);
    }

    /// Whether the disk has room.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// The path of the file; `None` where the store is in none.
    pub(super) fn path(&self) -> Option<PathBuf> {
        lock(&self.file).as_ref().map(|file| file.path().to_owned())
    }

    /// Puts a new file in the place of the one that was opened, which the next opening takes for the right one.
    pub(super) fn replace_file(&self, draft: Draft) -> io::Result<()> {
        draft.replace()?;
        *lock(&self.file) = None;
        lock(&self.damaged).clear();
        Ok(())
    }

    /// The length of the file; `None` while it is not at its path.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        std::fs::metadata(self.path()?).ok().map(|found| found.len())
    }

    /// What happened to the file, unless it is still at its path.
    pub(super) fn lost(&self) -> Option<String> {
        // While the file is closed, no length is expected.
        let len = self.blocks().and_then(|blocks| blocks.disk_len()).unwrap_or(0);
        lock(&self.file).as_ref().and_then(|file| file.lost(len))
    }

    /// Why a commit of this many bytes would fail or be lost; `None` if nothing is known that would make it fail.
    pub(super) fn refusal(&self, bytes: u64) -> Option<String> {
        self.for_reading_alone()
            .or_else(|| self.lost())
            .or_else(|| self.room.refusal(bytes))
    }

    /// Why commits are refused: as long as the file is lost, or from a commit that found no room until there clearly is
    /// some.
    pub(super) fn read_only(&self) -> Option<String> {
        self.for_reading_alone()
            .or_else(|| self.lost())
            .or_else(|| self.room.shortage())
    }

    /// Counts a failure of the engine.
    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of failures of the engine since the store was opened.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Counts batches that were refused before they touched the file.
    pub(super) fn refused(&self, batches: u64) {
        self.refused.fetch_add(batches, Ordering::Relaxed);
    }

    /// The number of batches that were refused before they touched the file, since the store was opened.
    pub(super) fn refusals(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The file, while it is open.
    pub(super) fn blocks(&self) -> Option<Blocks<FileBackend>> {
        lock(&self.blocks).as_ref().and_then(WeakBlocks::upgrade)
    }

    /// Records a damaged block, and logs it the first time. `place` describes what was read.
    pub(super) fn report(&self, damage: Damage, place: impl FnOnce() -> String) {
        if lock(&self.damaged).insert(damage.block) {
            tracing::error!(
                cause = %damage,
                place = place(),
                "a block of the store file is damaged: requests that need it are refused, all others are served; \
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
