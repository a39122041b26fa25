//! The rules for values: limits, pure checks, and a report of every fault at once.
//!
//! Lengths count Unicode scalar values. Nothing is trimmed or normalised: a text is either kept as it was
//! sent or refused. (Interface specification, *Field size limits*.)

mod faults;
mod nearest;
#[cfg(test)]
mod tests;
mod valid;

use std::fmt::Display;

pub use self::faults::{Fault, Faults, Invalid, quoted, shown};
pub use self::nearest::nearest;
pub(crate) use self::valid::read;
pub use self::valid::{IntoValid, Valid};
pub use crate::json::read_json;
use crate::rules;

/// The number of entries in a part of a list that names no limit.
pub const DEFAULT_LIMIT: u64 = 100;
/// The greatest limit of a list.
pub const MAX_LIMIT: u64 = 1000;
/// The greatest length of an `agent_id`.
pub const MAX_AGENT_ID: usize = 50;
/// The greatest length of the name of a set.
pub const MAX_SET_NAME: usize = 50;
/// The greatest number of agents in the body of an apply.
pub const MAX_APPLIED: usize = 1000;
/// The greatest length of a `display_name`.
pub const MAX_DISPLAY_NAME: usize = 100;
/// The greatest length of a `role`.
pub const MAX_ROLE: usize = 100;
/// The greatest length of a `description`.
pub const MAX_DESCRIPTION: usize = 2000;
/// The greatest length of a `model`.
pub const MAX_MODEL: usize = 100;
/// The greatest length of a `color`.
pub const MAX_COLOR: usize = 20;
/// The greatest length of a `persona_prompt`.
pub const MAX_PERSONA_PROMPT: usize = 5000;
/// The greatest number of `capabilities` and of `parameters`.
pub const MAX_ENTRIES: usize = 100;
/// The greatest length of a tag and of a parameter's name.
pub const MAX_ENTRY_NAME: usize = 100;
/// The greatest length of a workspace's or an API key's name and of a task's identifier.
pub const MAX_NAME: usize = 100;
/// The greatest length of a task's title.
pub const MAX_TASK_TITLE: usize = 200;
/// The greatest length of a user's identifier.
pub const MAX_USER_ID: usize = 200;
/// The greatest length of a provider key.
pub const MAX_PROVIDER_KEY: usize = 500;
/// The greatest length of a label.
pub const MAX_LABEL: usize = 36;
/// The greatest number of labels of an agent.
pub const MAX_LABELS: usize = 20;
/// The greatest number of agents that one promotion moves.
pub const MAX_PROMOTED: usize = 1000;
/// The greatest length of the message of a change.
pub const MAX_MESSAGE: usize = 500;
/// Characters of a webhook's `description`.
///
/// ```
/// assert_eq!(agentcfg_core::validate::MAX_WEBHOOK_DESCRIPTION, 500);
/// ```
pub const MAX_WEBHOOK_DESCRIPTION: usize = 500;
/// The greatest requests per minute of an API key.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;
/// The greatest length of a login code.
///
/// ```
/// assert!(agentcfg_core::validate::MAX_LOGIN_CODE > 1000, "it holds the id of a user in base64");
/// ```
pub const MAX_LOGIN_CODE: usize = 1200;
/// The most seconds that a replaced API key still works: 30 days.
///
/// ```
/// assert_eq!(agentcfg_core::validate::MAX_OVERLAP, 30 * 24 * 60 * 60);
/// ```
pub const MAX_OVERLAP: u32 = 2_592_000;

fn is_agent_id_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// Whether a text can be a user's identifier: 1–200 characters, no control characters.
///
/// ```
/// use agentcfg_core::validate::is_user_id;
/// assert!(is_user_id("auth0|ada@example.com"));
/// assert!(!is_user_id("ada\n"));
/// ```
pub fn is_user_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_USER_ID && !text.chars().any(char::is_control)
}

/// An agent's identifier: 1–50 of `a-z`, `0-9`, `-` and `_`.
pub(crate) fn agent_id(text: &str, field: &dyn Display, faults: &mut Faults) {
    rules::length_at_most(text, MAX_AGENT_ID, field, faults);
    if text.is_empty() || !text.bytes().all(is_agent_id_byte) {
        faults.push(field, format_args!("must be 1 to {MAX_AGENT_ID} of a-z, 0-9, - and _"));
    }
}

/// The name of a set: 1–50 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit.
pub(crate) fn set_name(text: &str, field: &dyn Display, faults: &mut Faults) {
    rules::length_at_most(text, MAX_SET_NAME, field, faults);
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
    rules::length_from_one(text, MAX_USER_ID, field, faults);
    if text.chars().any(char::is_control) {
        faults.push(field, "must not contain control characters");
    }
}

/// The length of an API key's identifier.
pub(crate) const API_KEY_ID: usize = 20;

/// An API key's identifier: 20 letters and digits.
pub(crate) fn api_key_id(text: &str, field: &dyn Display, faults: &mut Faults) {
    if text.len() != API_KEY_ID || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        faults.push(field, format_args!("must be {API_KEY_ID} of 0-9, A-Z and a-z"));
    }
}

/// A label: 1–36 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit, and not digits alone.
pub(crate) fn label(text: &str, field: &dyn Display, faults: &mut Faults) {
    rules::length_at_most(text, MAX_LABEL, field, faults);
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
    rules::without_nul(text, field, faults);
    rules::length_at_most(text, MAX_MESSAGE, field, faults);
}
