//! The rules for values: limits, pure checks, and a report of every fault at once.
//!
//! Lengths count Unicode scalar values. Nothing is trimmed or normalised: a text is kept as it was
//! sent or refused. (Interface specification, *Field size limits*.)

#[cfg(test)]
mod tests;

use std::fmt;

use crate::rules;

/// The greatest length of an `agent_id`.
pub const MAX_AGENT_ID: usize = 50;
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
/// The greatest requests per minute of an API key.
pub const MAX_RATE_LIMIT: u32 = 1_000_000;

/// What is wrong with a value: each fault names the field and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    faults: Vec<String>,
}

impl Invalid {
    /// One fault of one field.
    pub fn new(field: impl fmt::Display, rule: impl fmt::Display) -> Self {
        Self {
            faults: vec![format!("{field} {rule}")],
        }
    }
}

/// All faults, joined by `; `.
impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More than all known fields of a body can have. A body of a megabyte can have a hundred
        /// thousand unknown ones; nobody reads past these.
        const SHOWN: usize = 500;
        let shown = self.faults.len().min(SHOWN);
        f.write_str(&self.faults[..shown].join("; "))?;
        match self.faults.len() - shown {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for Invalid {}

/// Collects faults.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Notes that a field breaks a rule.
    pub fn push(&mut self, field: impl fmt::Display, rule: impl fmt::Display) {
        self.0.push(format!("{field} {rule}"));
    }

    /// Whether nothing was wrong.
    ///
    /// # Errors
    ///
    /// All the faults, if there are any.
    pub fn into_result(self) -> Result<(), Invalid> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Invalid { faults: self.0 })
        }
    }
}

/// Whether a text can be an agent's identifier.
pub fn is_agent_id(text: &str) -> bool {
    (1..=MAX_AGENT_ID).contains(&text.len()) && text.bytes().all(is_agent_id_byte)
}

pub(crate) fn is_agent_id_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// Whether a text can be a user's identifier: 1–200 characters, no control characters.
pub fn is_user_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_USER_ID && !text.chars().any(char::is_control)
}

/// `user_id`: 1–200 characters without control characters.
pub fn user_id(text: &str, faults: &mut Faults) {
    rules::length_from_one(text, MAX_USER_ID, "user_id", faults);
    if text.chars().any(char::is_control) {
        faults.push("user_id", "must not contain control characters");
    }
}

/// A name from a caller as it can stand in a message: printable and short.
pub(crate) fn shown(name: &str) -> impl fmt::Display {
    Shown(name)
}

struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("\"\"");
        }
        let mut rest = self.0.chars();
        for character in rest.by_ref().take(60) {
            fmt::Display::fmt(&character.escape_debug(), f)?;
        }
        if rest.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}
