//! The storage contract: reads, scans and commits, which fit an embedded file, SQL and a distributed
//! key-value engine alike. Besides these three methods a store writes [`Store::inner`]: the store that it
//! wraps, if any, to which the default bodies of all others forward. Most of those spare reads where an
//! engine can tell what changed.
//!
//! A store keeps [`Record`]s under [`Key`]s. It contains no rule about agents or permissions: the rules
//! are in the `service` module, which turns each mutation into exactly one [`Batch`].
//!
//! # What a store guarantees
//!
//! 1. **One snapshot a read.** All records that one call of [`Store::get`] or [`Store::scan`] returns are
//!    of one moment, and that moment is not before the call began: a read that starts after a
//!    commit was answered sees that commit, on every instance that shares the storage.
//! 2. **All or nothing.** A batch whose checks fail, or whose bounded counter would leave its
//!    bounds, changes nothing. Batches take effect one after another.
//! 3. **Durable on `Ok`.** When [`Store::commit`] returns `Ok`, the change survives a crash of the
//!    process and, for stores on disk, of the machine.
//! 4. **Unknown outcomes are reported.** When a commit may or may not have taken effect, the error is
//!    [`StoreError::OutcomeUnknown`]. Every other error means that nothing changed.
//! 5. **Versions only grow.** Each put gives its record a version that is greater than each that
//!    the same key ever had, deletions included.
//! 6. **Logs have no gaps.** The entries of a log are numbered 1, 2, 3, …; the order of the numbers
//!    is the order of the commits. A record that [`Write::PutRevised`] puts has the number of its batch's entry.
//! 7. **Stamps are validity tokens.** As long as [`Store::is_current`] answers true for a stamp, a record that
//!    was read after [`Store::stamp`] gave it is the one that a read would find now. A stamp ends
//!    before the commit that changes its key is answered, and when the store cannot be read.
//! 8. **Watchers miss nothing.** A [`Watcher`] is notified after each commit that writes records of its kind in its workspace;
//!    a read that starts after the notification sees the commit.
//! 9. **Trackers know each change.** Before a commit that writes records of a [`Tracker`]'s kind in its workspace is answered, the
//!    tracker has their items, and a read that starts after [`Tracker::take`] gave them sees the commit. After a failure, and
//!    for a commit whose outcome is unknown, it has [`Changed::All`].
//!
//! 10. **Changes are complete.** The entries of [`Store::changed_since`], from a call without a position on, each further call
//!     with the position of the one before, and each put over those before: they are the records that a scan would find at the
//!     last call.
//! 11. **A hold lets others wait.** While a [`Hold`] of a log lives, no other batch that appends to this log begins; those on
//!     their way may still take effect. It ends when it is dropped, when its process ends, and by itself within seconds where other
//!     processes wait for it. It is for progress alone: what its holder has decided is checked like any other batch.
//!
//! # What a caller owes
//!
//! 1. **Kinds stay in their partitions.** Each key, and each scan, pairs a [`Kind`] with a partition that
//!    [holds](Kind::partition_kind) records of this kind.
//! 2. **One write for each key.** A batch names each key in at most one write. A [`Write::Append`] names the log's head,
//!    so a batch has at most one for each log. A check may name a key that a write names as well.
//! 3. **A revision needs an entry.** A batch with a [`Write::PutRevised`] appends to the log of its workspace; see
//!    [`Batch::check_revised`].
//! 4. **A decision is of one moment.** Each call of [`Store::get`] and [`Store::scan`] is a snapshot of its own. What was read by
//!    several calls is of one moment only if something says so: the head of a log that is the same in all of them, or the entries
//!    between. A batch checks each record that it was decided on, or one that each change of those writes, such as the head.
//!
//! A store may refuse anything else with [`StoreError::Misuse`]. The stores of this crate refuse a batch that names a
//! key in two writes.
//!
//! The module `conformance` (a feature of this crate) turns this list into tests which any
//! implementation can run.
//!
//! # For engines
//!
//! [`plan`] decides a batch on records that were read, [`group`] lets concurrent batches share a transaction,
//! [`envelope`] is a record as bytes, and [`StreamWriter`] and [`StreamReader`] are a whole store as bytes, for backups
//! and migrations between engines. The crates `agentcfg-postgres` and `agentcfg-etcd` are made of these.

mod batch;
mod changes;
#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
pub mod envelope;
mod error;
mod format;
pub mod group;
mod hold;
mod key;
mod kind;
mod memory;
#[cfg(test)]
mod model_tests;
pub mod plan;
mod pointers;
mod record;
#[cfg(feature = "redb")]
pub mod redb;
mod scan;
mod stamp;
mod stamp_check;
mod stream;
#[cfg(all(test, feature = "conformance", feature = "redb"))]
mod tests;
mod track;
mod transfer;
mod watch;
mod windows;

pub use self::batch::{Batch, Check, CommitError, Committed, Write, with_revision};
pub use self::changes::{Changes, Position};
pub use self::contract::Store;
pub use self::error::StoreError;
pub use self::format::{BUILD, FORMAT, OtherFormat};
pub use self::hold::{HeldLog, Hold, Holds};
pub use self::key::{Key, Partition};
pub(crate) use self::kind::ACTIVE_AGENTS;
pub use self::kind::{KeyPart, Kind, Link, PartitionKind};
pub use self::memory::MemoryStore;
pub use self::record::Record;
pub use self::scan::{Direction, Scan, Scanned};
pub use self::stamp::{Marks, Stamp};
pub(crate) use self::stamp_check::Stamps;
pub use self::stream::{BUILD_FIELD, BuildField, Digest, Digesting, StreamFault, StreamReader, StreamWriter};
pub use self::track::{Changed, Tracker, Trackers};
pub use self::transfer::{TransferError, Transferred};
pub use self::watch::{Notifier, Watcher};
pub use self::windows::{SharedWindow, SharedWindows};
