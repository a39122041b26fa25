//! Typed reads: of keys, or of the records of one kind.

use std::marker::PhantomData;

use super::codec::complete;
use super::entity::{Encoded, Entity, EntityKey};
use super::packed::{is_packed, unpacked_length};
use super::query::{Query, unchanged};
use super::unpack::{ATTEMPTS, removed_meanwhile};
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::store::{self, Check, Direction, Key, Partition, Position, Record, Scan};

/// The records of one kind in one partition, in the order of their items.
pub(in crate::service) struct Entries<T> {
    scan: Scan,
    entity: PhantomData<fn() -> T>,
}

impl<T> Clone for Entries<T> {
    fn clone(&self) -> Self {
        Self {
            scan: self.scan.clone(),
            entity: PhantomData,
        }
    }
}

impl<T: Entity> Entries<T> {
    /// All records of a workspace.
    pub(in crate::service) fn in_workspace(workspace: WorkspaceId) -> Self {
        Self::of(Partition::Workspace(workspace))
    }

    /// All records of a partition.
    pub(in crate::service) fn of(partition: Partition) -> Self {
        Self {
            scan: Scan::all(partition, T::KIND),
            entity: PhantomData,
        }
    }

    /// Starts after the record of this key, in the direction of the scan.
    #[must_use]
    pub(in crate::service) fn after(mut self, key: &EntityKey<T>) -> Self {
        self.scan.after = Some(key.item().into());
        self
    }

    /// Starts after this item, in the direction of the scan.
    #[must_use]
    pub(in crate::service) fn after_item(mut self, item: Option<Box<str>>) -> Self {
        self.scan.after = item;
        self
    }

    /// Reverses the order: from the greatest item to the smallest.
    #[must_use]
    pub(in crate::service) fn descending(mut self) -> Self {
        self.scan.direction = Direction::Descending;
        self
    }

    /// Bounds the number of records.
    #[must_use]
    pub(in crate::service) fn limit(mut self, limit: usize) -> Self {
        self.scan.limit = limit;
        self
    }

    /// The bound of the number of records.
    pub(in crate::service) fn most(&self) -> usize {
        self.scan.limit
    }

    /// Bounds the number of records and the bytes of their values. The record that exceeds the bytes is still returned.
    #[must_use]
    pub(in crate::service) fn bounded(mut self, limit: usize, bytes: usize) -> Self {
        self.scan.max_bytes = bytes;
        self.limit(limit)
    }
}

/// What a scan has found, of whichever kind. Scans of all kinds share its code.
struct Found {
    entries: Vec<(Key, Record)>,
    bytes: usize,
    max_bytes: usize,
    has_more: bool,
}

impl Found {
    fn of(scan: &Scan, found: store::Scanned) -> Self {
        let bytes = found.bytes();
        Self {
            has_more: scan.is_full(found.entries.len(), bytes),
            entries: found.entries,
            bytes,
            max_bytes: scan.max_bytes,
        }
    }

    fn into_cut(mut self) -> Self {
        let (mut bytes, mut count) = (0, 0);
        for (_, record) in &self.entries {
            if bytes >= self.max_bytes {
                break;
            }
            bytes += unpacked_length(&record.value);
            count += 1;
        }
        self.has_more |= count < self.entries.len();
        self.entries.truncate(count);
        Self { bytes, ..self }
    }
}

/// The result of a scan of [`Entries`]. Its records are decoded one at a time, so that a long list is never in memory
/// twice.
pub(in crate::service) struct Scanned<T> {
    found: Found,
    entity: PhantomData<fn() -> T>,
}

impl<T: Entity> Scanned<T> {
    fn of(found: Found) -> Self {
        Self {
            found,
            entity: PhantomData,
        }
    }

    /// The first records, up to the length that the scan allows once they are unpacked. The record that exceeds it is
    /// among them.
    pub(in crate::service) fn into_cut(self) -> Self {
        Self::of(self.found.into_cut())
    }

    /// The number of records.
    pub(in crate::service) fn len(&self) -> usize {
        self.found.entries.len()
    }

    /// Whether the scan ended at one of its bounds, so that there may be more records.
    pub(in crate::service) fn has_more(&self) -> bool {
        self.found.has_more
    }

    /// Whether there are no records.
    pub(in crate::service) fn is_empty(&self) -> bool {
        self.found.entries.is_empty()
    }

    /// The key of the first record.
    pub(in crate::service) fn first_key(&self) -> Option<EntityKey<T>> {
        self.found.entries.first().map(|(key, _)| EntityKey::of(key.clone()))
    }

    /// The key of the last record.
    pub(in crate::service) fn last_key(&self) -> Option<EntityKey<T>> {
        self.found.entries.last().map(|(key, _)| EntityKey::of(key.clone()))
    }

    /// The item of the last record.
    pub(in crate::service) fn last_item(&self) -> Option<Box<str>> {
        self.found.entries.last().map(|(key, _)| key.item().into())
    }

    /// The bytes of all values.
    pub(in crate::service) fn bytes(&self) -> usize {
        self.found.bytes
    }

    /// The keys without their type.
    pub(in crate::service) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.found.entries.iter().map(|(key, _)| key)
    }

    /// The keys, for kinds whose records have no further content.
    pub(in crate::service) fn into_keys(self) -> impl Iterator<Item = EntityKey<T>> {
        self.found.entries.into_iter().map(|(key, _)| EntityKey::of(key))
    }

    /// The values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when a record is not of this type.
    pub(in crate::service) fn into_values(self) -> Result<Vec<T>, Error> {
        self.into_iter().map(|entry| entry.value()).collect()
    }
}

