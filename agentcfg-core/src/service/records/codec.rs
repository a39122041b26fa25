//! Values as bytes: JSON for records, decimal digits for numbers.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind};
use crate::store::{Key, Record, StoreError};

/// Encodes a record's value.
///
/// # Errors
///
/// [`ErrorKind::Internal`] for a value that JSON cannot express.
pub(in crate::service) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(not_written)
}

/// Checks that there is an answer for each key. A faulty store could leave one out, and the records after it would be
/// assigned to other keys.
pub(super) fn complete(keys: usize, records: Vec<Option<Record>>) -> Result<Vec<Option<Record>>, Error> {
    if records.len() != keys {
        let message = format!("{} records for {keys} keys", records.len());
        return Err(StoreError::Corrupt(message).into());
    }
    Ok(records)
}

/// The error of a record that cannot be encoded.
pub(in crate::service) fn not_written(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "the record could not be written").because(error)
}

/// The error of text that this service has encoded and cannot decode.
pub(in crate::service) fn not_read(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "stored data could not be read").because(error)
}

/// The error of a key or a record that cannot be decoded.
pub(super) fn unreadable(key: &Key, error: impl Display) -> Error {
    Error::new(ErrorKind::Internal, "stored data could not be read").because(format!("{key:?}: {error}"))
}

/// Decodes a record's value.
///
/// # Errors
///
/// [`ErrorKind::Internal`] when the record is not of this type.
pub(in crate::service) fn decode<T: DeserializeOwned>(key: &Key, record: &Record) -> Result<T, Error> {
    // `from_str` checks the encoding once, `from_slice` would check it string by string.
    serde_json::from_str(text(key, record)?).map_err(|error| unreadable(key, error))
}

/// A record's value as text.
///
/// # Errors
///
/// [`ErrorKind::Internal`] when it is no UTF-8.
pub(super) fn text<'a>(key: &Key, record: &'a Record) -> Result<&'a str, Error> {
    std::str::from_utf8(&record.value).map_err(|error| unreadable(key, error))
}

/// Decodes the number in a counter or a log head; an absent one is 0.
///
/// # Errors
///
/// As [`decode`].
pub(in crate::service) fn number(key: &Key, record: Option<&Record>) -> Result<u64, Error> {
    let Some(record) = record else { return Ok(0) };
    // The contract says decimal digits, and every request on a shared store decodes one of these.
    match std::str::from_utf8(&record.value).map(str::parse) {
        Ok(Ok(number)) => Ok(number),
        _ => decode(key, record),
    }
}
