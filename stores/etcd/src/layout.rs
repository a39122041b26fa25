//! Where things are in the cluster, and the form of a stored record.
//!
//! | key, after the prefix | value |
//! |---|---|
//! | `store` | the format and the base of the versions, see [`ClusterFacts`] |
//! | `deleted` | empty; its revision is that of the last deletion of a record |
//! | `r/` and an [encoded key](agentcfg_core::store::Key::encode) | a record in its [envelope](envelope), which may be [compressed](compress) |
//! | `servers/` and a process | empty; it exists as long as the process is connected |
//! | `commits/`, a process and a number | the last commit that was sent with this marker |
//! | `holds/` and a workspace | the process that holds the workspace's log |
//! | `windows/` and a subject | a rate window: its end and its count |

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Record, StoreError, envelope};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::protocol::KeyValue;

/// The facts of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClusterFacts {
    pub(super) format: u32,
    /// The build that made the store.
    pub(super) made_by: String,
    /// What is added to a revision of the cluster to get a version. After an import it is the greatest version of the
    /// store that the records are from, so that no version returns.
    pub(super) base: u64,
    /// The cluster that the store was last opened on. A cluster that is made from a snapshot has another identifier.
    pub(super) cluster: u64,
    /// Whether an import is under way, or was cut off.
    pub(super) is_importing: bool,
    /// The last import.
    pub(super) imported: Option<Imported>,
}

/// The part of [`ClusterFacts`] that every format has.
#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) format: u32,
    pub(super) made_by: Option<String>,
}

/// What an import has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Imported {
    /// The revision of the last record.
    pub(super) revision: i64,
}

/// The names of the keys.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    prefix: String,
}

impl Layout {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    /// What all keys begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn facts(&self) -> Vec<u8> {
        format!("{}store", self.prefix).into_bytes()
    }

    /// The key that each commit with a deletion writes.
    pub(super) fn deleted(&self) -> Vec<u8> {
        format!("{}deleted", self.prefix).into_bytes()
    }

    /// The key of a record, from its encoded key.
    pub(super) fn record(&self, key: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), b"r/", key].concat()
    }

    /// The range of all records.
    pub(super) fn records(&self) -> (Vec<u8>, Vec<u8>) {
        (self.record(&[]), format!("{}r0", self.prefix).into_bytes())
    }

    /// The encoded key of a stored record.
    pub(super) fn encoded<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        stored.get(self.prefix.len() + 2..).unwrap_or_default()
    }

    pub(super) fn server(&self, process: &str) -> Vec<u8> {
        format!("{}servers/{process}", self.prefix).into_bytes()
    }

    /// The range of all processes that are connected.
    pub(super) fn servers(&self) -> (Vec<u8>, Vec<u8>) {
        (self.server(""), format!("{}servers0", self.prefix).into_bytes())
    }

    pub(super) fn marker(&self, process: &str, number: u64) -> Vec<u8> {
        format!("{}commits/{process}/{number}", self.prefix).into_bytes()
    }

    pub(super) fn hold(&self, log: WorkspaceId) -> Vec<u8> {
        format!("{}holds/{log}", self.prefix).into_bytes()
    }

    pub(super) fn window(&self, subject: &str) -> Vec<u8> {
        format!("{}windows/{subject}", self.prefix).into_bytes()
    }

    pub(super) fn windows(&self) -> (Vec<u8>, Vec<u8>) {
        (self.window(""), format!("{}windows0", self.prefix).into_bytes())
    }
}

/// A record with the revision of the cluster that it was written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) record: Record,
    pub(super) revision: i64,
}

/// The value of a record that gets its version from the revision of its commit.
pub(super) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    envelope::seal(key, 0, value)
}

/// The first byte of a compressed record. An envelope begins with its format, which is a small number.
const COMPRESSED: u8 = 0x80;

/// The shortest envelope that is compressed.
const COMPRESSED_FROM: usize = 512;

