//! What a read by key asks for, and what it finds: one typed key, or several in one snapshot.

use super::codec;
use super::entity::{Encoded, EncodedKey, Entity, EntityKey, GuardedKey, NumberKey, Stored};
use crate::error::Error;
use crate::store::{Check, Key, Record, StoreError};

/// A typed key, which says what a read of it returns.
pub(in crate::service) trait Lookup: Into<Key> {
    /// The result of a read of this key.
    type Found;
    /// Whether the record must be [unpacked](Entity::IS_UNPACKED).
    const IS_UNPACKED: bool = false;

    /// Decodes the record of the key.
    fn found(key: Key, record: Option<Record>) -> Result<Self::Found, Error>;
}

impl<T: Entity> Lookup for EntityKey<T> {
    type Found = Option<Stored<T>>;
    const IS_UNPACKED: bool = T::IS_UNPACKED;

    fn found(key: Key, record: Option<Record>) -> Result<Self::Found, Error> {
        record.map(|record| Self::of(key).with(record).decode()).transpose()
    }
}

impl<T: Entity> Lookup for EncodedKey<T> {
    type Found = Option<Encoded<T>>;
    const IS_UNPACKED: bool = T::IS_UNPACKED;

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
    /// Whether records of the query must be [unpacked](Entity::IS_UNPACKED).
    const IS_UNPACKED: bool;

    /// The keys to read.
    fn into_keys(self) -> Self::Keys;

    /// Decodes the records, one for each key.
    fn found(keys: Self::Keys, records: &mut Records) -> Result<Self::Found, Error>;
}

/// The answer to a query, in the order of its keys.
pub(in crate::service) type Records = std::vec::IntoIter<Option<Record>>;

fn next<L: Lookup>(key: Key, records: &mut Records) -> Result<L::Found, Error> {
    L::found(key, records.next().flatten())
}

impl<L: Lookup> Query for L {
    type Keys = [Key; 1];
    type Found = L::Found;
    const IS_UNPACKED: bool = L::IS_UNPACKED;

    fn into_keys(self) -> Self::Keys {
        [self.into()]
    }

    fn found([key]: Self::Keys, records: &mut Records) -> Result<Self::Found, Error> {
        next::<L>(key, records)
    }
}

impl<L: Lookup> Query for Vec<L> {
    type Keys = Vec<Key>;
    type Found = Vec<L::Found>;
    const IS_UNPACKED: bool = L::IS_UNPACKED;

    fn into_keys(self) -> Self::Keys {
        self.into_iter().map(Into::into).collect()
    }

    fn found(keys: Self::Keys, records: &mut Records) -> Result<Self::Found, Error> {
        keys.into_iter().map(|key| next::<L>(key, records)).collect()
    }
}

/// Queries that are tuples of keys, or lists of them.
macro_rules! tuples {
    ($($count:literal: $($type:ident $key:ident),+;)+) => {$(
        impl<$($type: Lookup),+> Query for ($($type,)+) {
            type Keys = [Key; $count];
            type Found = ($($type::Found,)+);
            const IS_UNPACKED: bool = $($type::IS_UNPACKED)||+;

            fn into_keys(self) -> Self::Keys {
                let ($($key,)+) = self;
                [$($key.into()),+]
            }

            fn found([$($key),+]: Self::Keys, records: &mut Records) -> Result<Self::Found, Error> {
                Ok(($(next::<$type>($key, records)?,)+))
            }
        }

        impl<$($type: Lookup),+> Query for Vec<($($type,)+)> {
            type Keys = Vec<Key>;
            type Found = Vec<($($type::Found,)+)>;
            const IS_UNPACKED: bool = $($type::IS_UNPACKED)||+;

            fn into_keys(self) -> Self::Keys {
                self.into_iter().flat_map(<($($type,)+)>::into_keys).collect()
            }

            fn found(keys: Self::Keys, records: &mut Records) -> Result<Self::Found, Error> {
                let mut found = Vec::with_capacity(keys.len() / $count);
                let mut keys = keys.into_iter();
                while let ($(Some($key),)+) = ($(tuples!(@next $key keys),)+) {
                    found.push(<($($type,)+)>::found([$($key),+], records)?);
                }
                Ok(found)
            }
        }
    )+};
    (@next $key:ident $keys:ident) => {
        $keys.next()
    };
}

tuples! {
    2: A a, B b;
    3: A a, B b, C c;
    4: A a, B b, C c, D d;
}

/// One key or a tuple of them, and a query of any number of keys.
impl<Q, V, const COUNT: usize> Query for (Q, Vec<V>)
where
    Q: Query<Keys = [Key; COUNT]>,
    Vec<V>: Query<Keys = Vec<Key>>,
{
    type Keys = Vec<Key>;
    type Found = (Q::Found, <Vec<V> as Query>::Found);
    const IS_UNPACKED: bool = Q::IS_UNPACKED || <Vec<V> as Query>::IS_UNPACKED;

    fn into_keys(self) -> Self::Keys {
        let (first, rest) = self;
        first.into_keys().into_iter().chain(rest.into_keys()).collect()
    }

    fn found(mut keys: Self::Keys, records: &mut Records) -> Result<Self::Found, Error> {
        let rest = keys.split_off(COUNT);
        let first = <[Key; COUNT]>::try_from(keys);
        let first = first.map_err(|_| StoreError::Corrupt("a query without keys".into()))?;
        Ok((Q::found(first, records)?, Vec::<V>::found(rest, records)?))
    }
}

/// The check that the record under a key is still this one.
pub(super) fn unchanged(key: Key, found: Option<&Record>) -> Check {
    match found {
        Some(record) => Check::Version(key, record.version),
        None => Check::Absent(key),
    }
}
