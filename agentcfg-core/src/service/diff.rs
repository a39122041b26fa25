//! The changes in an audit entry: the fields in which two records differ.

use super::records;
use super::serialized_record::SerializedRecord;
use crate::error::Error;

/// Fields that are left out: identifiers and times, because the entry has them itself, the hash of a secret, and what
/// the service notes about the history of an agent and a budget.
const LEFT_OUT: [&str; 9] = [
    "id",
    "workspace_id",
    "agent_id",
    "user_id",
    "created_at",
    "updated_at",
    "hash",
    "history",
    "made_at",
];

/// The fields of an agent that the change feed shows beside those of the audit log: with them, events are enough to
/// rebuild the record.
const REBUILDING: [&str; 3] = ["id", "created_at", "updated_at"];

/// The fields in which two records differ, written as [`Changes`](crate::model::Changes). An absent record has no
/// fields.
///
/// All records are written in one way, so that equal fields have equal texts.
pub(super) fn changes(from: Option<&SerializedRecord>, to: Option<&SerializedRecord>) -> Result<Vec<u8>, Error> {
    changes_of(from, to, |name| !LEFT_OUT.contains(&name))
}

/// The changes of an agent's identifier and times, which [`changes`] leaves out.
pub(super) fn rebuilding(from: Option<&SerializedRecord>, to: Option<&SerializedRecord>) -> Result<Vec<u8>, Error> {
    changes_of(from, to, |name| REBUILDING.contains(&name))
}

fn changes_of(
    from: Option<&SerializedRecord>,
    to: Option<&SerializedRecord>,
    shows: impl Fn(&str) -> bool,
) -> Result<Vec<u8>, Error> {
    fn value<'a>(record: Option<&'a SerializedRecord>, name: &str) -> &'a [u8] {
        record.and_then(|record| record.get(name)).unwrap_or(b"null")
    }
    let there = to.into_iter().flat_map(SerializedRecord::names);
    let gone = from
        .into_iter()
        .flat_map(SerializedRecord::names)
        .filter(|name| to.is_none_or(|to| to.get(name).is_none()));
    let mut text = Vec::with_capacity(256);
    text.push(b'{');
    for name in there.chain(gone).filter(|name| shows(name)) {
        let (from, to) = (value(from, name), value(to, name));
        if from == to {
            continue;
        }
        if text.len() > 1 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, name).map_err(records::not_written)?;
        for part in [b":{\"from\":", from, b",\"to\":", to, b"}"] {
            text.extend_from_slice(part);
        }
    }
    text.push(b'}');
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Changes;

    #[derive(Serialize)]
    struct Thing {
        id: u8,
        role: Option<&'static str>,
        name: &'static str,
        tags: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        often: Option<f64>,
        hash: &'static str,
        updated_at: u8,
    }

    const BEFORE: Thing = Thing {
        id: 1,
        role: None,
        name: "a",
        tags: Vec::new(),
        often: Some(0.0),
        hash: "h",
        updated_at: 1,
    };

    /// What a reader of the audit log sees.
    fn seen(from: Option<&Thing>, to: Option<&Thing>) -> Value {
        let written = |thing: Option<&Thing>| thing.map(|thing| SerializedRecord::of(thing).unwrap());
        let text = changes(written(from).as_ref(), written(to).as_ref()).unwrap();
        serde_json::to_value(serde_json::from_slice::<Changes>(&text).unwrap()).unwrap()
    }

    #[test]
    fn changed_fields_are_listed_and_identifiers_are_not() {
        let after = Thing {
            id: 2,
            role: Some("\"r\""),
            name: "a",
            tags: vec!["x", "\n"],
            often: None,
            hash: "i",
            updated_at: 2,
        };
        let told = json!({
            "often": {"from": 0.0, "to": null},
            "role": {"from": null, "to": "\"r\""},
            "tags": {"from": [], "to": ["x", "\n"]},
        });
        assert_eq!(seen(Some(&BEFORE), Some(&after)), told);
        assert_eq!(seen(Some(&BEFORE), Some(&BEFORE)), json!({}));
        let minus = Thing {
            often: Some(-0.0),
            ..BEFORE
        };
        assert_eq!(
            seen(Some(&BEFORE), Some(&minus)),
            json!({"often": {"from": 0.0, "to": -0.0}})
        );
    }

    #[test]
    fn a_record_that_is_not_there_has_no_fields() {
        let change = |from, to| json!({"from": from, "to": to});
        let (name, tags, often) = (json!("a"), json!([]), json!(0.0));
        let new = json!({
            "name": change(Value::Null, name.clone()),
            "tags": change(Value::Null, tags.clone()),
            "often": change(Value::Null, often.clone()),
        });
        let gone = json!({
            "name": change(name, Value::Null),
            "tags": change(tags, Value::Null),
            "often": change(often, Value::Null),
        });
        assert_eq!(seen(None, Some(&BEFORE)), new);
        assert_eq!(seen(Some(&BEFORE), None), gone);
        assert_eq!(seen(None, None), json!({}));
    }
}
