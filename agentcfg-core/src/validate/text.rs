//! Checks of texts: their length, and the forms of identifiers, labels and messages.

use std::fmt::Display;

use super::{Faults, MAX_AGENT_ID, MAX_LABEL, MAX_MESSAGE, MAX_SET_NAME, MAX_USER_ID};

/// Refuses the character that some databases cannot hold.
pub(crate) fn without_nul(text: &str, field: impl Display, faults: &mut Faults) {
    if text.contains('\0') {
        faults.push(field, "must not contain a NUL character");
    }
}

pub(crate) fn length_at_most(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    let length = text.chars().count();
    if length > max {
        faults.push(field, format_args!("must be at most {max} characters, got {length}"));
    }
}

pub(crate) fn at_most(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    without_nul(text, &field, faults);
    length_at_most(text, max, &field, faults);
}

pub(crate) fn from_one(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    if text.is_empty() {
        faults.push(&field, format_args!("must be 1 to {max} characters, got 0"));
    }
    at_most(text, max, field, faults);
}

pub(crate) fn not_blank(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    if !text.is_empty() && text.chars().all(char::is_whitespace) {
        faults.push(&field, "must not be blank");
    }
    from_one(text, max, field, faults);
}

pub(crate) fn length_from_one(text: &str, max: usize, field: impl Display, faults: &mut Faults) {
    let length = text.chars().count();
    if !(1..=max).contains(&length) {
        faults.push(field, format_args!("must be 1 to {max} characters, got {length}"));
    }
}

fn is_agent_id_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// An agent's identifier: 1–50 of `a-z`, `0-9`, `-` and `_`.
pub(crate) fn agent_id(text: &str, field: &dyn Display, faults: &mut Faults) {
    length_at_most(text, MAX_AGENT_ID, field, faults);
    if text.is_empty() || !text.bytes().all(is_agent_id_byte) {
        faults.push(field, format_args!("must be 1 to {MAX_AGENT_ID} of a-z, 0-9, - and _"));
    }
}

/// The name of a set: 1–50 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit.
pub(crate) fn set_name(text: &str, field: &dyn Display, faults: &mut Faults) {
    length_at_most(text, MAX_SET_NAME, field, faults);
    let is_first = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let is_next = |byte: &u8| is_first(byte) || matches!(byte, b'.' | b'_' | b'-');
    if !text.as_bytes().first().is_some_and(is_first) || !text.as_bytes().iter().all(is_next) {
        let rule =
            format_args!("must be 1 to {MAX_SET_NAME} of a-z, 0-9, ., _ and -, and begin with a letter or a digit");
        faults.push(field, rule);
    }
}

/// A user's identifier: 1–200 characters without control characters.
pub(crate) fn user_id(text: &str, field: &dyn Display, faults: &mut Faults) {
    length_from_one(text, MAX_USER_ID, field, faults);
    if text.chars().any(char::is_control) {
        faults.push(field, "must not contain control characters");
    }
}

/// The length of an API key's identifier.
const API_KEY_ID: usize = 20;

/// An API key's identifier: 20 letters and digits.
pub(crate) fn api_key_id(text: &str, field: &dyn Display, faults: &mut Faults) {
    if text.len() != API_KEY_ID || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        faults.push(field, format_args!("must be {API_KEY_ID} of 0-9, A-Z and a-z"));
    }
}

/// A label: 1–36 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit, and not digits alone.
pub(crate) fn label(text: &str, field: &dyn Display, faults: &mut Faults) {
    length_at_most(text, MAX_LABEL, field, faults);
    let is_part = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let starts_well = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if !starts_well || !text.bytes().all(is_part) {
        faults.push(
            field,
            format_args!("must be 1 to {MAX_LABEL} of a-z, 0-9, ., _ and -, starting with a letter or a digit"),
        );
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        faults.push(field, "must not be digits alone, which is the number of a version");
    }
}

/// The message of a change: at most 500 characters without NUL.
pub(crate) fn message(text: &str, field: &dyn Display, faults: &mut Faults) {
    without_nul(text, field, faults);
    length_at_most(text, MAX_MESSAGE, field, faults);
}
