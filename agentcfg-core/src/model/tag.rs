//! Tags of versions, for optimistic concurrency control: an edit never overwrites a change that its author has not seen.

use std::fmt;
use std::str::FromStr;

use super::Epoch;

/// The version of a resource.
///
/// No two states of a resource have the same tag, not even after a restore from an older backup: the [`Epoch`] differs then.
/// Over HTTP a tag is a strong entity tag, in double quotes.
///
/// ```
/// use agentcfg_core::model::Tag;
/// let tag: Tag = "k3j9x0ab-a7".parse()?;
/// assert_eq!(tag, Tag::record(tag.epoch(), 7));
/// assert_ne!(tag, Tag::list(tag.epoch(), 7));
/// assert_eq!(tag.to_string(), "k3j9x0ab-a7");
/// # Ok::<(), agentcfg_core::model::InvalidTag>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    epoch: Epoch,
    kind: char,
    number: u64,
}

/// A text that is no [`Tag`].
///
/// ```
/// use agentcfg_core::model::{InvalidTag, Tag};
/// assert_eq!("k3j9x0ab".parse::<Tag>(), Err(InvalidTag));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tag is an epoch, a hyphen, `a`, `s` or `w`, and a number")]
pub struct InvalidTag;

const RECORD: char = 'a';
const LIST: char = 'w';
const STATE: char = 's';
/// The kind of [`Tag::UNKNOWN`]. A text with it is never parsed.
const UNKNOWN: char = 'u';

impl Tag {
    /// The tag as an entity tag of HTTP, for the header field `ETag`: strong, and in quotes.
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// assert_eq!("k3j9x0ab-a7".parse::<Tag>()?.to_etag(), "\"k3j9x0ab-a7\"");
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub fn to_etag(self) -> String {
        format!("\"{self}\"")
    }

    /// The tag of one agent's record.
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// let tag = Tag::record("k3j9x0ab".parse()?, 7);
    /// assert_eq!(tag.to_string(), "k3j9x0ab-a7");
    /// # Ok::<(), agentcfg_core::model::InvalidEpoch>(())
    /// ```
    pub const fn record(epoch: Epoch, version: u64) -> Self {
        Self {
            epoch,
            kind: RECORD,
            number: version,
        }
    }

    /// The tag of a list in a workspace.
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// let tag = Tag::list("k3j9x0ab".parse()?, 7);
    /// assert_eq!(tag.to_string(), "k3j9x0ab-w7");
    /// # Ok::<(), agentcfg_core::model::InvalidEpoch>(())
    /// ```
    pub const fn list(epoch: Epoch, revision: u64) -> Self {
        Self {
            epoch,
            kind: LIST,
            number: revision,
        }
    }

    /// The tag of a list that changes only when what it shows does: the number is a hash of its text.
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// let tag = Tag::state("k3j9x0ab".parse()?, 7);
    /// assert_eq!(tag.to_string(), "k3j9x0ab-s7");
    /// # Ok::<(), agentcfg_core::model::InvalidEpoch>(())
    /// ```
    pub const fn state(epoch: Epoch, hash: u64) -> Self {
        Self {
            epoch,
            kind: STATE,
            number: hash,
        }
    }

    /// The tag of a version that no record and no list has.
    ///
    /// It stands where a response names no tag of this service, such as one that a proxy has removed or changed: a
    /// conditional change with it fails instead of overwriting a newer version.
    ///
    /// ```
    /// use agentcfg_core::model::{Precondition, Tag};
    /// let current: Tag = "k3j9x0ab-a7".parse()?;
    /// assert!(!Precondition::matches(Tag::UNKNOWN).is_met_by(current));
    /// assert!(Tag::UNKNOWN.to_string().parse::<Tag>().is_err());
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub const UNKNOWN: Self = Self {
        epoch: Epoch::ZERO,
        kind: UNKNOWN,
        number: 0,
    };

    /// The epoch of the store that the version is in.
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// let tag: Tag = "k3j9x0ab-a7".parse()?;
    /// assert_eq!(tag.epoch().as_str(), "k3j9x0ab");
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub const fn epoch(self) -> Epoch {
        self.epoch
    }

    /// The letter that says what is tagged: `a` for an agent's record, `w` for a list at a revision of a workspace, `s` for a
    /// list of the same content, `u` for [`Tag::UNKNOWN`].
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// assert_eq!("k3j9x0ab-w7".parse::<Tag>()?.kind(), 'w');
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub const fn kind(self) -> char {
        self.kind
    }

    /// The number of the version, or the hash of a [state](Self::state).
    ///
    /// ```
    /// use agentcfg_core::model::Tag;
    /// assert_eq!("k3j9x0ab-a7".parse::<Tag>()?.number(), 7);
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}{}", self.epoch, self.kind, self.number)
    }
}

impl FromStr for Tag {
    type Err = InvalidTag;

    /// Takes exactly what [`Display`](fmt::Display) writes, so that equal tags have equal texts.
    fn from_str(text: &str) -> Result<Self, InvalidTag> {
        let (epoch, version) = text.split_once('-').ok_or(InvalidTag)?;
        let epoch = epoch.parse().map_err(|_| InvalidTag)?;
        let kind = version
            .chars()
            .next()
            .filter(|kind| [RECORD, LIST, STATE].contains(kind));
        let kind = kind.ok_or(InvalidTag)?;
        let digits = &version[kind.len_utf8()..];
        let is_canonical = digits == "0" || !digits.starts_with(['0', '+']);
        let number = digits.parse().ok().filter(|_| is_canonical).ok_or(InvalidTag)?;
        Ok(Self { epoch, kind, number })
    }
}

