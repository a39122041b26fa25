//! Keys and records that know their type.

use std::fmt;
use std::hash::BuildHasher;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::codec;
use super::packed::unpacked_length;
use crate::error::Error;
use crate::model::WorkspaceId;
use crate::store::{Check, Key, Kind, Partition, PartitionKind, Record};

/// A type whose values are stored as records of one kind.
///
/// A type that only reads part of a record is one too; a type that can also be put implements
/// [`Serialize`](serde::Serialize).
pub(in crate::service) trait Entity: DeserializeOwned + 'static {
    /// The kind of its records.
    const KIND: Kind;
    /// Whether it needs the long texts that [`packed`](super::packed) records leave to others.
    const IS_UNPACKED: bool = false;
}

/// The key of a record of type `T`.
pub(in crate::service) struct EntityKey<T> {
    key: Key,
    entity: PhantomData<fn() -> T>,
}

impl<T: Entity> EntityKey<T> {
    pub(super) fn in_workspace(workspace: WorkspaceId, item: impl Into<Box<str>>) -> Self {
        const { assert!(matches!(T::KIND.partition_kind(), PartitionKind::Workspace)) };
        Self::new(Partition::Workspace(workspace), item)
    }

    pub(super) fn global(partition: impl Into<Box<str>>, item: impl Into<Box<str>>) -> Self {
        const { assert!(matches!(T::KIND.partition_kind(), PartitionKind::Global)) };
        Self::new(Partition::Global(partition.into()), item)
    }

    pub(super) fn new(partition: Partition, item: impl Into<Box<str>>) -> Self {
        Self::of(Key::new(partition, T::KIND, item))
    }

    /// Wraps a key. The caller guarantees that it has the kind of `T`.
    pub(super) fn of(key: Key) -> Self {
        Self {
            key,
            entity: PhantomData,
        }
    }

    /// The key without its type.
    pub(in crate::service) fn raw(&self) -> &Key {
        &self.key
    }

    /// The item, which identifies the record among those of its kind in its partition.
    pub(in crate::service) fn item(&self) -> &str {
        self.key.item()
    }

    /// The check that the key has no record.
    pub(in crate::service) fn absent(&self) -> Check {
        Check::Absent(self.key.clone())
    }

    /// The check that the record under the key has not changed since a read.
    pub(in crate::service) fn unchanged(&self, found: Option<&Stored<T>>) -> Check {
        found.map_or_else(|| self.absent(), Stored::unchanged)
    }

    /// Reads the record without decoding it; see [`Encoded`].
    pub(in crate::service) fn encoded(self) -> EncodedKey<T> {
        EncodedKey(self)
    }

    /// Combines the key with the record that was read under it.
    pub(in crate::service) fn with(self, record: Record) -> Encoded<T> {
        Encoded { key: self, record }
    }

    /// The error of a key whose text is not of the expected form.
    pub(in crate::service) fn unreadable(&self, error: impl fmt::Display) -> Error {
        codec::unreadable(&self.key, error)
    }
}

/// An entity whose item of the key is the identifier of a workspace.
pub(in crate::service) trait NamedByWorkspace: Entity {}

impl<T: NamedByWorkspace> EntityKey<T> {
    /// The workspace, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn workspace(&self) -> Result<WorkspaceId, Error> {
        self.item().parse().map_err(|error| self.unreadable(error))
    }
}

impl<T> Clone for EntityKey<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            entity: PhantomData,
        }
    }
}

impl<T> From<EntityKey<T>> for Key {
    fn from(key: EntityKey<T>) -> Self {
        key.key
    }
}

/// An [`EntityKey`] whose record is read without decoding.
pub(in crate::service) struct EncodedKey<T>(EntityKey<T>);

impl<T> From<EncodedKey<T>> for Key {
    fn from(key: EncodedKey<T>) -> Self {
        key.0.key
    }
}

/// A record that is not decoded, for readers that need only its version, or decode records one at a time.
pub(in crate::service) struct Encoded<T> {
    key: EntityKey<T>,
    record: Record,
}

impl<T: Entity> Encoded<T> {
    /// Wraps a record. The caller guarantees that the key has the kind of `T`.
    pub(super) fn of(key: Key, record: Record) -> Self {
        EntityKey::of(key).with(record)
    }

    /// The key and the record without their type.
    pub(super) fn into_parts(self) -> (Key, Record) {
        (self.key.key, self.record)
    }

    /// The length of the record's text with all that was [`packed`](super::packed).
    pub(in crate::service) fn unpacked_bytes(&self) -> usize {
        unpacked_length(&self.record.value)
    }

    /// The record's key.
    pub(in crate::service) fn key(&self) -> &EntityKey<T> {
        &self.key
    }

    /// The record's version.
    pub(in crate::service) fn version(&self) -> u64 {
        self.record.version
    }

    /// The length of the record's text.
    pub(in crate::service) fn bytes(&self) -> usize {
        self.record.value.len()
    }

    /// The check that the record still has this version.
    pub(in crate::service) fn unchanged(&self) -> Check {
        Check::Version(self.key.key.clone(), self.record.version)
    }

    /// A hash of version and value. The version alone is not enough where a commit can be lost, such as by a failover
    /// to an older replica.
    pub(in crate::service) fn fingerprint(&self, hasher: &impl BuildHasher) -> u64 {
        hasher.hash_one((self.record.version, &*self.record.value))
    }

    /// The record's value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when the record is not of this type.
    pub(in crate::service) fn value(&self) -> Result<T, Error> {
        codec::decode(&self.key.key, &self.record)
    }

    /// The record's text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it is no UTF-8.
    pub(in crate::service) fn text(&self) -> Result<&str, Error> {
        codec::text(&self.key.key, &self.record)
    }

    /// The record with its value.
    ///
    /// # Errors
    ///
    /// As [`Self::value`].
    pub(in crate::service) fn decode(self) -> Result<Stored<T>, Error> {
        let value = self.value()?;
        Ok(Stored {
            key: self.key,
            version: self.record.version,
            value,
        })
    }
}

/// A decoded record with its key and its version.
pub(in crate::service) struct Stored<T> {
    pub(in crate::service) key: EntityKey<T>,
    pub(in crate::service) version: u64,
    pub(in crate::service) value: T,
}

impl<T> Stored<T> {
    /// The check that the record still has this version.
    pub(in crate::service) fn unchanged(&self) -> Check {
        Check::Version(self.key.key.clone(), self.version)
    }
}

/// The key of a counter or of a log's head.
#[derive(Clone)]
pub(in crate::service) struct NumberKey(Key);

impl NumberKey {
    pub(super) fn of(key: Key) -> Self {
        Self(key)
    }

    /// The key without its type.
    pub(in crate::service) fn raw(&self) -> &Key {
        &self.0
    }

    /// Reads the number together with the check that it stays the same.
    pub(in crate::service) fn guarded(self) -> GuardedKey {
        GuardedKey(self)
    }
}

/// A [`NumberKey`] whose number is read together with a check.
pub(in crate::service) struct GuardedKey(NumberKey);

impl From<GuardedKey> for Key {
    fn from(key: GuardedKey) -> Self {
        key.0.0
    }
}

impl From<NumberKey> for Key {
    fn from(key: NumberKey) -> Self {
        key.0
    }
}
