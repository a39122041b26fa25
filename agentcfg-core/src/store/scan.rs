//! Scans: bounded reads of records in their order.

use super::{Key, Kind, Partition, Record};

/// A bounded, ordered read of the records of one kind in one partition.
///
/// ```
/// use agentcfg_core::model::WorkspaceId;
/// use agentcfg_core::store::{Direction, Kind, Partition, Scan};
/// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let last_ten = Scan {
///     direction: Direction::Descending,
///     limit: 10,
///     ..Scan::all(Partition::Workspace(workspace), Kind::LogEntry)
/// };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The partition to read.
    pub partition: Partition,
    /// The kind of record to read.
    pub kind: Kind,
    /// Start after the record of this item, in the direction of the scan; `None` starts at the first record in that
    /// direction.
    pub after: Option<Box<str>>,
    /// The direction.
    pub direction: Direction,
    /// The greatest number of records.
    pub limit: usize,
    /// The scan ends with the record whose value takes the total length to this many bytes. So it returns one record
    /// more than fits, and a reader that goes on after it always advances. With 0, as with a limit of 0, it returns
    /// none.
    pub max_bytes: usize,
    /// Keys to read in the same snapshot, such as the log head that says which revision was read.
    pub with: Vec<Key>,
}

impl Scan {
    /// Reads everything of one kind in one partition, in ascending order.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::store::{Kind, MemoryStore, Partition, Scan, Store};
    /// let store = MemoryStore::new();
    /// let everything = Scan::all(Partition::Global("store".into()), Kind::Meta);
    /// assert!(store.scan(&everything).await?.entries.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(partition: Partition, kind: Kind) -> Self {
        Self {
            partition,
            kind,
            after: None,
            direction: Direction::Ascending,
            limit: usize::MAX,
            max_bytes: usize::MAX,
            with: Vec::new(),
        }
    }

    /// Reads these keys in the same snapshot.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::model::WorkspaceId;
    /// # use agentcfg_core::store::{Key, Kind, MemoryStore, Partition, Scan, Store};
    /// # let store = MemoryStore::new();
    /// # let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let agents = Scan::all(Partition::Workspace(workspace), Kind::Agent).with([Key::log_head(workspace)]);
    /// let found = store.scan(&agents).await?;
    /// assert_eq!(found.with, [None], "nothing was committed in this workspace");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.with.extend(keys);
        self
    }

    /// Whether a scan ends that has found so many records, with values of so many bytes together. A reader that finds
    /// this of a result reads on; else the result had all records.
    ///
    /// ```
    /// use agentcfg_core::store::{Kind, Partition, Scan};
    /// let scan = Scan { limit: 3, max_bytes: 100, ..Scan::all(Partition::Global("ada".into()), Kind::Membership) };
    /// assert!(!scan.is_full(2, 99));
    /// assert!(scan.is_full(3, 0) && scan.is_full(1, 100));
    /// ```
    pub fn is_full(&self, records: usize, bytes: usize) -> bool {
        records >= self.limit || bytes >= self.max_bytes
    }

    /// The first records of a sequence, up to the bounds of this scan.
    ///
    /// # Errors
    ///
    /// The first one of the sequence that is met.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind, Partition, Record, Scan, StoreError};
    /// let scan = Scan { limit: 1, ..Scan::all(Partition::Global("store".into()), Kind::Meta) };
    /// let record = |name: &str| {
    ///     let value = b"true"[..].into();
    ///     Ok::<_, StoreError>((Key::global("store", Kind::Meta, name), Record { version: 1, value }))
    /// };
    /// assert_eq!(scan.take(["a", "b"].map(record))?.len(), 1);
    /// # Ok::<(), StoreError>(())
    /// ```
    pub fn take<E>(&self, found: impl IntoIterator<Item = Result<(Key, Record), E>>) -> Result<Vec<(Key, Record)>, E> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut found = found.into_iter();
        while !self.is_full(entries.len(), bytes) {
            let Some(entry) = found.next().transpose()? else { break };
            bytes += entry.1.value.len();
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The direction of a [`Scan`].
///
/// ```
/// use agentcfg_core::store::{Direction, Kind, Partition, Scan};
/// let members = Scan::all(Partition::Global("ada".into()), Kind::Membership);
/// let backwards = Scan { direction: Direction::Descending, ..members };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest item to the greatest.
    Ascending,
    /// From the greatest item to the smallest.
    Descending,
}

/// The result of a [`Scan`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agentcfg_core::store::{Kind, MemoryStore, Partition, Scan, Store};
/// # let store = MemoryStore::new();
/// # let scan = Scan::all(Partition::Global("store".into()), Kind::Meta);
/// for (key, record) in store.scan(&scan).await?.entries {
///     println!("{key:?} has version {}", record.version);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// The records in the order of the scan.
    pub entries: Vec<(Key, Record)>,
    /// The records of [`Scan::with`], in that order.
    pub with: Vec<Option<Record>>,
}

impl Scanned {
    /// The length of the values of all entries together, in bytes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_core::store::{Kind, MemoryStore, Partition, Scan, Store};
    /// # let store = MemoryStore::new();
    /// let scan = Scan { max_bytes: 1 << 20, ..Scan::all(Partition::Global("store".into()), Kind::Meta) };
    /// let found = store.scan(&scan).await?;
    /// assert!(!scan.is_full(found.entries.len(), found.bytes()), "these are all");
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|(_, record)| record.value.len()).sum()
    }
}
