//! Entries of the log: long values of agents are those of the versions that the entry's commit made.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::field::{split, with_packed};
use super::form::FIELDS;
use super::version::{Versions, chain, version_key};
use crate::error::Error;
use crate::model::{Target, change_path};
use crate::service::records::codec::{not_read, not_written, unreadable};
use crate::service::records::history::missing;
use crate::store::Key;

/// The length of both values of a change, in bytes, from which they are left to the versions.
const LONG_CHANGE: usize = 512;

/// The changes of an entry whose values are those of versions: by path the version that has the second value. The first
/// one is that of the version before.
#[derive(Default, Serialize, Deserialize)]
pub(in crate::service) struct PackedPaths {
    /// The length of the whole entry.
    bytes: usize,
    of: BTreeMap<String, u64>,
}

impl PackedPaths {
    /// Whether the value of this change, written as `change`, is left to a version. Its path is noted then.
    pub(in crate::service) fn takes(&mut self, path: &str, name: &str, version: u64, change: &str) -> bool {
        let takes = FIELDS.contains(&name) && change.len() >= LONG_CHANGE;
        if takes {
            self.bytes += change.len() - "null".len();
            self.of.insert(path.to_owned(), version);
        }
        takes
    }

    /// The changes of an agent without the values that this version has.
    pub(in crate::service) fn without_values(&mut self, changes: Vec<u8>, version: u64) -> Result<Vec<u8>, Error> {
        if changes.len() < LONG_CHANGE {
            return Ok(changes);
        }
        let mut fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(&changes).map_err(not_read)?;
        for (name, change) in &mut fields {
            if self.takes(name, name, version, change.get()) {
                *change = RawValue::NULL;
            }
        }
        serde_json::to_vec(&fields).map_err(not_written)
    }

    /// Puts the field for these paths in front of an entry.
    pub(in crate::service) fn written(mut self, entry: Vec<u8>) -> Result<Vec<u8>, Error> {
        if self.of.is_empty() {
            return Ok(entry);
        }
        self.bytes += entry.len();
        with_packed(&self, &entry)
    }
}

/// The part of an entry that tells which values it leaves to versions.
#[derive(Deserialize)]
struct Parts<'a> {
    packed: PackedPaths,
    target: Target,
    #[serde(borrow)]
    changes: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// The keys of the versions that have the values of an entry.
pub(super) fn sources(key: &Key, text: &str) -> Result<Vec<Key>, serde_json::Error> {
    let Parts { packed, target, .. } = serde_json::from_str(text)?;
    let mut keys = Vec::new();
    for (path, version) in &packed.of {
        let Some((agent_id, _)) = change_path::subject(&target, path) else {
            continue;
        };
        // The chain of a version that is not whole is that of the version before, and the version.
        keys.extend(chain(key.partition(), agent_id, version.saturating_sub(1)));
        keys.push(version_key(key.partition(), agent_id, *version));
    }
    Ok(keys)
}

/// The text of an entry with all values.
pub(super) fn unpack(key: &Key, text: &str, versions: &Versions<'_>) -> Result<String, Error> {
    let parts: Parts<'_> = serde_json::from_str(text).map_err(|error| unreadable(key, error))?;
    let mut places = Vec::with_capacity(parts.packed.of.len());
    for (path, version) in &parts.packed.of {
        let (agent_id, name) = change_path::subject(&parts.target, path).ok_or_else(missing)?;
        let hole = parts.changes.get(&**path).ok_or_else(missing)?.get();
        let start = (hole.as_ptr() as usize)
            .checked_sub(text.as_ptr() as usize)
            .ok_or_else(missing)?;
        let value = |version| -> Result<Cow<'_, str>, Error> {
            let value = match version {
                0 => None,
                version => versions.value(key.partition(), agent_id, version, name)?,
            };
            Ok(value.map_or("null".into(), Cow::from))
        };
        places.push((
            start,
            start + hole.len(),
            value(version.saturating_sub(1))?,
            value(*version)?,
        ));
    }
    places.sort_unstable_by_key(|(start, ..)| *start);
    let (before, _, rest) = split::<PackedPaths>(text)?;
    let mut at = text.len() - rest.len();
    let mut whole = String::with_capacity(parts.packed.bytes + 1);
    whole.push_str(before);
    for (start, end, from, to) in places {
        for part in [
            text.get(at..start).ok_or_else(missing)?,
            "{\"from\":",
            &from,
            ",\"to\":",
            &to,
            "}",
        ] {
            whole.push_str(part);
        }
        at = end;
    }
    whole.push_str(text.get(at..).ok_or_else(missing)?);
    Ok(whole)
}
