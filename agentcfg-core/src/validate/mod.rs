//! The rules for values: limits, pure checks, and a report of every fault at once.
//!
//! Lengths count Unicode scalar values. Nothing is trimmed or normalised: a text is either kept as it was
//! sent or refused.

mod faults;
mod nearest;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod valid;

pub use self::faults::{Fault, Faults, Invalid, quoted, shown};
pub use self::nearest::{edits, nearest};
pub(crate) use self::text::{agent_id, api_key_id, label, message, set_name, user_id};
pub use self::valid::{IntoValid, Valid};
pub(crate) use self::valid::{read, read_within};
pub use crate::json::read_json;

/// The number of elements that a list has without a limit.
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
/// The greatest length of a `persona_prompt` unless
/// [`Settings::max_persona_prompt`](crate::Settings::max_persona_prompt) says otherwise.
pub const DEFAULT_PERSONA_PROMPT: u32 = 5000;
/// The greatest length of a `persona_prompt` that a deployment can allow.
pub const MAX_PERSONA_PROMPT: u32 = 200_000;
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
/// The greatest number of agents that an API key is limited to.
pub const MAX_KEY_AGENTS: usize = 100;
/// The greatest number of agents that one promotion moves.
pub const MAX_PROMOTED: usize = 1000;
/// The greatest length of the message of a change.
pub const MAX_MESSAGE: usize = 500;
/// The greatest length of a webhook's `description`.
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
/// The greatest number of seconds that a replaced API key still works: 30 days.
///
/// ```
/// assert_eq!(agentcfg_core::validate::MAX_OVERLAP, 30 * 24 * 60 * 60);
/// ```
pub const MAX_OVERLAP: u32 = 2_592_000;

/// What the identifier of a member begins with that stands for a group of the identity provider.
///
/// ```
/// assert_eq!(agentcfg_core::validate::GROUP, "group:");
/// ```
pub const GROUP: &str = "group:";

/// Whether the identifier of a member stands for a group. No user has such an identifier.
///
/// ```
/// use agentcfg_core::validate::is_group_id;
/// assert!(is_group_id("group:staff") && !is_group_id("ada"));
/// ```
pub fn is_group_id(user_id: &str) -> bool {
    user_id.starts_with(GROUP)
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