impl<T: Entity> IntoIterator for Scanned<T> {
    type Item = Encoded<T>;
    type IntoIter = std::iter::Map<std::vec::IntoIter<(Key, Record)>, fn((Key, Record)) -> Encoded<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.found
            .entries
            .into_iter()
            .map(|(key, record)| EntityKey::of(key).with(record))
    }
}

/// The records of one kind that have changed, and the position for the next read of changes.
pub(in crate::service) struct ChangedRecords<T> {
    /// Whether these are all records instead of the changed ones.
    pub(in crate::service) is_all: bool,
    entries: Vec<(Key, Option<Record>)>,
    pub(in crate::service) position: Option<Position>,
    entity: PhantomData<fn() -> T>,
}

impl<T: Entity> ChangedRecords<T> {
    /// The bytes of all values.
    pub(in crate::service) fn bytes(&self) -> usize {
        self.entries
            .iter()
            .flat_map(|(_, record)| record)
            .map(|record| record.value.len())
            .sum()
    }

    /// The items with their records; `None` for a deleted record.
    pub(in crate::service) fn into_items(self) -> impl Iterator<Item = (Box<str>, Option<Encoded<T>>)> {
        self.entries.into_iter().map(|(key, record)| {
            let item = key.item().into();
            (item, record.map(|record| EntityKey::of(key).with(record)))
        })
    }
}

impl AgentCfg {
    /// Reads the records of one kind in a workspace that have changed since a position, or all of them.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub(in crate::service) async fn changed_since<T: Entity>(
        &self,
        workspace: WorkspaceId,
        position: Option<Position>,
    ) -> Result<ChangedRecords<T>, Error> {
        const { assert!(!T::IS_UNPACKED) };
        let partition = Partition::Workspace(workspace);
        let changes = self.store().changed_since(&partition, T::KIND, position).await?;
        Ok(ChangedRecords {
            is_all: changes.is_all,
            entries: changes.entries,
            position: changes.position,
            entity: PhantomData,
        })
    }

    /// Reads the records of a query in one snapshot.
    ///
    /// # Errors
    ///
    /// When storage fails, or a record is not of its type.
    pub(in crate::service) async fn read<Q: Query>(&self, query: Q) -> Result<Q::Found, Error> {
        let keys = query.into_keys();
        let records = self.get_unpacked(keys.as_ref(), Q::IS_UNPACKED).await?;
        Q::found(keys, &mut records.into_iter())
    }

    /// Reads the records of keys, with what was packed.
    async fn get_unpacked(&self, keys: &[Key], is_unpacked: bool) -> Result<Vec<Option<Record>>, Error> {
        for _ in 0..ATTEMPTS {
            let mut records = complete(keys.len(), self.store().get(keys).await?)?;
            if !is_unpacked {
                return Ok(records);
            }
            let is_packed = |record: &Option<Record>| record.as_ref().is_some_and(|record| is_packed(&record.value));
            let places = records.iter().enumerate().filter(|(_, record)| is_packed(record));
            let places: Vec<usize> = places.map(|(place, _)| place).collect();
            let found = places
                .iter()
                .filter_map(|place| Some((keys[*place].clone(), records[*place].take()?)));
            let Some(found) = self.unpacked(found.collect()).await? else {
                continue;
            };
            for (place, (_, record)) in places.into_iter().zip(found) {
                records[place] = Some(record);
            }
            return Ok(records);
        }
        Err(removed_meanwhile())
    }

    /// As [`Self::read`], with the checks that each of the records is still the one that was read.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(in crate::service) async fn read_checked<Q: Query>(&self, query: Q) -> Result<(Q::Found, Vec<Check>), Error> {
        let keys = query.into_keys();
        let records = self.get_unpacked(keys.as_ref(), Q::IS_UNPACKED).await?;
        let both = keys.as_ref().iter().zip(&records);
        let checks = both
            .map(|(key, record)| unchanged(key.clone(), record.as_ref()))
            .collect();
        Ok((Q::found(keys, &mut records.into_iter())?, checks))
    }

    /// Reads the records of one kind in one partition, in one snapshot.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub(in crate::service) async fn scan<T: Entity>(&self, entries: Entries<T>) -> Result<Scanned<T>, Error> {
        let (found, _) = self.scan_unpacked(&entries.scan, T::IS_UNPACKED).await?;
        Ok(Scanned::of(found))
    }

    /// As [`Self::scan`], with the records of a query in the same snapshot.
    ///
    /// # Errors
    ///
    /// As [`Self::scan`] and [`Self::read`].
    pub(in crate::service) async fn scan_with<T: Entity, Q: Query>(
        &self,
        entries: Entries<T>,
        query: Q,
    ) -> Result<(Scanned<T>, Q::Found), Error> {
        const { assert!(!Q::IS_UNPACKED) };
        let keys = query.into_keys();
        let scan = entries.scan.with(keys.as_ref().iter().cloned());
        let (found, with) = self.scan_unpacked(&scan, T::IS_UNPACKED).await?;
        Ok((Scanned::of(found), Q::found(keys, &mut with.into_iter())?))
    }

    /// The records of a scan, with what was packed, and those of the keys that the scan reads with them.
    async fn scan_unpacked(&self, scan: &Scan, is_unpacked: bool) -> Result<(Found, Vec<Option<Record>>), Error> {
        for _ in 0..ATTEMPTS {
            let mut scanned = self.store().scan(scan).await?;
            let with = complete(scan.with.len(), std::mem::take(&mut scanned.with))?;
            let mut found = Found::of(scan, scanned);
            if is_unpacked {
                found = found.into_cut();
                let Some(entries) = self.unpacked(found.entries).await? else {
                    continue;
                };
                found.entries = entries;
            }
            return Ok((found, with));
        }
        Err(removed_meanwhile())
    }
}
