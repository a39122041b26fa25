//! Identifiers: small types, so that one kind is never passed where another is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::body::from_text;

/// The identifier of a workspace, a UUID.
///
/// Only the hyphenated form is read, in any case; it is written in lower case.
///
/// ```
/// use agentcfg_core::model::WorkspaceId;
/// let id: WorkspaceId = "018F2D7C-0000-7000-8000-000000000001".parse()?;
/// assert_eq!(id.to_string(), "018f2d7c-0000-7000-8000-000000000001");
/// assert!("018f2d7c00007000800000000000000a".parse::<WorkspaceId>().is_err());
/// # Ok::<(), agentcfg_core::model::InvalidId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceId(Uuid);

/// The identifier of a webhook, a UUID. It is read and written as a [`WorkspaceId`] is.
///
/// ```
/// use agentcfg_core::model::WebhookId;
/// let id: WebhookId = "018F2D7C-0000-7000-8000-000000000002".parse()?;
/// assert_eq!(id.to_string(), "018f2d7c-0000-7000-8000-000000000002");
/// # Ok::<(), agentcfg_core::model::InvalidId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(Uuid);

/// The identifier of a model call, a UUID. It is read and written as a [`WorkspaceId`] is. Later calls have
/// greater ones.
///
/// ```
/// use agentcfg_core::model::CallId;
/// let id: CallId = "018F2D7C-0000-7000-8000-000000000003".parse()?;
/// assert_eq!(id.to_string(), "018f2d7c-0000-7000-8000-000000000003");
/// # Ok::<(), agentcfg_core::model::InvalidId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(Uuid);

/// Why a string is not an identifier: it is not a hyphenated UUID.
///
/// ```
/// use agentcfg_core::model::{InvalidId, WorkspaceId};
/// assert_eq!("studio".parse::<WorkspaceId>(), Err(InvalidId));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a UUID in its hyphenated form")]
pub struct InvalidId;

impl WorkspaceId {
    /// Wraps a UUID.
    ///
    /// ```
    /// use agentcfg_core::model::{WorkspaceId, parse_uuid};
    /// let id = WorkspaceId::new(parse_uuid("018f2d7c-0000-7000-8000-000000000001")?);
    /// assert_eq!(id.to_string(), "018f2d7c-0000-7000-8000-000000000001");
    /// # Ok::<(), agentcfg_core::model::InvalidId>(())
    /// ```
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The UUID itself.
    ///
    /// ```
    /// use agentcfg_core::model::WorkspaceId;
    /// let id: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// assert_eq!(id.as_uuid().get_version_num(), 7);
    /// # Ok::<(), agentcfg_core::model::InvalidId>(())
    /// ```
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl WebhookId {
    /// Wraps a UUID.
    ///
    /// ```
    /// use agentcfg_core::model::{WebhookId, parse_uuid};
    /// let id = WebhookId::new(parse_uuid("018f2d7c-0000-7000-8000-000000000002")?);
    /// assert_eq!(id.to_string(), "018f2d7c-0000-7000-8000-000000000002");
    /// # Ok::<(), agentcfg_core::model::InvalidId>(())
    /// ```
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The UUID itself.
    ///
    /// ```
    /// use agentcfg_core::model::WebhookId;
    /// let id: WebhookId = "018f2d7c-0000-7000-8000-000000000002".parse()?;
    /// assert_eq!(id.as_uuid().get_version_num(), 7);
    /// # Ok::<(), agentcfg_core::model::InvalidId>(())
    /// ```
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl CallId {
    /// Wraps a UUID.
    pub(crate) const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The milliseconds since 1970 in it, which are its first 48 bits.
    pub(crate) fn millis(self) -> i64 {
        i64::try_from(self.0.as_u128() >> 80).unwrap_or(i64::MAX)
    }
}

/// Reads a UUID in its hyphenated form only, in any case.
///
/// # Errors
///
/// [`InvalidId`] for every other form, such as braces, `urn:uuid:` and bare hexadecimal digits.
///
/// ```
/// use agentcfg_core::model::parse_uuid;
/// assert!(parse_uuid("018F2D7C-0000-7000-8000-000000000001").is_ok());
/// assert!(parse_uuid("018f2d7c000070008000000000000001").is_err());
/// ```
pub fn parse_uuid(text: &str) -> Result<Uuid, InvalidId> {
    if text.len() != 36 {
        return Err(InvalidId);
    }
    Uuid::try_parse(text).map_err(|_| InvalidId)
}

/// Reading and writing of the types that wrap a UUID.
macro_rules! uuid_ids {
    ($($name:ident),+) => {$(
        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse_uuid(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

uuid_ids!(WorkspaceId, WebhookId, CallId);

from_text!(WorkspaceId);
