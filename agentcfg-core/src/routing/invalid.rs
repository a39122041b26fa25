//! What makes a catalogue invalid.

use std::fmt;

use crate::validate::MAX_MODEL;

/// Why a catalogue is invalid.
///
/// ```
/// use agentcfg_core::model::Provider;
/// use agentcfg_core::routing::Catalogue;
/// let invalid = Catalogue::default().with_base_url(Provider::OPENAI, "api.example.com").unwrap_err();
/// println!("the address of openai {invalid}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCatalogue(pub(super) String);

/// Checks an identifier or a name.
pub(super) fn check_text(what: &str, of: &dyn fmt::Display, text: &str) -> Result<(), InvalidCatalogue> {
    let length = text.chars().count();
    match (1..=MAX_MODEL).contains(&length) && !text.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(InvalidCatalogue(format!(
            "the {what} of {of} must be 1 to {MAX_MODEL} characters without control characters, got {length}"
        ))),
    }
}
