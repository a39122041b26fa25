//! Reading what has changed since the last read, for readers that keep what they derived from all records of a kind.
//!
//! A [`Tracker`](super::Tracker) names the changes of this process alone. Where several processes write, the database
//! itself must tell which records are newer than a position.

use super::{Key, Record};

/// The position up to which a reader has read the changes of a kind of record in a partition. Its numbers are opaque: a
/// reader returns what it got.
///
/// ```
/// use agentcfg_core::store::Position;
/// let position = Position { origin: 7, moment: 1042, count: 3 };
/// assert_ne!(position, Position { moment: 1043, ..position });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The database in which `moment` counts, such as a run of its server: after a failover, a crash, a restart or a
    /// restore it is another one, and all records are read again.
    pub origin: u64,
    /// The moment up to which changes were read.
    pub moment: u64,
    /// The number of records.
    pub count: u64,
}

/// The result of [`Store::changed_since`](super::Store::changed_since).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agentcfg_core::store::{Kind, MemoryStore, Partition, Store};
/// # let store = MemoryStore::new();
/// let changes = store.changed_since(&Partition::Global("store".into()), Kind::Meta, None).await?;
/// assert!(changes.is_all && changes.entries.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Whether the entries are all records that there are: those that are not among them do not exist. Else they are
    /// what was put or deleted since the position, and possibly some that were not.
    pub is_all: bool,
    /// The records, in any order; `None` for one that was deleted.
    pub entries: Vec<(Key, Option<Record>)>,
    /// Where the next call reads on; `None` when the store cannot tell, so that each call reads all records.
    pub position: Option<Position>,
}
