//! The rules for values: limits, pure checks, and a report of every fault at once.
//!
//! Lengths count Unicode scalar values. Nothing is trimmed or normalised: a text is kept as it was
//! sent or refused. (Interface specification, *Field size limits*.)

#[cfg(test)]
mod tests;

use std::fmt;

use crate::model::{
    AgentPatch, LiveStatus, NewAgent, NewApiKey, NewWorkspace, Parameters, StatusReport, WorkspacePatch,
};

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

    /// A text without a NUL character, which no identifier or text may have.
    pub(crate) fn without_nul(&mut self, field: impl fmt::Display, text: &str) {
        if text.contains('\0') {
            self.push(field, "must not contain a NUL character");
        }
    }

    fn text(&mut self, field: impl fmt::Display, text: &str, max: usize) {
        self.without_nul(&field, text);
        let length = text.chars().count();
        if length > max {
            self.push(&field, format_args!("must be at most {max} characters, got {length}"));
        }
    }

    fn text_from_one(&mut self, field: impl fmt::Display, text: &str, max: usize) {
        if text.is_empty() {
            self.push(&field, format_args!("must be 1 to {max} characters, got 0"));
        }
        self.text(field, text, max);
    }

    fn not_blank(&mut self, field: impl fmt::Display, text: &str, max: usize) {
        if !text.is_empty() && text.chars().all(char::is_whitespace) {
            self.push(&field, "must not be blank");
        }
        self.text_from_one(field, text, max);
    }
}

/// Whether a text can be an agent's identifier.
pub fn is_agent_id(text: &str) -> bool {
    (1..=MAX_AGENT_ID).contains(&text.len()) && text.bytes().all(is_agent_id_byte)
}

fn is_agent_id_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')
}

/// Whether a text can be a user's identifier: 1–200 characters, no control characters.
pub fn is_user_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_USER_ID && !text.chars().any(char::is_control)
}

/// `agent_id`: 1–50 of `a-z`, `0-9`, `-` and `_`.
pub fn agent_id(text: &str, faults: &mut Faults) {
    let length = text.chars().count();
    if length > MAX_AGENT_ID {
        faults.push(
            "agent_id",
            format_args!("must be at most {MAX_AGENT_ID} characters, got {length}"),
        );
    }
    if text.is_empty() || !text.bytes().all(is_agent_id_byte) {
        faults.push(
            "agent_id",
            format_args!("must be 1 to {MAX_AGENT_ID} of a-z, 0-9, - and _"),
        );
    }
}

/// `display_name`: at least one character that is not blank, at most 100.
pub fn display_name(text: &str, faults: &mut Faults) {
    faults.not_blank("display_name", text, MAX_DISPLAY_NAME);
}

/// `role`: at most 100 characters.
pub fn role(text: &str, faults: &mut Faults) {
    faults.text("role", text, MAX_ROLE);
}

/// `description`: at most 2000 characters.
pub fn description(text: &str, faults: &mut Faults) {
    faults.text("description", text, MAX_DESCRIPTION);
}

/// `model`: at most 100 characters.
pub fn model(text: &str, faults: &mut Faults) {
    faults.text("model", text, MAX_MODEL);
}

/// `color`: `#` and 3, 4, 6 or 8 hexadecimal digits.
pub fn color(text: &str, faults: &mut Faults) {
    let length = text.chars().count();
    if length > MAX_COLOR {
        faults.push(
            "color",
            format_args!("must be at most {MAX_COLOR} characters, got {length}"),
        );
    }
    let digits = text.strip_prefix('#').unwrap_or_default();
    if !matches!(digits.len(), 3 | 4 | 6 | 8) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        faults.push("color", "must be # and 3, 4, 6 or 8 hexadecimal digits");
    }
}

/// `persona_prompt`: at most 5000 characters.
pub fn persona_prompt(text: &str, faults: &mut Faults) {
    faults.text("persona_prompt", text, MAX_PERSONA_PROMPT);
}

/// `capabilities`: at most 100 tags of 1–100 characters, not blank.
pub fn capabilities(tags: &[String], faults: &mut Faults) {
    if tags.len() > MAX_ENTRIES {
        faults.push(
            "capabilities",
            format_args!("must have at most {MAX_ENTRIES} tags, got {}", tags.len()),
        );
    }
    for (i, tag) in tags.iter().enumerate() {
        faults.not_blank(format_args!("capabilities[{i}]"), tag, MAX_ENTRY_NAME);
    }
}

/// `parameters`: at most 100 entries with names of 1–100 characters.
pub fn parameters(parameters: &Parameters, faults: &mut Faults) {
    if parameters.len() > MAX_ENTRIES {
        faults.push(
            "parameters",
            format_args!("must have at most {MAX_ENTRIES} entries, got {}", parameters.len()),
        );
    }
    for name in parameters.keys() {
        faults.text_from_one(
            format_args!("the name of parameters.{}", shown(name)),
            name,
            MAX_ENTRY_NAME,
        );
    }
}

/// `current_task_id`: 1–100 characters.
pub fn current_task_id(text: &str, faults: &mut Faults) {
    faults.text_from_one("current_task_id", text, MAX_NAME);
}

