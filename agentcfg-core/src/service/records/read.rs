//! Typed reads: one key, several keys in one snapshot, or the records of one kind.

use std::marker::PhantomData;

use super::codec;
use super::entity::{Encoded, EncodedKey, Entity, EntityKey, GuardedKey, NumberKey, Stored};
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::service::AgentCfg;
use crate::store::{self, Check, Direction, Key, Partition, Position, Record, Scan, StoreError};

/// A typed key, which says what a read of it returns.
pub(in crate::service) trait Lookup: Into<Key> {
    /// The result of a read of this key.
    type Found;

    /// Decodes the record of the key.
    fn found(key: Key, record: Option<Record>) -> Result<Self::Found, Error>;
}

impl<T: Entity> Lookup for EntityKey<T> {
    type Found = Option<Stored<T>>;

    fn found(key: Key, record: Option<Record>) -> Result<Self::Found, Error> {
        record.map(|record| Self::of(key).with(record).decode()).transpose()
    }
}

impl<T: Entity> Lookup for EncodedKey<T> {
    type Found = Option<Encoded<T>>;

    fn found(key: Key, record: Option<Record>) -> Result<Self::Found, Error> {
        Ok(record.map(|record| EntityKey::of(key).with(record)))
    }
}

impl Lookup for NumberKey {
    /// An absent number is 0.
    type Found = u64;

    fn found(key: Key, record: Option<Record>) -> Result<u64, Error> {
        codec::number(&key, record.as_ref())
    }
}

/// A number, and the check that it is still the same.
pub(in crate::service) struct Counted {
    pub(in crate::service) number: u64,
    pub(in crate::service) unchanged: Check,
}

impl Lookup for GuardedKey {
    type Found = Counted;

    fn found(key: Key, record: Option<Record>) -> Result<Counted, Error> {
        Ok(Counted {
            number: codec::number(&key, record.as_ref())?,
            unchanged: unchanged(key, record.as_ref()),
        })
    }
}

/// What one read asks for: a typed key, a tuple of them, or a [`Vec`] of one type.
pub(in crate::service) trait Query {
    /// The type of the list of keys: an array where their number is known, so that a read allocates nothing for it.
    type Keys: AsRef<[Key]> + Send;
    /// The result of the read, in the shape of the query.
    type Found;

    /// The keys to read.
    fn into_keys(self) -> Self::Keys;

    /// Decodes the records, one for each key.
    fn found(keys: Self::Keys, records: Records) -> Result<Self::Found, Error>;
}

/// The answer to a query, in the order of its keys.
pub(in crate::service) type Records = std::vec::IntoIter<Option<Record>>;

fn next<L: Lookup>(key: Key, records: &mut Records) -> Result<L::Found, Error> {
    L::found(key, records.next().flatten())
}

impl<L: Lookup> Query for L {
    type Keys = [Key; 1];
    type Found = L::Found;

    fn into_keys(self) -> Self::Keys {
        [self.into()]
    }

    fn found([key]: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        next::<L>(key, &mut records)
    }
}

impl<A: Lookup, B: Lookup> Query for (A, B) {
    type Keys = [Key; 2];
    type Found = (A::Found, B::Found);

    fn into_keys(self) -> Self::Keys {
        [self.0.into(), self.1.into()]
    }

    fn found([a, b]: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        Ok((next::<A>(a, &mut records)?, next::<B>(b, &mut records)?))
    }
}

impl<A: Lookup, B: Lookup, C: Lookup> Query for (A, B, C) {
    type Keys = [Key; 3];
    type Found = (A::Found, B::Found, C::Found);

    fn into_keys(self) -> Self::Keys {
        [self.0.into(), self.1.into(), self.2.into()]
    }

    fn found([a, b, c]: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        Ok((
            next::<A>(a, &mut records)?,
            next::<B>(b, &mut records)?,
            next::<C>(c, &mut records)?,
        ))
    }
}

impl<A: Lookup, B: Lookup, C: Lookup, D: Lookup> Query for (A, B, C, D) {
    type Keys = [Key; 4];
    type Found = (A::Found, B::Found, C::Found, D::Found);

    fn into_keys(self) -> Self::Keys {
        [self.0.into(), self.1.into(), self.2.into(), self.3.into()]
    }

    fn found([a, b, c, d]: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        Ok((
            next::<A>(a, &mut records)?,
            next::<B>(b, &mut records)?,
            next::<C>(c, &mut records)?,
            next::<D>(d, &mut records)?,
        ))
    }
}

impl<L: Lookup> Query for Vec<L> {
    type Keys = Vec<Key>;
    type Found = Vec<L::Found>;

    fn into_keys(self) -> Self::Keys {
        self.into_iter().map(Into::into).collect()
    }

    fn found(keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        keys.into_iter().map(|key| next::<L>(key, &mut records)).collect()
    }
}

impl<A: Lookup, B: Lookup> Query for Vec<(A, B)> {
    type Keys = Vec<Key>;
    type Found = Vec<(A::Found, B::Found)>;

    fn into_keys(self) -> Self::Keys {
        self.into_iter().flat_map(|(a, b)| [a.into(), b.into()]).collect()
    }

    fn found(keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        let mut found = Vec::with_capacity(keys.len() / 2);
        let mut keys = keys.into_iter();
        while let (Some(a), Some(b)) = (keys.next(), keys.next()) {
            found.push((next::<A>(a, &mut records)?, next::<B>(b, &mut records)?));
        }
        Ok(found)
    }
}

impl<A: Lookup, B: Lookup, C: Lookup> Query for Vec<(A, B, C)> {
    type Keys = Vec<Key>;
    type Found = Vec<(A::Found, B::Found, C::Found)>;