/// The longest envelope that is decompressed. A transaction has tens of megabytes at most before compression.
const MAX_ENVELOPE: u32 = 256 << 20;

/// Compresses an envelope with zlib: a byte that tells so, the length of the envelope in four bytes (big-endian), and
/// the stream. One that does not become shorter stays as it is.
pub(super) fn compress(sealed: Vec<u8>) -> Vec<u8> {
    let Ok(length) = u32::try_from(sealed.len()) else {
        return sealed;
    };
    if sealed.len() < COMPRESSED_FROM {
        return sealed;
    }
    let mut bytes = vec![COMPRESSED];
    bytes.extend_from_slice(&length.to_be_bytes());
    let mut encoder = ZlibEncoder::new(bytes, Compression::default());
    match encoder.write_all(&sealed).and_then(|()| encoder.finish()) {
        Ok(bytes) if bytes.len() < sealed.len() => bytes,
        _ => sealed,
    }
}

/// The length of the value of a stored record, which is not decompressed.
pub(super) fn value_length(stored: &[u8]) -> usize {
    let envelope = match stored {
        [COMPRESSED, a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]) as usize,
        _ => stored.len(),
    };
    envelope.saturating_sub(envelope::HEADER)
}

/// The envelope of a stored record.
fn decompress<'a>(key: &[u8], stored: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
    let Some((&COMPRESSED, rest)) = stored.split_first() else {
        return Ok(stored.into());
    };
    let damaged = || StoreError::Corrupt(format!("record {} cannot be decompressed", envelope::describe(key)));
    let (length, stream) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
    let length = u32::from_be_bytes(*length);
    if length > MAX_ENVELOPE {
        return Err(damaged());
    }
    let mut sealed = Vec::new();
    ZlibDecoder::new(stream)
        .take(u64::from(length) + 1)
        .read_to_end(&mut sealed)
        .map_err(|_| damaged())?;
    match sealed.len() == length as usize {
        true => Ok(sealed.into()),
        false => Err(damaged()),
    }
}

/// Reads a record. Its envelope names a version only if it was imported.
pub(super) fn open(base: u64, key: &[u8], stored: &KeyValue) -> Result<Held, StoreError> {
    let mut record = envelope::open(key, &decompress(key, &stored.value)?)?;
    if record.version == 0 {
        record.version = version(base, stored.mod_revision);
    }
    Ok(Held {
        record,
        revision: stored.mod_revision,
    })
}

/// The version of a record that was written in this revision.
pub(super) fn version(base: u64, revision: i64) -> u64 {
    base + revision.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(value: Vec<u8>) -> KeyValue {
        KeyValue {
            value,
            mod_revision: 7,
            ..KeyValue::default()
        }
    }

    #[test]
    fn a_compressed_record_reads_as_it_was_written_and_its_damage_is_found() {
        let text = "A persona that says the same thing again. ".repeat(100);
        let packed = compress(seal(b"key", text.as_bytes()));
        assert!(packed.len() < 1000, "{}", packed.len());
        let held = open(3, b"key", &stored(packed.clone())).unwrap();
        assert_eq!((&*held.record.value, held.record.version), (text.as_bytes(), 10));
        for place in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[place] ^= 1;
            let refused = open(3, b"key", &stored(damaged)).unwrap_err();
            assert!(matches!(refused, StoreError::Corrupt(_)), "{place}: {refused}");
        }
        assert!(open(3, b"other", &stored(packed.clone())).is_err());
        for end in 0..packed.len() {
            assert!(open(3, b"key", &stored(packed[..end].to_vec())).is_err(), "{end}");
        }
    }

    #[test]
    fn what_does_not_become_shorter_is_not_compressed() {
        let short = seal(b"key", b"text");
        assert_eq!(compress(short.clone()), short);
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        })
        .take(4000)
        .collect();
        let sealed = seal(b"key", &noise);
        assert_eq!(compress(sealed.clone()), sealed);
    }
}
