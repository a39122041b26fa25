//! Entity tags, for edits that do not overwrite what somebody else wrote.

use std::fmt;

/// The version of a resource as a strong entity tag.
///
/// ```
/// use agentcfg_core::model::Tag;
/// assert_eq!(Tag::record(7).to_string(), "\"a7\"");
/// assert_ne!(Tag::record(7), Tag::list(7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    kind: char,
    number: u64,
}

impl Tag {
    /// The tag of one agent's record.
    pub const fn record(version: u64) -> Self {
        Self {
            kind: 'a',
            number: version,
        }
    }

    /// The tag of a list in a workspace.
    pub const fn list(revision: u64) -> Self {
        Self {
            kind: 'w',
            number: revision,
        }
    }

    /// The letter that tells what is tagged.
    pub const fn kind(self) -> char {
        self.kind
    }

    /// The number of the version.
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}{}\"", self.kind, self.number)
    }
}

/// A value with the tag of its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged<T> {
    /// The value.
    pub value: T,
    /// The tag of this version.
    pub tag: Tag,
}

/// A condition on the version of a record, as the header `If-Match` states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// Any version will do.
    #[default]
    None,
    /// The record must exist, in any version: `*`.
    Exists,
    /// The record must have one of these tags, compared strongly.
    OneOf(Vec<String>),
}

impl Precondition {
    /// The record must have this tag.
    pub fn matches(tag: impl fmt::Display) -> Self {
        Self::OneOf(vec![tag.to_string()])
    }

    /// Whether a record with this tag meets the condition.
    pub fn is_met_by(&self, tag: Tag) -> bool {
        match self {
            Self::None | Self::Exists => true,
            Self::OneOf(tags) => {
                let current = tag.to_string();
                tags.contains(&current)
            }
        }
    }
}
