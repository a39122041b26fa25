//! Versions: the long texts of most are kept as edits of those of the version before.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::edit::Edit;
use super::field::{split, with_packed};
use super::form::FIELDS;
use crate::error::Error;
use crate::service::records::codec::{text, unreadable};
use crate::service::records::history::{self, missing, version_group};
use crate::store::{Key, Kind, Partition, Record};

/// The length of a text, in bytes, from which it is kept as an edit.
const LONG_TEXT: usize = 1024;

/// What a packed version has in place of its long texts.
#[derive(Serialize, Deserialize)]
struct Packed {
    /// The length of the whole record, without its revision.
    bytes: usize,
    fields: BTreeMap<String, PackedText>,
}

#[derive(Serialize, Deserialize)]
struct PackedText {
    /// The CRC-32 of the text that the edit makes.
    crc: u32,
    edit: Edit,
}

/// The long texts of a version that are kept as edits of those of the version before.
pub(in crate::service) struct PackedTexts {
    fields: BTreeMap<String, PackedText>,
    /// What they add to the length of the whole record.
    bytes: usize,
}

impl PackedTexts {
    /// Packs the texts that are long, of the fields before and after the change that makes this version.
    pub(in crate::service) fn of<'a>(
        version: u64,
        before: impl Fn(&str) -> Option<&'a [u8]>,
        after: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Self {
        let mut packed = Self {
            fields: BTreeMap::new(),
            bytes: 0,
        };
        for name in FIELDS.into_iter().filter(|_| !is_whole(version)) {
            let (Some(before), Some(after)) = (before(name), after(name)) else {
                continue;
            };
            if let Some(text) = packed_text(before, after) {
                packed.bytes += after.len() + name.len() + ",\"\":".len();
                packed.fields.insert(name.to_owned(), text);
            }
        }
        packed
    }

    /// Whether the text of this field is packed.
    pub(in crate::service) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The record of a version, from that without these texts.
    pub(in crate::service) fn written(self, rest: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Self { fields, bytes } = self;
        if fields.is_empty() {
            return Ok(rest);
        }
        let bytes = bytes + rest.len();
        with_packed(&Packed { bytes, fields }, &rest)
    }
}

fn is_whole(version: u64) -> bool {
    *version_group(version).start() == version
}

/// The edit that makes one text of another, where that is shorter.
fn packed_text(before: &[u8], after: &[u8]) -> Option<PackedText> {
    let (before, after) = (std::str::from_utf8(before).ok()?, std::str::from_utf8(after).ok()?);
    if after.len() < LONG_TEXT {
        return None;
    }
    let packed = PackedText {
        crc: crc32fast::hash(after.as_bytes()),
        edit: Edit::between(before, after),
    };
    let length = serde_json::to_vec(&packed).ok()?.len();
    (length <= after.len() / 2).then_some(packed)
}

/// The keys of the versions before this one, from the last whole one on.
pub(super) fn sources(key: &Key) -> Vec<Key> {
    let Some((agent_id, number)) = history::version_of(key) else {
        return Vec::new();
    };
    chain(key.partition(), agent_id, number)
        .take_while(|source| source != key)
        .collect()
}

/// The keys of a version and of those before it, from the last whole one on.
pub(super) fn chain(partition: &Partition, agent_id: &str, number: u64) -> impl Iterator<Item = Key> {
    let first = *version_group(number).start();
    (first..=number).map(move |number| version_key(partition, agent_id, number))
}

pub(super) fn version_key(partition: &Partition, agent_id: &str, number: u64) -> Key {
    Key::new(partition.clone(), Kind::AgentVersion, history::item(agent_id, number))
}

/// The long texts of a version, in the form in which they are stored.
#[derive(Deserialize)]
struct Parts<'a> {
    packed: Option<Packed>,
    #[serde(borrow)]
    config: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// Versions that were read to unpack others.
pub(super) struct Versions<'a>(BTreeMap<&'a Key, Parts<'a>>);

impl<'a> Versions<'a> {
    pub(super) fn of(records: &'a BTreeMap<Key, Record>) -> Result<Self, Error> {
        let parts = records.iter().map(|(key, record)| {
            let parts = serde_json::from_str(text(key, record)?).map_err(|error| unreadable(key, error))?;
            Ok((key, parts))
        });
        Ok(Self(parts.collect::<Result<_, Error>>()?))
    }

    /// The value of a field in a version, as JSON; `None` where the version does not have the field.
    pub(super) fn value(
        &self,
        partition: &Partition,
        agent_id: &str,
        number: u64,
        name: &str,
    ) -> Result<Option<String>, Error> {
        let mut edits = Vec::new();
        let mut last = number;
        loop {
            let key = version_key(partition, agent_id, last);
            let parts = self.0.get(&key).ok_or_else(missing)?;
            match parts.packed.as_ref().and_then(|packed| packed.fields.get(name)) {
                Some(packed) => edits.push((key, packed)),
                None => {
                    let Some(value) = parts.config.get(name) else {
                        return Ok(None);
                    };
                    return edited(value.get().to_owned(), edits).map(Some);
                }
            }
            last = last.checked_sub(1).ok_or_else(missing)?;
        }
    }
}

/// The text that edits make, of which the last one is the first.
fn edited(mut text: String, mut edits: Vec<(Key, &PackedText)>) -> Result<String, Error> {
    while let Some((key, packed)) = edits.pop() {
        text = edit(&key, packed, &text)?;
    }
    Ok(text)
}

fn edit(key: &Key, packed: &PackedText, before: &str) -> Result<String, Error> {
    let made = packed.edit.apply(before);
    let made = made.filter(|text| crc32fast::hash(text.as_bytes()) == packed.crc);
    made.ok_or_else(|| unreadable(key, "its edit is not of the version before"))
}

/// The text of a packed version with its long texts.
pub(super) fn unpack(key: &Key, text: &str, versions: &Versions<'_>) -> Result<String, Error> {
    let (agent_id, number) = history::version_of(key).ok_or_else(missing)?;
    let (before, Packed { fields, bytes }, rest) = split(text)?;
    let mut whole = String::with_capacity(bytes + 32);
    whole.push_str(before);
    // The content is the last field.
    whole.push_str(rest.strip_suffix("}}").ok_or_else(missing)?);
    for (name, packed) in fields {
        let before = versions
            .value(key.partition(), agent_id, number - 1, &name)?
            .ok_or_else(missing)?;
        let made = edit(key, &packed, &before)?;
        for part in [",\"", &name, "\":", &made] {
            whole.push_str(part);
        }
    }
    whole.push_str("}}");
    Ok(whole)
}