/// `current_task_title`: 1–200 characters.
pub fn current_task_title(text: &str, faults: &mut Faults) {
    faults.text_from_one("current_task_title", text, MAX_TASK_TITLE);
}

/// Whether a field of a task is there when the status is `working`, and not else.
pub(crate) fn task_fits(status: LiveStatus, field: &str, present: bool, faults: &mut Faults) {
    match (status, present) {
        (LiveStatus::Working, false) => faults.push(field, "is required when status is working"),
        (LiveStatus::Idle | LiveStatus::Offline, true) => {
            faults.push(field, format_args!("must be absent when status is {status}"));
        }
        (LiveStatus::Working, true) | (LiveStatus::Idle | LiveStatus::Offline, false) => {}
    }
}

/// A status report: `working` needs a task, `idle` and `offline` take none.
pub fn status_report(report: &StatusReport, faults: &mut Faults) {
    let id = report.current_task_id.as_deref();
    let title = report.current_task_title.as_deref();
    task_fits(report.status, "current_task_id", id.is_some(), faults);
    id.into_iter().for_each(|text| current_task_id(text, faults));
    task_fits(report.status, "current_task_title", title.is_some(), faults);
    title.into_iter().for_each(|text| current_task_title(text, faults));
}

/// A workspace's `name`: 1–100 characters, not blank.
pub fn workspace_name(text: &str, faults: &mut Faults) {
    faults.not_blank("name", text, MAX_NAME);
}

/// An API key's `name`: 1–100 characters.
pub fn api_key_name(text: &str, faults: &mut Faults) {
    faults.text_from_one("name", text, MAX_NAME);
}

/// `rate_limit`: 1–1000000 requests per minute.
pub fn rate_limit(limit: u32, faults: &mut Faults) {
    if !(1..=MAX_RATE_LIMIT).contains(&limit) {
        faults.push(
            "rate_limit",
            format_args!("must be an integer from 1 to {MAX_RATE_LIMIT}"),
        );
    }
}

/// A provider key's `api_key`: 1–500 visible ASCII characters. A fault says nothing of the text but its length.
pub fn provider_key(text: &str, faults: &mut Faults) {
    let length = text.chars().count();
    if !(1..=MAX_PROVIDER_KEY).contains(&length) {
        faults.push(
            "api_key",
            format_args!("must be 1 to {MAX_PROVIDER_KEY} characters, got {length}"),
        );
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        faults.push("api_key", "must have visible ASCII characters only");
    }
}

/// `user_id`: 1–200 characters without control characters.
pub fn user_id(text: &str, faults: &mut Faults) {
    let length = text.chars().count();
    if !(1..=MAX_USER_ID).contains(&length) {
        faults.push(
            "user_id",
            format_args!("must be 1 to {MAX_USER_ID} characters, got {length}"),
        );
    }
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

fn check(rules: impl FnOnce(&mut Faults)) -> Result<(), Invalid> {
    let mut faults = Faults::default();
    rules(&mut faults);
    faults.into_result()
}

impl NewAgent {
    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of the fields.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| {
            agent_id(&self.agent_id, faults);
            display_name(&self.display_name, faults);
            let optional = [
                &self.role,
                &self.description,
                &self.model,
                &self.color,
                &self.persona_prompt,
            ];
            texts(optional.map(|text| text.as_deref()), faults);
            capabilities(&self.capabilities, faults);
            parameters(&self.parameters, faults);
        })
    }
}

impl AgentPatch {
    /// Checks every field that is named.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of the fields.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| {
            if let Some(name) = &self.display_name {
                display_name(name, faults);
            }
            let optional = [
                &self.role,
                &self.description,
                &self.model,
                &self.color,
                &self.persona_prompt,
            ];
            texts(optional.map(|text| text.value().map(String::as_str)), faults);
            if let Some(tags) = &self.capabilities {
                capabilities(tags, faults);
            }
            if let Some(numbers) = &self.parameters {
                parameters(numbers, faults);
            }
        })
    }
}

/// The nullable texts of an agent in the order of its fields.
fn texts(values: [Option<&str>; 5], faults: &mut Faults) {
    let rules = [role, description, model, color, persona_prompt];
    for (rule, value) in rules.into_iter().zip(values) {
        if let Some(text) = value {
            rule(text, faults);
        }
    }
}

impl StatusReport {
    /// Checks that the task fits the status.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of the fields.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| status_report(self, faults))
    }
}

impl NewWorkspace {
    /// Checks the name.
    ///
    /// # Errors
    ///
    /// The fault of the name.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| workspace_name(&self.name, faults))
    }
}

impl WorkspacePatch {
    /// Checks the name, if there is one.
    ///
    /// # Errors
    ///
    /// The fault of the name.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| self.name.iter().for_each(|name| workspace_name(name, faults)))
    }
}

impl NewApiKey {
    /// Checks the name and the limit.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of the fields.
    pub fn validate(&self) -> Result<(), Invalid> {
        check(|faults| {
            api_key_name(&self.name, faults);
            self.rate_limit.iter().for_each(|limit| rate_limit(*limit, faults));
        })
    }
}
