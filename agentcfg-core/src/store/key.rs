//! Keys of records: their parts, their order and their encoding.

use std::fmt;

use super::{Kind, PartitionKind};
use crate::model::WorkspaceId;

/// The group that a record belongs to. An engine may distribute its data by partitions.
/// One commit may write to several partitions.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, Partition};
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let key = Key::in_workspace(workspace, Kind::Agent, "writer");
/// assert_eq!(key.partition(), &Partition::Workspace(workspace));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Partition {
    /// The records of one workspace.
    Workspace(WorkspaceId),
    /// Records that are looked up before a workspace is known, by this text: an API key by its
    /// identifier, a user's memberships by the user's identifier.
    Global(Box<str>),
}

impl Partition {
    /// The kind of this partition.
    pub fn kind(&self) -> PartitionKind {
        match self {
            Self::Workspace(_) => PartitionKind::Workspace,
            Self::Global(_) => PartitionKind::Global,
        }
    }
}

/// The key of one record.
///
/// Keys are ordered by partition, then kind, then item, and [`Key::encode`] keeps that order in
/// bytes. The text of an item and of a global partition never contains a NUL character: the rules
/// for identifiers see to that before a key is made.
///
/// ```
/// use agentcfg_core::store::{Key, Kind};
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let key = Key::in_workspace(workspace, Kind::Agent, "writer");
/// assert_eq!(Key::decode(&key.encode()), Some(key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    partition: Partition,
    kind: Kind,
    item: Box<str>,
}

impl Key {
    /// The key of `item` among the records of one kind in a partition.
    ///
    /// The partition must be one that [holds](Kind::partition_kind) records of this kind. A debug build panics when it
    /// is not; in a release build an engine may refuse the key with [`StoreError::Misuse`](super::StoreError::Misuse).
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind, Partition};
    /// let key = Key::new(Partition::Global("ada".into()), Kind::Membership, "studio");
    /// assert_eq!(key, Key::global("ada", Kind::Membership, "studio"));
    /// ```
    pub fn new(partition: Partition, kind: Kind, item: impl Into<Box<str>>) -> Self {
        debug_assert_eq!(
            partition.kind(),
            kind.partition_kind(),
            "{kind:?} has no records in {partition:?}"
        );
        Self {
            partition,
            kind,
            item: item.into(),
        }
    }

    /// A key in a workspace's partition.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let writer = Key::in_workspace(workspace, Kind::Agent, "writer");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_workspace(workspace: WorkspaceId, kind: Kind, item: impl Into<Box<str>>) -> Self {
        Self::new(Partition::Workspace(workspace), kind, item)
    }

    /// A key in a partition of its own, outside any workspace.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let name = Key::global("store", Kind::Meta, "name");
    /// assert_eq!(name.item(), "name");
    /// ```
    pub fn global(partition: impl Into<Box<str>>, kind: Kind, item: impl Into<Box<str>>) -> Self {
        Self::new(Partition::Global(partition.into()), kind, item)
    }

    /// The head of a workspace's log. Its record's value is the number of the last entry.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert_eq!(Key::log_head(workspace).kind(), Kind::LogHead);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_head(workspace: WorkspaceId) -> Self {
        Self::in_workspace(workspace, Kind::LogHead, "")
    }

    /// The entry `number` of a workspace's log; numbers start at 1.
    ///
    /// ```
    /// use agentcfg_core::store::Key;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert!(Key::log_entry(workspace, 9) < Key::log_entry(workspace, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_entry(workspace: WorkspaceId, number: u64) -> Self {
        Self::in_workspace(workspace, Kind::LogEntry, format!("{number:020}"))
    }

    /// The store's epoch, which each tag of a version names.
    ///
    /// Backups and moves to another engine leave this record out, so that the store that is made from one gets another
    /// epoch and numbers its versions apart from those of the store that it was made from.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// assert_eq!(Key::epoch().kind(), Kind::Meta);
    /// ```
    pub fn epoch() -> Self {
        Self::global("store", Kind::Meta, "epoch")
    }

    /// The partition.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind, Partition};
    /// let key = Key::global("store", Kind::Meta, "name");
    /// assert_eq!(key.partition(), &Partition::Global("store".into()));
    /// ```
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The kind of record.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// assert_eq!(Key::global("store", Kind::Meta, "name").kind(), Kind::Meta);
    /// ```
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The item: identifies the record among those of that kind in that partition.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// assert_eq!(Key::global("store", Kind::Meta, "name").item(), "name");
    /// ```
    pub fn item(&self) -> &str {
        &self.item
    }

    /// The key as bytes that sort as the keys do.
    ///
    /// A workspace's partition is `0x01` and the 16 bytes of its UUID; a global one is `0x02`, the
    /// text and `0x00`. The kind's number and the item's text follow.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let (a, b) = (Key::global("store", Kind::Meta, "a"), Key::global("store", Kind::Meta, "b"));
    /// assert!(a < b && a.encode() < b.encode());
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24 + self.item.len());
        match &self.partition {
            Partition::Workspace(id) => {
                bytes.push(1);
                bytes.extend_from_slice(id.as_uuid().as_bytes());
            }
            Partition::Global(name) => {
                bytes.push(2);
                bytes.extend_from_slice(name.as_bytes());
                bytes.push(0);
            }
        }
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(self.item.as_bytes());
        bytes
    }

    /// Reads what [`Key::encode`] wrote; `None` when the bytes are no key of a kind known here, or one in a partition
    /// that does not [hold](Kind::partition_kind) this kind.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let key = Key::global("store", Kind::Meta, "name");
    /// assert_eq!(Key::decode(&key.encode()), Some(key));
    /// assert_eq!(Key::decode(b"no key"), None);
    /// ```
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (partition, rest) = match bytes.split_first()? {
            (1, rest) => {
                let (id, rest) = rest.split_first_chunk::<16>()?;
                (
                    Partition::Workspace(WorkspaceId::new(uuid::Uuid::from_bytes(*id))),
                    rest,
                )
            }
            (2, rest) => {
                let end = rest.iter().position(|byte| *byte == 0)?;
                let name = std::str::from_utf8(&rest[..end]).ok()?;
                (Partition::Global(name.into()), &rest[end + 1..])
            }
            _ => return None,
        };
        let (kind, item) = rest.split_first()?;
        let kind = Kind::ALL
            .into_iter()
            .find(|known| *known as u8 == *kind && known.partition_kind() == partition.kind())?;
        Some(Self::new(partition, kind, std::str::from_utf8(item).ok()?))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.partition {
            Partition::Workspace(id) => write!(f, "{id}")?,
            Partition::Global(name) => write!(f, "{name}")?,
        }
        write!(f, "/{:?}/{}", self.kind, self.item)
    }
}

