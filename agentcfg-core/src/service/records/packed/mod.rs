//! Long texts in the history of agents, which is kept once.
//!
//! A version whose prompt or definition is long has the [`edit`] that makes it of the version before in their place,
//! and an entry of the log names the version that has the values. Every eighth version is whole, so that a read of one
//! needs at most seven more. The reads of [`AgentCfg`](crate::service::AgentCfg) put the texts back in their places, so
//! that the rest of the service sees whole records.

mod edit;
mod entry;
mod field;
mod form;
mod version;

use std::collections::BTreeMap;

pub(in crate::service) use self::entry::PackedPaths;
pub(super) use self::form::{is_packed, unpacked_length};
pub(in crate::service) use self::version::PackedTexts;
use self::version::Versions;
use super::codec::{text, unreadable};
use crate::error::Error;
use crate::store::{Key, Kind, Record};

/// The keys of the versions from which a packed record is unpacked.
pub(super) fn sources(key: &Key, record: &Record) -> Result<Vec<Key>, Error> {
    match key.kind() {
        Kind::AgentVersion => Ok(version::sources(key)),
        _ => entry::sources(key, text(key, record)?).map_err(|error| unreadable(key, error)),
    }
}

/// Puts the texts of packed records back in their places, from their [`sources`].
pub(super) fn unpack(found: &mut [(Key, Record)], sources: &BTreeMap<Key, Record>) -> Result<(), Error> {
    let versions = Versions::of(sources)?;
    for (key, record) in found.iter_mut().filter(|(_, record)| is_packed(&record.value)) {
        let text = text(key, record)?;
        let whole = match key.kind() {
            Kind::AgentVersion => version::unpack(key, text, &versions)?,
            _ => entry::unpack(key, text, &versions)?,
        };
        record.value = whole.into_bytes().into();
    }
    Ok(())
}
