//! Reading the long texts of [`packed`] records.

use std::collections::{BTreeMap, BTreeSet};

use super::codec::complete;
use super::entity::{Encoded, Entity};
use super::packed::{self, is_packed, unpacked_length};
use crate::error::{Error, ErrorKind};
use crate::service::AgentCfg;
use crate::service::blocking::{LONG, blocking_if};
use crate::store::{Key, Record};

/// How many versions are read at once to unpack others.
const READ: usize = 256;

/// How often records are read whose sources were removed each time.
pub(super) const ATTEMPTS: usize = 3;

/// The error of records whose sources were removed while they were read.
pub(super) fn removed_meanwhile() -> Error {
    let message = "versions were removed while they were read, because they are not kept any more: repeat the request";
    Error::new(ErrorKind::Unavailable, message)
}

impl AgentCfg {
    /// Puts the texts of packed records back in their places. Versions never change, so they may be read after the
    /// records. They may be removed between the two reads: `None`, and the records are to be read again.
    pub(super) async fn unpacked(&self, mut found: Vec<(Key, Record)>) -> Result<Option<Vec<(Key, Record)>>, Error> {
        if !found.iter().any(|(_, record)| is_packed(&record.value)) {
            return Ok(Some(found));
        }
        let mut wanted = BTreeSet::new();
        for (key, record) in found.iter().filter(|(_, record)| is_packed(&record.value)) {
            wanted.extend(packed::sources(key, record)?);
        }
        let mut sources = BTreeMap::new();
        for (key, record) in &found {
            if wanted.remove(key) {
                sources.insert(key.clone(), record.clone());
            }
        }
        let wanted: Vec<Key> = wanted.into_iter().collect();
        for keys in wanted.chunks(READ) {
            let read = complete(keys.len(), self.store().get(keys).await?)?;
            if self.settings().version_retention_days.is_some() && read.iter().any(Option::is_none) {
                return Ok(None);
            }
            let read = keys.iter().cloned().zip(read);
            sources.extend(read.filter_map(|(key, record)| Some((key, record?))));
        }
        let bytes: usize = found.iter().map(|(_, record)| unpacked_length(&record.value)).sum();
        let unpack = move || packed::unpack(&mut found, &sources).map(|()| Some(found));
        blocking_if(bytes >= LONG, unpack).await?
    }

    /// Records that were read by their heads as another type of the same kind, with all that was packed.
    pub(in crate::service) async fn unpacked_as<T: Entity, U: Entity>(
        &self,
        heads: Vec<Encoded<T>>,
    ) -> Result<Vec<Encoded<U>>, Error> {
        const { assert!(T::KIND as u8 == U::KIND as u8 && U::IS_UNPACKED) };
        let found = self
            .unpacked(heads.into_iter().map(Encoded::into_parts).collect())
            .await?
            .ok_or_else(removed_meanwhile)?;
        Ok(found
            .into_iter()
            .map(|(key, record)| Encoded::of(key, record))
            .collect())
    }
}
