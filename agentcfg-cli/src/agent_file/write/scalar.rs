//! Values on one line.

use std::fmt::Write as _;

use serde_json::Value;

pub fn scalar(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Number(value) => number(&value.to_string()),
        // JSON is valid YAML.
        other => other.to_string(),
    }
}

/// A number as readers of every version of YAML take it: one with an exponent has a fraction and a sign.
pub fn number(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return text.to_owned();
    };
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    format!("{mantissa}{fraction}e{sign}{exponent}")
}

/// A text on one line, without quotes if no reader of YAML can take it for another type.
pub fn text(text: &str) -> String {
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
pub fn is_visible(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    !c.is_control() && (c == ' ' || !c.is_whitespace()) && !is_format && !is_noncharacter
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn an_exponent_has_a_sign_and_a_fraction_before_it() {
        for (json, expected) in [
            ("1e300", "1.0e+300"),
            ("1e+300", "1.0e+300"),
            ("-1.5e300", "-1.5e+300"),
            ("1e-7", "1.0e-7"),
            ("12", "12"),
            ("-0.5", "-0.5"),
        ] {
            assert_eq!(number(json), expected);
        }
    }
}
