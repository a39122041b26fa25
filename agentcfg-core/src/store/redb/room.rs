//! Watches the free space of the disk: refuses commits on a full disk and logs warnings.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The free bytes that the disk must have for any commit. A commit of a few records writes some tens of pages.
pub(super) const RESERVE: u64 = 256 << 10;

/// The free bytes beyond twice the need of a refused commit, after which the disk counts as one with room.
const MARGIN: u64 = 1 << 20;

/// The log warns when less than this many bytes are free, or a tenth of a small disk.
const LOW: u64 = 1 << 30;

/// The first pause after a commit for which the disk had no room, although it seemed to have some. It doubles with each
/// further one.
const MIN_HOLD: Duration = Duration::from_millis(50);

/// The longest such pause, and so how soon the store tries a commit again.
const MAX_HOLD: Duration = Duration::from_millis(400);

/// The bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    /// The bytes that this process can still write.
    pub(super) free: u64,
    /// All bytes.
    pub(super) total: u64,
}

/// Measures a disk; `None` if that is not possible.
type Measure = Box<dyn Fn() -> Option<Space> + Send>;

/// See the module's text.
#[derive(Default)]
pub(super) struct Room {
    measure: Mutex<Option<Measure>>,
    hold: Mutex<Option<Hold>>,
    shortage: Mutex<Option<Shortage>>,
    is_low: AtomicBool,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("shortage", &self.shortage).finish()
    }
}

/// No commit is tried until a moment, because the last one found no room.
#[derive(Debug, Clone, Copy)]
struct Hold {
    until: Instant,
    pause: Duration,
}

/// A commit was refused for want of room, and clearly more than it needs has not been free since.
#[derive(Debug, Clone)]
struct Shortage {
    why: String,
    /// The bytes of the longest commit that was refused.
    bytes: u64,
    /// The free bytes when a write failed, although the disk seemed to have room; as long as no such commit has
    /// succeeded.
    failed_at: Option<u64>,
}

impl Shortage {
    /// Whether so much is free that its commits certainly find room.
    fn is_over(&self, free: u64) -> bool {
        let plenty = needed(self.bytes).saturating_mul(2).saturating_add(MARGIN);
        free >= self.failed_at.unwrap_or(0).saturating_add(plenty)
    }
}

/// The free bytes that a commit of this many bytes needs: each page may be written twice, since its old form stays
/// until the commit is done.
fn needed(bytes: u64) -> u64 {
    RESERVE.saturating_add(bytes.saturating_mul(2))
}

impl Room {
    /// Sets how the disk is measured.
    pub(super) fn measure(&self, measure: impl Fn() -> Option<Space> + Send + 'static) {
        *lock(&self.measure) = Some(Box::new(measure));
    }

    /// The bytes of the disk, if they are known.
    pub(super) fn space(&self) -> Option<Space> {
        lock(&self.measure).as_ref().and_then(|measure| measure())
    }

    /// Why the disk has no room for a commit of this many bytes, unless it may have. A refusal begins a shortage.
    pub(super) fn refusal(&self, bytes: u64) -> Option<String> {
        let why = match self.space() {
            Some(Space { free, .. }) if free < needed(bytes) => {
                let needed = needed(bytes);
                format!("the disk is full: {free} bytes are free, a commit may need {needed}")
            }
            _ if self.is_held() => "the disk was full at the last commit".to_owned(),
            _ => return None,
        };
        self.fell_short(&why, bytes, None);
        Some(why)
    }

    /// Whether the disk has room for a commit of this many bytes, as far as is known. No shortage begins.
    pub(super) fn has(&self, bytes: u64) -> bool {
        !self.is_held() && self.space().is_none_or(|space| space.free >= needed(bytes))
    }

    /// Why commits were refused for want of room, until clearly more is free than they need. Without a commit a disk
    /// counts as full that has no room for the shortest one.
    pub(super) fn shortage(&self) -> Option<String> {
        let space = self.space();
        if let Some(space) = space {
            self.warn_if_low(space);
            if space.free < needed(0) {
                return self.refusal(0);
            }
        }
        let mut shortage = lock(&self.shortage);
        let found = shortage.as_ref()?;
        let is_over = match space {
            Some(space) => found.is_over(space.free),
            None => !self.is_held(),
        };
        if !is_over {
            return Some(found.why.clone());
        }
        *shortage = None;
        tracing::info!("the disk has room again, commits are served");
        None
    }

