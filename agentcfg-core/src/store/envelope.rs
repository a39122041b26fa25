//! The envelope of a record in an engine that stores bytes.
//!
//! | bytes | content |
//! | --- | --- |
//! | 1 | the format of envelopes |
//! | 4 | CRC-32 (IEEE), big-endian, over the encoded key and then every other byte of the envelope |
//! | 8 | the record's version, big-endian |
//! | rest | the value, a JSON text |
//!
//! The checksum covers the key, so a record under another key counts as damaged.

use std::sync::Arc;

use super::{Key, Record, StoreError};

/// The first byte. An engine may tell its own forms of a record from an envelope by another one.
const FORMAT: u8 = 1;

const CHECKSUM: std::ops::Range<usize> = 1..5;
/// The length of what precedes the value.
pub const HEADER: usize = 13;

/// Wraps a record for storage under the encoded key.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, envelope};
///
/// let key = Key::global("store", Kind::Meta, "name").encode();
/// let bytes = envelope::seal(&key, 7, b"\"north\"");
/// let record = envelope::open(&key, &bytes)?;
/// assert_eq!((record.version, &*record.value), (7, &b"\"north\""[..]));
/// # Ok::<(), agentcfg_core::store::StoreError>(())
/// ```
pub fn seal(key: &[u8], version: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + value.len());
    bytes.push(FORMAT);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(value);
    let checksum = checksum(key, &bytes);
    bytes[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Unwraps what [`seal`] made for the same key.
///
/// # Errors
///
/// [`StoreError::Corrupt`], which names the key, if a byte of the key or the envelope changed.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, envelope};
/// let key = Key::global("store", Kind::Meta, "name").encode();
/// let mut sealed = envelope::seal(&key, 1, b"true");
/// assert!(envelope::open(&key, &sealed).is_ok());
/// sealed[9] ^= 1;
/// assert!(envelope::open(&key, &sealed).is_err());
/// ```
pub fn open(key: &[u8], bytes: &[u8]) -> Result<Record, StoreError> {
    let stored = bytes
        .get(CHECKSUM)
        .and_then(|field| field.try_into().ok())
        .map(u32::from_be_bytes);
    if stored != Some(checksum(key, bytes)) {
        return Err(StoreError::Corrupt(format!(
            "the checksum of record {} does not match",
            describe(key)
        )));
    }
    if bytes[0] != FORMAT {
        return Err(StoreError::Corrupt(format!(
            "record {} has another form",
            describe(key)
        )));
    }
    let Some((version, value)) = bytes[CHECKSUM.end..].split_first_chunk::<8>() else {
        return Err(StoreError::Corrupt(format!("record {} is too short", describe(key))));
    };
    Ok(Record {
        version: u64::from_be_bytes(*version),
        value: Arc::from(value),
    })
}

/// Formats a key for a message; a key that cannot be decoded is shown as hexadecimal digits.
///
/// ```
/// use agentcfg_core::store::{Key, Kind, envelope};
/// assert_eq!(envelope::describe(&Key::global("store", Kind::Meta, "name").encode()), "store/Meta/name");
/// assert_eq!(envelope::describe(b"?"), "0x3f");
/// ```
pub fn describe(key: &[u8]) -> String {
    match Key::decode(key) {
        Some(key) => format!("{key:?}"),
        None => format!("0x{}", crate::hex::encode(key)),
    }
}

fn checksum(key: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(&bytes[..CHECKSUM.start.min(bytes.len())]);
    hasher.update(&bytes[CHECKSUM.end.min(bytes.len())..]);
    hasher.finalize()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn key() -> Vec<u8> {
        Key::global("user-ä", Kind::ApiKey, "item").encode()
    }

    #[test]
    fn a_sealed_record_opens() {
        for (version, value) in [(0, &b""[..]), (1, b"{}"), (u64::MAX, b"\"\xc3\xa4\"")] {
            let record = open(&key(), &seal(&key(), version, value)).unwrap();
            assert_eq!((record.version, &*record.value), (version, value));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_damage_and_names_the_key() {
        let sealed = seal(&key(), 42, b"{\"name\":\"north\"}");
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = open(&key(), &damaged).unwrap_err();
            assert!(
                matches!(&error, StoreError::Corrupt(text) if text.contains("user-ä/ApiKey/item")),
                "{error}"
            );
        }
        for length in 0..sealed.len() {
            assert!(
                matches!(open(&key(), &sealed[..length]), Err(StoreError::Corrupt(_))),
                "truncated at {length}"
            );
        }
    }

    #[test]
    fn a_record_under_another_key_is_damage() {
        let other = Key::global("user-ä", Kind::ApiKey, "other").encode();
        assert!(matches!(
            open(&other, &seal(&key(), 1, b"1")),
            Err(StoreError::Corrupt(_))
        ));
    }

    #[test]
    fn a_record_of_another_form_is_refused() {
        let mut other = seal(&key(), 1, b"1");
        other[0] = FORMAT + 1;
        let sum = checksum(&key(), &other);
        other[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        assert!(matches!(open(&key(), &other), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn the_bytes_of_an_envelope_are_stable() {
        assert_eq!(
            seal(b"\x02store\0\x1ename", 258, b"true"),
            b"\x01\x42\x81\xdb\xe4\0\0\0\0\0\0\x01\x02true"
        );
    }
}
