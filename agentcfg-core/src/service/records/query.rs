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
    const IS_UNPACKED: bool = L::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED || C::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED || C::IS_UNPACKED || D::IS_UNPACKED;

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
    const IS_UNPACKED: bool = L::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED || C::IS_UNPACKED;

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
    const IS_UNPACKED: bool = A::IS_UNPACKED || <Vec<B> as Query>::IS_UNPACKED;

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

/// Two keys, and a query of any number of keys.
impl<A: Lookup, B: Lookup, C> Query for ((A, B), Vec<C>)
where
    Vec<C>: Query<Keys = Vec<Key>>,
{
    type Keys = Vec<Key>;
    type Found = ((A::Found, B::Found), <Vec<C> as Query>::Found);
    const IS_UNPACKED: bool = A::IS_UNPACKED || B::IS_UNPACKED || <Vec<C> as Query>::IS_UNPACKED;

    fn into_keys(self) -> Self::Keys {
        let ((a, b), rest) = self;
        [a.into(), b.into()].into_iter().chain(rest.into_keys()).collect()
    }

    fn found(mut keys: Self::Keys, mut records: Records) -> Result<Self::Found, Error> {
        let rest = keys.split_off(2);
        let [a, b] = <[Key; 2]>::try_from(keys).map_err(|_| StoreError::Corrupt("a query without keys".into()))?;
        let first = (next::<A>(a, &mut records)?, next::<B>(b, &mut records)?);
        Ok((first, Vec::<C>::found(rest, records)?))
    }
}

/// Four keys, and a query of any number of keys.
impl<A: Lookup, B: Lookup, C: Lookup, D: Lookup, E> Query for ((A, B, C, D), Vec<E>)
where
    Vec<E>: Query<Keys = Vec<Key>>,
{
    type Keys = Vec<Key>;
    type Found = ((A::Found, B::Found, C::Found, D::Found), <Vec<E> as Query>::Found);
    const IS_UNPACKED: bool =
        A::IS_UNPACKED || B::IS_UNPACKED || C::IS_UNPACKED || D::IS_UNPACKED || <Vec<E> as Query>::IS_UNPACKED;

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

/// The check that the record under a key is still this one.
pub(super) fn unchanged(key: Key, found: Option<&Record>) -> Check {
    match found {
        Some(record) => Check::Version(key, record.version),
        None => Check::Absent(key),
    }
}
