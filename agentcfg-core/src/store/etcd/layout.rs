//! Where things are in the cluster, and the form of a stored record.
//!
//! | key, after the prefix | value |
//! |---|---|
//! | `store` | the format and the base of the versions, see [`Facts`] |
//! | `deleted` | empty; its revision is that of the last deletion of a record |
//! | `r/` and an [encoded key](super::super::Key::encode) | a record in its [envelope](envelope) |
//! | `servers/` and a process | empty; it exists as long as the process is connected |
//! | `commits/`, a process and a number | the last commit that was sent with this marker |
//! | `windows/` and a subject | a rate window: its end and its count |

use serde::{Deserialize, Serialize};

use super::super::{Record, StoreError, envelope};
use super::wire::KeyValue;

/// The format of the records that this release writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;

/// The facts of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) format: u32,
    /// What is added to a revision of the cluster to get a version. After an import it is the greatest version of the store
    /// that the records are from, so that no version returns.
    pub(super) base: u64,
    /// The cluster that the store was last opened on. A cluster that is made from a snapshot has another identifier.
    #[serde(default)]
    pub(super) cluster: u64,
    /// Whether an import is under way, or was cut off.
    #[serde(default)]
    pub(super) is_importing: bool,
    /// The last import.
    #[serde(default)]
    pub(super) imported: Option<Imported>,
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

/// Reads a record. Its envelope names a version only if it was imported.
pub(super) fn open(base: u64, key: &[u8], stored: &KeyValue) -> Result<Held, StoreError> {
    let mut record = envelope::open(key, &stored.value)?;
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