/// A value with the tag of its version.
///
/// ```
/// use agentcfg_core::model::{Agent, Precondition, Tagged};
/// /// The condition for a change of just this version.
/// fn unchanged(agent: &Tagged<Agent>) -> Precondition {
///     Precondition::matches(agent.tag)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged<T> {
    /// The value.
    pub value: T,
    /// The tag of this version.
    pub tag: Tag,
}

/// A version that a [`Precondition`] names.
///
/// ```
/// use agentcfg_core::model::{Expected, Tag};
/// let tag: Tag = "k3j9x0ab-a7".parse()?;
/// assert_eq!(Expected::from("k3j9x0ab-a7"), Expected::Tag(tag));
/// assert_eq!(Expected::from("seven"), Expected::Unknown("seven".into()));
/// # Ok::<(), agentcfg_core::model::InvalidTag>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The version with this tag.
    Tag(Tag),
    /// A tag that this service has not given out. No record ever has it.
    Unknown(String),
}

impl From<Tag> for Expected {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

impl From<&str> for Expected {
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Unknown(text.to_owned()), Self::Tag)
    }
}

/// A condition on the version of a record.
///
/// ```
/// use agentcfg_core::model::{Precondition, Tag};
/// let (seventh, eighth): (Tag, Tag) = ("k3j9x0ab-a7".parse()?, "k3j9x0ab-a8".parse()?);
/// assert!(Precondition::None.is_met_by(eighth));
/// assert!(!Precondition::matches(seventh).is_met_by(eighth));
/// # Ok::<(), agentcfg_core::model::InvalidTag>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    /// No condition: any version is accepted.
    #[default]
    None,
    /// The record must exist, in any version.
    Exists,
    /// The record must have one of these versions.
    OneOf(Vec<Expected>),
}

/// The members of a list of entity tags, as they stand in `If-Match` or `If-None-Match`: a comma within quotes belongs to the
/// tag. Empty members are left out.
///
/// ```
/// use agentcfg_core::model::entity_tags;
/// assert_eq!(entity_tags("\"a,b\", W/\"c\",,*"), ["\"a,b\"", "W/\"c\"", "*"]);
/// ```
pub fn entity_tags(field: &str) -> Vec<&str> {
    let mut is_quoted = false;
    field
        .split(|character: char| {
            is_quoted ^= character == '"';
            character == ',' && !is_quoted
        })
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
        .collect()
}

impl Precondition {
    /// The condition in a header field `If-Match`. What is no strong entity tag of this service matches no record.
    ///
    /// ```
    /// use agentcfg_core::model::{Precondition, Tag};
    /// let tag: Tag = "k3j9x0ab-a7".parse()?;
    /// assert_eq!(Precondition::from_if_match("\"k3j9x0ab-a7\""), Precondition::matches(tag));
    /// assert_eq!(Precondition::from_if_match("*"), Precondition::Exists);
    /// assert!(!Precondition::from_if_match("W/\"k3j9x0ab-a7\"").is_met_by(tag));
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub fn from_if_match(field: &str) -> Self {
        let expected = |tag: &str| {
            let text = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            match text.and_then(|text| text.parse().ok()) {
                Some(tag) => Expected::Tag(tag),
                None => Expected::Unknown(tag.to_owned()),
            }
        };
        match entity_tags(field)[..] {
            ["*"] => Self::Exists,
            ref tags => Self::OneOf(tags.iter().copied().map(expected).collect()),
        }
    }

    /// The record must have this version.
    ///
    /// ```
    /// use agentcfg_core::model::{Precondition, Tag};
    /// let tag: Tag = "k3j9x0ab-a7".parse()?;
    /// assert!(Precondition::matches(tag).is_met_by(tag));
    /// assert!(!Precondition::matches("something else").is_met_by(tag));
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub fn matches(expected: impl Into<Expected>) -> Self {
        Self::OneOf(vec![expected.into()])
    }

    /// Whether a record of this version meets the condition.
    ///
    /// ```
    /// use agentcfg_core::model::{Expected, Precondition, Tag};
    /// let tag: Tag = "k3j9x0ab-a7".parse()?;
    /// let either = Precondition::OneOf(vec![Expected::from("k3j9x0ab-a6"), Expected::from(tag)]);
    /// assert!(either.is_met_by(tag));
    /// # Ok::<(), agentcfg_core::model::InvalidTag>(())
    /// ```
    pub fn is_met_by(&self, current: Tag) -> bool {
        match self {
            Self::None | Self::Exists => true,
            Self::OneOf(expected) => expected.contains(&Expected::Tag(current)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_as_it_is_written() {
        let epoch = "k3j9x0ab".parse().unwrap();
        for tag in [
            Tag::record(epoch, 0),
            Tag::record(epoch, 10),
            Tag::list(epoch, u64::MAX),
        ] {
            assert_eq!(tag.to_string().parse(), Ok(tag));
        }
    }

    #[test]
    fn other_texts_are_no_tags() {
        for text in [
            "",
            "a7",
            "k3j9x0ab",
            "k3j9x0ab-",
            "k3j9x0ab-a",
            "k3j9x0ab-a07",
            "k3j9x0ab-a00",
            "k3j9x0ab-a+7",
            "k3j9x0ab-a-7",
            "k3j9x0ab-b7",
            "k3j9x0ab-ä7",
            "k3j9x0ab-a7 ",
            "k3j9x0ab-a18446744073709551616",
            "\"k3j9x0ab-a7\"",
            "k3j9x0ab-a7-gzip",
        ] {
            assert_eq!(text.parse::<Tag>(), Err(InvalidTag), "{text}");
        }
    }
}
