//! Stamps, which tell without a read whether a cached record is current, and the marks that they are compared with.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A validity token for a record that is cached: whether the record is still current is answered without a read;
/// see guarantee 7 in the [module's text](super).
///
/// The two numbers mean something to the store alone, which is why any store can make one.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, MemoryStore, Store};
/// let store = MemoryStore::new();
/// let stamp = store.stamp(&Key::global("store", Kind::Meta, "name"));
/// assert!(stamp.is_some_and(|stamp| store.is_current(stamp)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The place of a number in the store. It is never zero, so that an optional stamp takes no more memory than a
    /// stamp.
    pub slot: NonZeroU32,
    /// The value that the number must have.
    pub mark: u64,
}

/// The numbers that the stamps of a store in this process are compared with. Clones share them.
///
/// A store that has them advances the number of a slot whenever a commit changes a record of that slot, before it
/// answers the commit; see guarantee 7 in the [module's text](super).
///
/// ```
/// use agentcfg_core::store::Marks;
/// let marks = Marks::new(2);
/// let (first, second) = (marks.stamp(0).ok_or("two slots")?, marks.stamp(1).ok_or("two slots")?);
/// marks.advance(1);
/// assert!(marks.is_current(first) && !marks.is_current(second));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct Marks(pub(super) Arc<[AtomicU64]>);

impl Marks {
    /// Makes so many slots, each with the number 0.
    pub fn new(slots: usize) -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(slots).collect())
    }

    /// A stamp for reads of this slot that begin from now on; `None` for a slot that does not exist.
    ///
    /// ```
    /// use agentcfg_core::store::Marks;
    /// assert!(Marks::new(1).stamp(0).is_some());
    /// assert!(Marks::new(1).stamp(1).is_none());
    /// ```
    pub fn stamp(&self, slot: usize) -> Option<Stamp> {
        let mark = self.0.get(slot)?.load(Ordering::SeqCst);
        let slot = NonZeroU32::new(u32::try_from(slot + 1).ok()?)?;
        Some(Stamp { slot, mark })
    }

    /// Ends all stamps of a slot.
    ///
    /// ```
    /// use agentcfg_core::store::Marks;
    /// let marks = Marks::new(1);
    /// let stamp = marks.stamp(0).ok_or("one slot")?;
    /// marks.advance(0);
    /// assert!(!marks.is_current(stamp));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn advance(&self, slot: usize) {
        if let Some(mark) = self.0.get(slot) {
            mark.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether the number of the stamp's slot is the one that the stamp was made with.
    ///
    /// ```
    /// use agentcfg_core::store::Marks;
    /// let marks = Marks::new(1);
    /// assert!(marks.stamp(0).is_some_and(|stamp| marks.is_current(stamp)));
    /// ```
    pub fn is_current(&self, stamp: Stamp) -> bool {
        let mark = self.0.get(stamp.slot.get() as usize - 1);
        mark.is_some_and(|mark| mark.load(Ordering::SeqCst) == stamp.mark)
    }
}
