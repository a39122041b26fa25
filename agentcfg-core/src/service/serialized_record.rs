//! A record as text with the ranges of its fields, so that two records are compared without decoding.

use std::fmt::Display;
use std::ops::Range;

use serde::ser::{Error as _, Impossible, Serialize, SerializeStruct, Serializer};

use super::records;
use crate::error::Error;

/// A capacity that most records fit into.
const FIRST_BYTES: usize = 1024;

/// A record as JSON text, with the range of each field.
pub(super) struct SerializedRecord {
    text: Vec<u8>,
    places: Vec<(&'static str, Range<usize>)>,
}

impl SerializedRecord {
    /// Writes a record as [`serde_json`] does.
    ///
    /// # Errors
    ///
    /// When the value is not a struct.
    pub(super) fn of<T: Serialize>(record: &T) -> Result<Self, Error> {
        record.serialize(Record).map_err(records::not_written)
    }

    /// The names of its fields, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.places.iter().map(|(name, _)| *name)
    }

    /// The value of a field, as it is written.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        let (_, place) = self.places.iter().find(|(found, _)| *found == name)?;
        self.text.get(place.clone())
    }

    /// Some of these fields as an object of their own, in their order. Those that the record does not have are left
    /// out.
    pub(super) fn object_of(&self, names: &[&str], leaves_out: impl Fn(&str) -> bool) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.text.len());
        text.push(b'{');
        for name in names.iter().filter(|name| !leaves_out(name)) {
            let Some(value) = self.get(name) else { continue };
            if text.len() > 1 {
                text.push(b',');
            }
            // The name of a field needs no escapes.
            for part in [b"\"", name.as_bytes(), b"\":", value] {
                text.extend_from_slice(part);
            }
        }
        text.push(b'}');
        text
    }

    /// The text of the record.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }
}

impl SerializeStruct for SerializedRecord {
    type Ok = Self;
    type Error = serde_json::Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, name: &'static str, value: &T) -> Result<(), Self::Error> {
        self.text.push(if self.places.is_empty() { b'{' } else { b',' });
        serde_json::to_writer(&mut self.text, name)?;
        self.text.push(b':');
        let start = self.text.len();
        serde_json::to_writer(&mut self.text, value)?;
        self.places.push((name, start..self.text.len()));
        Ok(())
    }

    fn end(mut self) -> Result<Self, Self::Error> {
        if self.places.is_empty() {
            self.text.push(b'{');
        }
        self.text.push(b'}');
        Ok(self)
    }
}

/// A serializer that accepts only structs with named fields, as all records are.
struct Record;

type No = Impossible<SerializedRecord, serde_json::Error>;

fn refused<T>(kind: impl Display) -> serde_json::Result<T> {
    Err(serde_json::Error::custom(format_args!(
        "a record is a struct with named fields, not {kind}"
    )))
}

/// Methods that refuse a value that is not a struct.
macro_rules! refuse {
    ($($name:ident($($argument:ty),*) -> $ok:ty;)+) => {$(
        fn $name(self, $(_: $argument),*) -> serde_json::Result<$ok> {
            refused(stringify!($name))
        }
    )+};
}

impl Serializer for Record {
    type Ok = SerializedRecord;
    type Error = serde_json::Error;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = SerializedRecord;
    type SerializeStructVariant = No;

    fn serialize_struct(self, _: &'static str, fields: usize) -> serde_json::Result<SerializedRecord> {
        Ok(SerializedRecord {
            text: Vec::with_capacity(FIRST_BYTES),
            places: Vec::with_capacity(fields),
        })
    }

    refuse! {
        serialize_bool(bool) -> SerializedRecord;
        serialize_i8(i8) -> SerializedRecord;
        serialize_i16(i16) -> SerializedRecord;
        serialize_i32(i32) -> SerializedRecord;
        serialize_i64(i64) -> SerializedRecord;
        serialize_u8(u8) -> SerializedRecord;
        serialize_u16(u16) -> SerializedRecord;
        serialize_u32(u32) -> SerializedRecord;
        serialize_u64(u64) -> SerializedRecord;
        serialize_f32(f32) -> SerializedRecord;
        serialize_f64(f64) -> SerializedRecord;
        serialize_char(char) -> SerializedRecord;
        serialize_str(&str) -> SerializedRecord;
        serialize_bytes(&[u8]) -> SerializedRecord;
        serialize_none() -> SerializedRecord;
        serialize_unit() -> SerializedRecord;
        serialize_unit_struct(&'static str) -> SerializedRecord;
        serialize_unit_variant(&'static str, u32, &'static str) -> SerializedRecord;
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> serde_json::Result<SerializedRecord> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> serde_json::Result<SerializedRecord> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> serde_json::Result<SerializedRecord> {
        refused("serialize_newtype_variant")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{AgentPatch, NewAgent, Patch, WorkspaceId};

    #[test]
    fn a_record_is_written_as_ever_and_its_fields_are_found() {
        let new = NewAgent {
            role: Some("\u{1} \"r\" ü".into()),
            capabilities: vec!["a".into(), "b".into()],
            parameters: [
                ("x".into(), 1.into()),
                ("y".into(), serde_json::Number::from_f64(-0.0).unwrap()),
            ]
            .into(),
            ..NewAgent::new(WorkspaceId::new(uuid::Uuid::nil()), "writer".parse().unwrap(), "Writer")
        };
        let written = SerializedRecord::of(&new).unwrap();
        assert_eq!(written.get("role").unwrap(), serde_json::to_vec(&new.role).unwrap());
        assert_eq!(written.get("parameters").unwrap(), br#"{"x":1,"y":-0.0}"#);
        assert_eq!(written.get("model"), None, "it is left out");
        assert_eq!(written.names().last(), Some("parameters"));
        let part = br#"{"capabilities":["a","b"],"parameters":{"x":1,"y":-0.0}}"#;
        let fields = ["capabilities", "model", "role", "parameters"];
        assert_eq!(written.object_of(&fields, |name| name == "role"), part);
        assert_eq!(written.object_of(&["model"], |_| false), b"{}");
        assert_eq!(written.into_text(), serde_json::to_vec(&new).unwrap());
    }

    #[test]
    fn a_record_may_have_one_field_or_none() {
        assert_eq!(SerializedRecord::of(&AgentPatch::default()).unwrap().into_text(), b"{}");
        let patch = AgentPatch {
            role: Patch::Null,
            ..AgentPatch::default()
        };
        assert_eq!(SerializedRecord::of(&patch).unwrap().into_text(), br#"{"role":null}"#);
    }

    #[test]
    fn what_has_no_named_fields_is_refused() {
        assert!(SerializedRecord::of(&vec![1]).is_err());
        assert!(SerializedRecord::of(&"text").is_err());
        assert!(SerializedRecord::of(&std::collections::BTreeMap::from([("a", 1)])).is_err());
    }
}
