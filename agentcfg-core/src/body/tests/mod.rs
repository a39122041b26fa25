//! Bodies as callers send them: what is read, and what is refused with which message.

mod agents;
mod collections;
mod json;
mod numbers;
mod others;

use crate::validate::Invalid;

const WORKSPACE: &str = "018f2d7c-0000-7000-8000-000000000001";

/// A body that creates an agent, with these members added to the required ones.
fn create(more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(r#"{{"workspace_id":"{WORKSPACE}","agent_id":"writer","display_name":"Writer"{comma}{more}}}"#)
}

/// The message of a body that is refused; empty when it is not.
fn fault<T>(result: Result<T, Invalid>) -> String {
    result.err().map(|invalid| invalid.to_string()).unwrap_or_default()
}

/// A JSON string of this character so many times.
fn text(character: &str, times: usize) -> String {
    format!("\"{}\"", character.repeat(times))
}