    fn into_keys(self) -> Self::Keys {
        let keys = self.into_iter();
        keys.flat_map(|(a, b, c)| [a.into(), b.into(), c.into()]).collect()
    }

    fn found(keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        let mut found = Vec::with_capacity(keys.len() / 3);
        let mut keys = keys.into_iter();
        while let (Some(a), Some(b), Some(c)) = (keys.next(), keys.next(), keys.next()) {
            found.push((
                next::<A>(a, &mut records)?,
                next::<B>(b, &mut records)?,
                next::<C>(c, &mut records)?,
            ));
        }
        Ok(found)
    }
}

/// One key, and a query of any number of keys.
impl<A: Lookup, B> Query for (A, Vec<B>)
where
    Vec<B>: Query<Keys = Vec<Key>>,
{
    type Keys = Vec<Key>;
    type Found = (A::Found, <Vec<B> as Query>::Found);

    fn into_keys(self) -> Self::Keys {
        let (first, rest) = self;
        std::iter::once(first.into()).chain(rest.into_keys()).collect()
    }

    fn found(mut keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        let rest = keys.split_off(1);
        let [first] = <[Key; 1]>::try_from(keys).map_err(|_| StoreError::Corrupt("a query without keys".into()))?;
        Ok((next::<A>(first, &mut records)?, Vec::<B>::found(rest, records)?))
    }
}

/// Four keys, and a query of any number of keys.
impl<A: Lookup, B: Lookup, C: Lookup, D: Lookup, E> Query for ((A, B, C, D), Vec<E>)
where
    Vec<E>: Query<Keys = Vec<Key>>,
{
    type Keys = Vec<Key>;
    type Found = ((A::Found, B::Found, C::Found, D::Found), <Vec<E> as Query>::Found);

    fn into_keys(self) -> Self::Keys {
        let ((a, b, c, d), rest) = self;
        let first = [a.into(), b.into(), c.into(), d.into()];
        first.into_iter().chain(rest.into_keys()).collect()
    }

    fn found(mut keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        let rest = keys.split_off(4);
        let keys = <[Key; 4]>::try_from(keys).map_err(|_| StoreError::Corrupt("a query without keys".into()))?;
        let [a, b, c, d] = keys;
        let first = (
            next::<A>(a, &mut records)?,
            next::<B>(b, &mut records)?,
            next::<C>(c, &mut records)?,
            next::<D>(d, &mut records)?,
        );
        Ok((first, Vec::<E>::found(rest, records)?))
    }
}

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

/// The result of a scan of [`Entries`]. Its records are decoded one at a time, so that a long list is never in memory
/// twice.
pub(in crate::service) struct Scanned<T> {
    entries: Vec<(Key, Record)>,
    bytes: usize,
    has_more: bool,
    entity: PhantomData<fn() -> T>,
}

impl<T: Entity> Scanned<T> {
    fn of(scan: &Scan, found: store::Scanned) -> Self {
        let bytes = found.bytes();
        Self {
            has_more: scan.is_full(found.entries.len(), bytes),
            entries: found.entries,
            bytes,
            entity: PhantomData,
        }
    }

    /// The number of records.
    pub(in crate::service) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the scan ended at one of its bounds, so that there may be more records.
    pub(in crate::service) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Whether there are no records.
    pub(in crate::service) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The item of the last record.
    pub(in crate::service) fn last_item(&self) -> Option<Box<str>> {
        self.entries.last().map(|(key, _)| key.item().into())
    }

    /// The bytes of all values.
    pub(in crate::service) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The keys without their type.
    pub(in crate::service) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The keys, for kinds whose records have no further content.
    pub(in crate::service) fn into_keys(self) -> impl Iterator<Item = EntityKey<T>> {
        self.entries.into_iter().map(|(key, _)| EntityKey::of(key))
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
        self.entries
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
        let records = self.store().get(keys.as_ref()).await?;
        let records = complete(keys.as_ref().len(), records)?;
        Q::found(keys, records)
    }

    /// As [`Self::read`], with the checks that each of the records is still the one that was read.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(in crate::service) async fn read_checked<Q: Query>(&self, query: Q) -> Result<(Q::Found, Vec<Check>), Error> {
        let keys = query.into_keys();
        let records = complete(keys.as_ref().len(), self.store().get(keys.as_ref()).await?)?;
        let both = keys.as_ref().iter().zip(records.as_slice());
        let checks = both
            .map(|(key, record)| unchanged(key.clone(), record.as_ref()))
            .collect();
        Ok((Q::found(keys, records)?, checks))
    }

    /// Reads the records of one kind in one partition, in one snapshot.
    ///
    /// # Errors
    ///
    /// When storage fails.
    pub(in crate::service) async fn scan<T: Entity>(&self, entries: Entries<T>) -> Result<Scanned<T>, Error> {
        let found = self.store().scan(&entries.scan).await?;
        Ok(Scanned::of(&entries.scan, found))
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
        let keys = query.into_keys();
        let scan = entries.scan.with(keys.as_ref().iter().cloned());
        let mut found = self.store().scan(&scan).await?;
        let with = Q::found(keys, complete(scan.with.len(), std::mem::take(&mut found.with))?)?;
        Ok((Scanned::of(&scan, found), with))
    }
}

/// The check that the record under a key is still this one.
fn unchanged(key: Key, found: Option<&Record>) -> Check {
    match found {
        Some(record) => Check::Version(key, record.version),
        None => Check::Absent(key),
    }
}

/// Checks that there is an answer for each key. A faulty store could leave one out, and the records after it would be
/// assigned to other keys.
fn complete(keys: usize, records: Vec<Option<Record>>) -> Result<Records, Error> {
    if records.len() != keys {
        let message = format!("{} records for {keys} keys", records.len());
        return Err(StoreError::Corrupt(message).into());
    }
    Ok(records.into_iter())
}