impl Key {
    /// The keys of the records outside the workspace's partition that belong to this record.
    pub(crate) fn linked(&self) -> Vec<Self> {
        let Partition::Workspace(workspace) = self.partition() else {
            return Vec::new();
        };
        let linked = Kind::ALL.into_iter().filter_map(|kind| {
            let link = kind.link().filter(|link| link.to == self.kind())?;
            let [partition, item] = [link.partition, link.item].map(|part| part.of(*workspace, self.item()));
            Some(Self::global(partition, kind, item))
        });
        linked.collect()
    }

    /// The workspace whose record this is, or belongs to, as far as the key alone tells.
    ///
    /// ```
    /// use agentcfg_core::store::{Key, Kind};
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert_eq!(Key::in_workspace(workspace, Kind::Agent, "writer").workspace(), Some(workspace));
    /// assert_eq!(Key::epoch().workspace(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn workspace(&self) -> Option<WorkspaceId> {
        match self.partition() {
            Partition::Workspace(workspace) => Some(*workspace),
            Partition::Global(_) => self.kind().link()?.item.workspace(self.item()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = Key> {
        let kind = proptest::sample::select(&Kind::ALL[..]);
        (kind, any::<u128>(), "[^\0]{0,6}", "[^\0]{0,6}").prop_map(|(kind, number, name, item)| {
            match kind.partition_kind() {
                PartitionKind::Workspace => {
                    Key::in_workspace(WorkspaceId::new(uuid::Uuid::from_u128(number)), kind, item)
                }
                PartitionKind::Global => Key::global(name, kind, item),
            }
        })
    }

    proptest! {
        #[test]
        fn a_key_reads_back_as_written(key in any_key()) {
            prop_assert_eq!(Key::decode(&key.encode()), Some(key));
        }

        #[test]
        fn bytes_sort_as_keys_do(a in any_key(), b in any_key()) {
            prop_assert_eq!(a.cmp(&b), a.encode().cmp(&b.encode()));
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_refused() {
        for bytes in [
            &b""[..],
            b"\x03x",
            b"\x01short",
            b"\x02no-end",
            b"\x02x\0\xff",
            b"\x02\xff\0\x20",
            b"\x01sixteen bytes id\x20",
            b"\x02x\0\x05",
        ] {
            assert_eq!(Key::decode(bytes), None, "{bytes:?}");
        }
    }
}