    fn fell_short(&self, why: &str, bytes: u64, failed_at: Option<u64>) {
        let mut shortage = lock(&self.shortage);
        let before = shortage.take();
        if before.is_none() {
            tracing::error!(
                why,
                "commits are refused until the disk has room, reads are served: remove files or enlarge the disk"
            );
        }
        *shortage = Some(Shortage {
            why: why.to_owned(),
            bytes: before.as_ref().map_or(0, |before| before.bytes).max(bytes),
            failed_at: failed_at.or(before.and_then(|before| before.failed_at)),
        });
    }

    fn warn_if_low(&self, Space { free, total }: Space) {
        let low = LOW.min(total / 10);
        if free < low && !self.is_low.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                free_bytes = free,
                total_bytes = total,
                "the disk of the store file is nearly full: remove files or enlarge it, since commits will be refused when it is full"
            );
        } else if free >= low.saturating_add(low / 2) {
            self.is_low.store(false, Ordering::Relaxed);
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    fn is_held(&self) -> bool {
        lock(&self.hold).is_some_and(|hold| Instant::now() < hold.until)
    }

    /// Notes that a commit of this many bytes found no room: no commit is tried during a pause, which doubles each
    /// time.
    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    pub(super) fn failed(&self, bytes: u64) {
        let mut hold = lock(&self.hold);
        let pause = hold.map_or(MIN_HOLD, |hold| (hold.pause * 2).min(MAX_HOLD));
        *hold = Some(Hold {
            until: Instant::now() + pause,
            pause,
        });
        drop(hold);
        let free = self.space().map(|space| space.free);
        self.fell_short("the disk was full at the last commit", bytes, free);
    }

    /// Notes that a commit of this many bytes succeeded.
    pub(super) fn committed(&self, bytes: u64) {
        *lock(&self.hold) = None;
        if let Some(shortage) = &mut *lock(&self.shortage)
            && bytes >= shortage.bytes
        {
            shortage.failed_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The room of a disk of 100 MiB, and its free bytes.
    fn room(free: u64) -> (Room, impl Fn(u64)) {
        let (room, free) = (Room::default(), Arc::new(AtomicU64::new(free)));
        let measured = Arc::clone(&free);
        room.measure(move || {
            Some(Space {
                free: measured.load(Ordering::SeqCst),
                total: 100 * MIB,
            })
        });
        (room, move |bytes| free.store(bytes, Ordering::SeqCst))
    }

    #[test]
    fn a_refused_commit_is_a_shortage_until_clearly_more_is_free() {
        let (room, free) = room(2 * MIB);
        assert_eq!(room.refusal(MIB / 2), None);
        assert_eq!(room.shortage(), None);
        assert!(room.refusal(MIB).unwrap().contains("the disk is full"));
        assert!(room.shortage().unwrap().contains("the disk is full"));
        // A shorter commit is served, and readiness goes by the one that was refused.
        assert_eq!(room.refusal(0), None);
        room.committed(0);
        assert!(room.shortage().is_some());
        free(needed(MIB) + MIB);
        assert_eq!(room.refusal(MIB), None);
        assert!(room.shortage().is_some(), "that is not clearly more");
        free(2 * needed(MIB) + MARGIN);
        assert_eq!(room.shortage(), None);
        free(needed(MIB));
        assert_eq!(room.shortage(), None);
    }

    #[test]
    fn a_disk_is_full_without_a_commit() {
        let (room, free) = room(RESERVE - 1);
        assert!(room.shortage().unwrap().contains("the disk is full"));
        free(RESERVE);
        assert!(room.shortage().is_some());
        free(2 * RESERVE + MARGIN);
        assert_eq!(room.shortage(), None);
    }

    #[test]
    fn a_write_that_fails_on_a_disk_with_room_needs_more_of_it_or_a_commit() {
        let (room, free) = room(50 * MIB);
        room.failed(100);
        assert!(room.refusal(0).unwrap().contains("at the last commit"));
        assert!(room.shortage().is_some());
        free(53 * MIB);
        assert_eq!(room.shortage(), None);
        room.failed(100);
        room.committed(99);
        assert!(room.shortage().is_some(), "a shorter one has succeeded");
        room.committed(100);
        assert_eq!(room.shortage(), None);
    }

    #[test]
    fn a_disk_that_cannot_be_measured_has_room_after_a_commit() {
        let room = Room::default();
        room.failed(100);
        assert!(room.shortage().is_some());
        room.committed(100);
        assert_eq!(room.shortage(), None);
    }

    #[test]
    fn a_disk_is_low_before_it_is_full() {
        let (room, free) = room(20 * MIB);
        let is_low = || {
            assert_eq!(room.shortage(), None);
            room.is_low.load(Ordering::Relaxed)
        };
        assert!(!is_low());
        free(10 * MIB - 1);
        assert!(is_low());
        free(12 * MIB);
        assert!(is_low(), "a little more is no change");
        free(15 * MIB);
        assert!(!is_low());
    }
}
