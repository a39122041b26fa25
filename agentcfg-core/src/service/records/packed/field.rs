//! Writing and reading the field `packed` of a record.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::form::packed;
use crate::error::Error;
use crate::service::records::codec::{not_read, not_written};
use crate::service::records::history::missing;

/// Puts the field `packed` in front of the fields of a record.
pub(super) fn with_packed<T: Serialize>(packed: &T, record: &[u8]) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(record.len() + 128);
    text.extend_from_slice(b"{\"packed\":");
    serde_json::to_writer(&mut text, packed).map_err(not_written)?;
    text.push(b',');
    text.extend_from_slice(record.get(1..).unwrap_or_default());
    Ok(text)
}

/// The field `packed` of a record, with what is before it and the fields behind it.
pub(super) fn split<T: DeserializeOwned>(text: &str) -> Result<(&str, T, &str), Error> {
    let behind = packed(text.as_bytes()).ok_or_else(missing)?.len();
    let (before, behind) = text.split_at(text.len() - behind);
    let before = before.strip_suffix("\"packed\":").ok_or_else(missing)?;
    let mut fields = serde_json::Deserializer::from_str(behind).into_iter::<T>();
    let packed = fields.next().ok_or_else(missing)?.map_err(not_read)?;
    let rest = behind.get(fields.byte_offset() + 1..).ok_or_else(missing)?;
    Ok((before, packed, rest))
}
