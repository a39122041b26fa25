//! Lists of tables in the TOML file.

use std::fmt;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::value::Value;

/// A table of a list.
pub(super) struct Row<'a>(&'a DeTable<'a>);

/// Reads each table of a list, which has no other keys than these.
pub(super) fn tables<T>(
    value: &Value<'_>,
    kind: &str,
    keys: &[&str],
    read: impl Fn(&Row<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Value::Toml(value) = value else {
        return Err("must be a list of tables in the TOML file, it cannot come from the environment".to_owned());
    };
    let DeValue::Array(items) = value else {
        return Err(format!("must be a list of tables with {}", keys.join(", ")));
    };
    let read_one = |item: &DeValue<'_>| {
        let DeValue::Table(table) = item else {
            return Err("must be a table".to_owned());
        };
        let unknown = table
            .iter()
            .map(|(key, _)| key.get_ref())
            .find(|key| !keys.contains(&&***key));
        if let Some(key) = unknown {
            return Err(format!("unknown key {key}, there are {}", keys.join(", ")));
        }
        read(&Row(table))
    };
    let numbered = items.iter().enumerate();
    numbered
        .map(|(i, item)| read_one(item.get_ref()).map_err(|fault| format!("{kind} {}: {fault}", i + 1)))
        .collect()
}

impl Row<'_> {
    /// The text of a key, if it is there.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.0.get(key).map(|value| value.get_ref().as_str()) {
            Some(None) => Err(format!("{key} must be a string")),
            Some(text) => Ok(text),
            None => Ok(None),
        }
    }

    /// The text of a key that must be there.
    pub(super) fn required(&self, key: &str) -> Result<&str, String> {
        self.text(key)?.ok_or_else(|| format!("{key} is required"))
    }

    /// The text of a decimal number: of a number, or of a string.
    pub(super) fn decimal(&self, key: &str) -> Result<Option<&str>, String> {
        match self.0.get(key).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::Integer(number)) => Ok(Some(number.as_str())),
            Some(DeValue::Float(number)) => Ok(Some(number.as_str())),
            Some(DeValue::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{key} must be a number")),
        }
    }

    /// An integer within bounds, if it is there.
    pub(super) fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        let number = match self.0.get(key).map(|value| value.get_ref()) {
            None => return Ok(None),
            Some(DeValue::Integer(number)) => number.as_str().parse().ok(),
            Some(_) => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{key} must be an integer from {least} to {most}")),
        }
    }

    /// The value that a text stands for.
    pub(super) fn parsed<T: FromStr<Err: fmt::Display>>(&self, key: &str, text: &str) -> Result<T, String> {
        text.parse().map_err(|rule: T::Err| {
            let rule = rule.to_string();
            // Some rules name their field themselves.
            let rule = rule.strip_prefix(key).map_or(&*rule, str::trim_start);
            format!("{key} {rule}, got {text:?}")
        })
    }
}
