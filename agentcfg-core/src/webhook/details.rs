//! What a message tells of the labels that an event moved, and of the agents that an apply changed: bounded lists.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use crate::model::change_path::{self, MovedVersions};

/// The most rows of a list in a message.
const MOST: usize = 100;

/// The first rows of a list.
#[derive(Debug, Clone)]
pub(crate) struct Limited<R> {
    pub(super) rows: Vec<R>,
    /// Whether there were more.
    pub(super) is_truncated: bool,
}

impl<R> Default for Limited<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            is_truncated: false,
        }
    }
}

/// An agent that an apply changed. The entry of the apply keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, DeriveDeserialize)]
pub(crate) struct AppliedRow {
    pub(crate) agent_id: String,
    /// The action as a text, so that one of a later release is sent too.
    pub(crate) action: String,
    pub(crate) version: u64,
}

impl<'de> Deserialize<'de> for Limited<AppliedRow> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Rows(PhantomData::<AppliedRow>))
    }
}

struct Rows<R>(PhantomData<R>);

impl<'de> Visitor<'de> for Rows<AppliedRow> {
    type Value = Limited<AppliedRow>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut read = Limited::default();
        while read.rows.len() < MOST {
            let Some(row) = list.next_element()? else {
                return Ok(read);
            };
            read.rows.push(row);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            read.is_truncated = true;
        }
        Ok(read)
    }
}

/// The move of a label of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MovedRow {
    agent_id: String,
    label: String,
    from: Option<u64>,
    to: Option<u64>,
}

/// The moves of labels among the changes of an entry. Other changes are not read.
impl<'de> Deserialize<'de> for Limited<MovedRow> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Rows(PhantomData::<MovedRow>))
    }
}

impl<'de> Visitor<'de> for Rows<MovedRow> {
    type Value = Limited<MovedRow>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the changes of a log entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut read = Limited::default();
        while let Some(path) = map.next_key::<String>()? {
            let moved = change_path::agent_and_name(&path)
                .and_then(|(agent_id, name)| Some((agent_id, change_path::label(name)?)));
            let has_place = read.rows.len() < MOST;
            read.is_truncated |= moved.is_some() && !has_place;
            let Some((agent_id, label)) = moved.filter(|_| has_place) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let MovedVersions { from, to } = map.next_value()?;
            read.rows.push(MovedRow {
                agent_id: agent_id.to_owned(),
                label: label.to_owned(),
                from,
                to,
            });
        }
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn applied(count: usize) -> Limited<AppliedRow> {
        let row = json!({"agent_id": "a", "action": "update", "version": 2});
        serde_json::from_value(Value::Array(vec![row; count])).unwrap()
    }

    fn moved(count: usize) -> Limited<MovedRow> {
        let row = |number| (format!("agents/a{number}/labels/live"), json!({"from": null, "to": 1}));
        let mut changes: Map<String, Value> = (0..count).map(row).collect();
        changes.insert("agents/a/model".to_owned(), json!({"from": "x", "to": "y"}));
        serde_json::from_value(Value::Object(changes)).unwrap()
    }

    #[test]
    fn a_list_is_truncated_after_its_hundredth_row() {
        for (count, rows, is_truncated) in [(0, 0, false), (1, 1, false), (100, 100, false), (101, 100, true)] {
            let list = applied(count);
            assert_eq!((list.rows.len(), list.is_truncated), (rows, is_truncated), "{count}");
            let list = moved(count);
            assert_eq!((list.rows.len(), list.is_truncated), (rows, is_truncated), "{count}");
        }
    }
}
