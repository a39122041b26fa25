//! From front matter to JSON, and back from the field of a fault to its place in the file.

use std::fmt::Write as _;

use agentcfg_core::validate::shown;

use super::Place;
use super::yaml::{Entry, Node, Yaml};

/// Writes entries, and members that are JSON already, as a JSON object. The core reads it, and checks types and rules.
pub fn json_object(entries: &[Entry], more: &[String]) -> String {
    let member = |entry: &Entry| format!("{}:{}", json_text(&entry.key), json_value(&entry.node));
    let members: Vec<_> = entries.iter().map(member).chain(more.iter().cloned()).collect();
    format!("{{{}}}", members.join(","))
}

pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub fn json_value(node: &Node) -> String {
    match &node.value {
        Yaml::Scalar { text, is_plain: false } => json_text(text),
        Yaml::Scalar { text, is_plain: true } => match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => "null".to_owned(),
            "true" | "True" | "TRUE" => "true".to_owned(),
            "false" | "False" | "FALSE" => "false".to_owned(),
            _ => number(text).unwrap_or_else(|| json_text(text)),
        },
        Yaml::List(items) => {
            let items: Vec<_> = items.iter().map(json_value).collect();
            format!("[{}]", items.join(","))
        }
        Yaml::Map(entries) => json_object(entries, &[]),
    }
}

/// A number of YAML 1.2 as JSON writes it; `None` for another text. Infinity and "not a number" are numbers of YAML
/// that no parameter can have, so that they are texts here and refused by their type.
pub(crate) fn number(text: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(number) = text.strip_prefix(prefix) {
            let is_number = number.chars().all(|c| c.is_digit(radix));
            let number = u64::from_str_radix(number, radix).ok().filter(|_| is_number)?;
            return Some(number.to_string());
        }
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_mantissa = match fraction {
        None => digits(whole),
        Some("") => digits(whole),
        Some(fraction) => digits(fraction) && (whole.is_empty() || digits(whole)),
    };
    let unsigned = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if !is_mantissa || !unsigned.is_none_or(digits) {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let mut number = format!("{sign}{whole}");
    if let Some(fraction) = fraction {
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        let _ = write!(number, ".{fraction}");
    }
    if let Some(exponent) = exponent {
        let _ = write!(number, "e{exponent}");
    }
    Some(number)
}

/// The place of the field that a fault names: that of the value, or of the key if the key is wrong. Where the file does
/// not have a part of the path, it is the place of the value that lacks it; `None` for a field that the file does not
/// have.
pub fn place_of(field: &str, entries: &[Entry]) -> Option<Place> {
    let (path, is_name) = match field.strip_prefix("the name of ") {
        Some(path) => (path, true),
        None => (field, false),
    };
    let (mut entry, mut rest) = entry_at(path, entries)?;
    let mut node = &entry.node;
    loop {
        if rest.is_empty() {
            return Some(if is_name { entry.place } else { node.place });
        }
        let inner = match &node.value {
            Yaml::Map(entries) => {
                rest.strip_prefix('.')
                    .and_then(|rest| entry_at(rest, entries))
                    .map(|(inner, rest)| {
                        entry = inner;
                        (&inner.node, rest)
                    })
            }
            Yaml::List(items) => item_at(rest, items),
            Yaml::Scalar { .. } => None,
        };
        let Some((deeper, more)) = inner else {
            return Some(node.place);
        };
        (node, rest) = (deeper, more);
    }
}

/// The place of a field that is not known: that of its value in the line of the key, else that of the key, because the
/// lines of a list, a map or a block may be far below it.
pub fn place_of_unknown(field: &str, entries: &[Entry]) -> Option<Place> {
    let key = place_of(&format!("the name of {field}"), entries)?;
    let value = place_of(field, entries)?;
    Some(if value.line == key.line { value } else { key })
}

/// The entry whose key a path begins with, and the rest of the path. A key may have dots and brackets in it, so the
/// longest one is taken.
fn entry_at<'a, 'p>(path: &'p str, entries: &'a [Entry]) -> Option<(&'a Entry, &'p str)> {
    let rest = |entry: &'a Entry| {
        let rest = path.strip_prefix(&shown(&entry.key).to_string())?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some((entry, rest))
    };
    entries.iter().filter_map(rest).min_by_key(|(_, rest)| rest.len())
}

/// The item whose index a path begins with, and the rest of the path.
fn item_at<'a, 'p>(path: &'p str, items: &'a [Node]) -> Option<(&'a Node, &'p str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((items.get(index.parse::<usize>().ok()?)?, rest))
}
