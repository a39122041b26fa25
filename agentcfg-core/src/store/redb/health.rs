//! The condition of the store file: its damaged blocks, whether it is at its path, whether its disk has room for commits, and how
//! much of it was scrubbed.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redb::backends::FileBackend;

use super::blocks::{Blocks, Damage, WeakBlocks};
use super::opened_file::{self, OpenedFile};

/// The free bytes that the disk must have for any commit. A commit of a few records writes some tens of pages.
pub(super) const RESERVE: u64 = 256 << 10;

/// The first pause after a commit for which the disk had no room, although it seemed to have some. It doubles with each further one.
const MIN_HOLD: Duration = Duration::from_millis(50);

/// The longest such pause, and so how soon the store notices that there is room.
const MAX_HOLD: Duration = Duration::from_millis(400);

/// See the module's text. It stays when the file is reopened.
#[derive(Debug, Default)]
pub(super) struct Health {
    damaged: Mutex<BTreeSet<u64>>,
    /// The file as it was opened last.
    blocks: Mutex<Option<WeakBlocks<FileBackend>>>,
    file: Mutex<Option<OpenedFile>>,
    room: Mutex<Room>,
    hold: Mutex<Option<Hold>>,
    is_full: AtomicBool,
    failures: AtomicU64,
    refused: AtomicU64,
    scrubbed: AtomicU64,
}

/// Measures the free bytes of the disk; `None` if that is unknown.
type Measure = Box<dyn Fn() -> Option<u64> + Send>;

#[derive(Default)]
struct Room(Option<Measure>);

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}

/// No commit is tried until a moment, because the last one found no room.
#[derive(Debug, Clone, Copy)]
struct Hold {
    until: Instant,
    pause: Duration,
}

impl Health {
    /// Sets the file that was just opened.
    pub(super) fn watch(&self, blocks: &Blocks<FileBackend>, file: OpenedFile) {
        *lock(&self.blocks) = Some(blocks.downgrade());
        let path = file.path().to_owned();
        self.measure(move || opened_file::free_bytes(&path));
        *lock(&self.file) = Some(file);
    }

    /// Sets how the free bytes of the disk are measured.
    pub(super) fn measure(&self, measure: impl Fn() -> Option<u64> + Send + 'static) {
        lock(&self.room).0 = Some(Box::new(measure));
    }

    /// What happened to the file, unless it is still at its path.
    pub(super) fn lost(&self) -> Option<String> {
        // While the file is closed, no length is expected.
        let len = self.blocks().and_then(|blocks| blocks.disk_len()).unwrap_or(0);
        lock(&self.file).as_ref().and_then(|file| file.lost(len))
    }

    /// Why a commit of this many bytes would fail or be lost; `None` if nothing is known that would make it fail.
    pub(super) fn refusal(&self, bytes: u64) -> Option<String> {
        self.lost().or_else(|| self.full(bytes))
    }

    /// Why the disk has no room for a commit of this many bytes, unless it has.
    pub(super) fn full(&self, bytes: u64) -> Option<String> {
        let free = lock(&self.room).0.as_ref().and_then(|measure| measure());
        // Each page may be written twice: its old form stays until the commit is done.
        let needed = RESERVE.saturating_add(bytes.saturating_mul(2));
        let why = match free {
            Some(free) if free < needed => {
                format!("the disk is full: {free} bytes are free, a commit may need {needed}")
            }
            _ if self.is_held() => "the disk was full at the last commit".to_owned(),
            _ => {
                if free.is_some_and(|free| free >= RESERVE) && self.is_full.swap(false, Ordering::Relaxed) {
                    tracing::info!("the disk has room again, commits are served");
                }
                return None;
            }
        };
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::error!(
                why,
                "commits are refused until the disk has room, reads are served: remove files or enlarge the disk"
            );
        }
        Some(why)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    fn is_held(&self) -> bool {
        lock(&self.hold).is_some_and(|hold| Instant::now() < hold.until)
    }

    /// Notes that a commit found no room: no commit is tried during a pause, which doubles each time.
    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    pub(super) fn hold(&self) {
        let mut hold = lock(&self.hold);
        let pause = hold.map_or(MIN_HOLD, |hold| (hold.pause * 2).min(MAX_HOLD));
        *hold = Some(Hold {
            until: Instant::now() + pause,
            pause,
        });
    }

    /// Notes that a commit succeeded.
    pub(super) fn committed(&self) {
        *lock(&self.hold) = None;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
