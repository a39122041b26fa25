//! Writes an agent's file: the same agent always gives the same bytes.

use std::fmt::Write as _;

use serde_json::Value;

use super::{FENCE, Fields};

/// The content of an agent's file.
pub fn write(agent_id: &str, fields: &Fields) -> String {
    let lines: String = fields.in_front().map(|(name, value)| field(name, value)).collect();
    compose(agent_id, &lines, fields.get(Fields::BODY).as_str())
}

/// The content of a file with these lines of fields and this persona.
pub fn compose(agent_id: &str, lines: &str, persona: Option<&str>) -> String {
    let head = field("agent_id", &agent_id.into());
    let body = persona.map(|persona| format!("{persona}\n")).unwrap_or_default();
    format!("{FENCE}\n{head}{lines}{FENCE}\n{body}")
}

/// The lines of one field. A null, an empty list and an empty map have none, because that is the value of an absent
/// field; an empty definition is none that is absent.
pub fn field(name: &str, value: &Value) -> String {
    let is_absent = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty() && name != Fields::DEFINITION,
        _ => false,
    };
    let mut lines = String::new();
    if !is_absent {
        entry(0, name, value, &mut lines);
    }
    lines
}

/// The longest key that a reader takes without the sign of a key in front of it.
const LONG_KEY: usize = 1000;

/// The lines of a key and its value.
fn entry(indent: usize, key: &str, value: &Value, lines: &mut String) {
    let key = text(key);
    let _ = match key.len() > LONG_KEY {
        true => write!(lines, "{:indent$}? {key}\n{:indent$}:", "", ""),
        false => write!(lines, "{:indent$}{key}:", ""),
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            lines.push('\n');
            list(indent + 2, items, lines);
        }
        Value::Object(entries) if !entries.is_empty() => {
            lines.push('\n');
            for (key, value) in entries {
                entry(indent + 2, key, value, lines);
            }
        }
        value => leaf(indent, value, lines),
    }
}

fn list(indent: usize, items: &[Value], lines: &mut String) {
    for item in items {
        let _ = write!(lines, "{:indent$}-", "");
        match item {
            Value::Array(items) if !items.is_empty() => {
                lines.push('\n');
                list(indent + 2, items, lines);
            }
            Value::Object(entries) if !entries.is_empty() => {
                let mut inner = String::new();
                for (key, value) in entries {
                    entry(indent + 2, key, value, &mut inner);
                }
                // The first key stands beside the hyphen.
                lines.push_str(&inner[indent + 1..]);
            }
            item => leaf(indent, item, lines),
        }
    }
}

/// What follows a key or a hyphen on its line: a scalar, or the lines of a long text.
fn leaf(indent: usize, value: &Value, lines: &mut String) {
    match value {
        Value::String(text) if is_block(text) => block(indent + 2, text, lines),
        value => {
            let _ = writeln!(lines, " {}", scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Number(number) => self::number(&number.to_string()),
        // JSON is valid YAML.
        other => other.to_string(),
    }
}

/// A number as readers of every version of YAML take it: one with an exponent has a fraction and a sign.
fn number(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    format!("{mantissa}{fraction}e{sign}{exponent}")
}

/// A text on one line, without quotes if no reader of YAML can take it for another type.
fn text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(char::is_alphabetic)
        && !text.ends_with(' ')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '(' | ')' | '+' | ',' | ';'))
        && !WORDS.contains(&text.to_lowercase().as_str())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            c if !is_visible(c) => {
                let _ = match u32::from(c) {
                    code @ ..=0xff => write!(quoted, "\\x{code:02x}"),
                    code @ ..=0xffff => write!(quoted, "\\u{code:04x}"),
                    code => write!(quoted, "\\U{code:08x}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character is visible. Others are escaped: YAML forbids some of them or gives them a meaning, and a
/// reviewer must not overlook them.
fn is_visible(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    !c.is_control() && (c == ' ' || !c.is_whitespace()) && !is_format && !is_noncharacter
}

/// Whether a text has several lines that a literal block keeps exactly, and in which no white space is easily lost.
fn is_block(text: &str) -> bool {
    let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && lines.all(|line| !line.ends_with(' ') && line.chars().all(is_visible))
}

fn block(indent: usize, text: &str, lines: &mut String) {
    let (head, text) = match text.strip_suffix('\n') {
        Some(text) => ("|", text),
        None => ("|-", text),
    };
    let _ = writeln!(lines, " {head}");
    for line in text.split('\n') {
        let indent = if line.is_empty() { 0 } else { indent };
        let _ = writeln!(lines, "{:indent$}{line}", "");
    }
}
