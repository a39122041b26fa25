//! The configurable fields of an agent as data.

/// A configurable field of an agent: what a form, a command line or a tool needs to know of it.
/// [`AgentConfig::fields`](super::AgentConfig::fields) has all of them.
///
/// ```
/// use agentcfg_core::model::{AgentConfig, FieldValues};
/// let role = AgentConfig::fields().iter().find(|field| field.name == "role").unwrap();
/// assert_eq!(role.about, "Job title shown next to the name.");
/// assert_eq!(role.values, FieldValues::Text { max_length: 100 });
/// assert!(role.is_nullable);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigField {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it is, in sentences.
    pub about: &'static str,
    /// Which values it takes.
    pub values: FieldValues,
    /// Whether it may be null.
    pub is_nullable: bool,
}

/// The values that a [`ConfigField`] takes. The service has further rules for some of them.
///
/// ```
/// use agentcfg_core::model::{AgentConfig, FieldValues};
/// for field in AgentConfig::fields() {
///     match field.values {
///         FieldValues::Words(words) => println!("{}: one of {}", field.name, words.join(", ")),
///         FieldValues::Text { max_length } => println!("{}: up to {max_length} characters", field.name),
///         _ => println!("{}", field.name),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValues {
    /// A text.
    Text {
        /// The greatest length, in Unicode scalar values.
        max_length: usize,
    },
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of texts.
    Texts {
        /// The greatest number of them.
        max_items: usize,
    },
    /// A number for each name.
    Numbers {
        /// The greatest number of names.
        max_entries: usize,
    },
    /// A JSON object.
    Object {
        /// The greatest length as compact JSON, in bytes.
        max_bytes: usize,
    },
}
