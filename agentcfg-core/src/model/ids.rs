//! Identifiers: small types, so that one kind is never passed where another is meant.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::body::{from_text, serde_as_text};

/// Why a string is not an identifier: it is not a hyphenated UUID.
///
/// ```
/// use agentcfg_core::model::{InvalidId, WorkspaceId};
/// assert_eq!("studio".parse::<WorkspaceId>(), Err(InvalidId));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a UUID in its hyphenated form")]
pub struct InvalidId;

impl CallId {
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

/// Types that wrap a UUID, with their reading and writing. The text after the name is the identifier of the examples.
macro_rules! uuid_ids {
    ($($(#[doc = $doc:literal])* $name:ident $example:literal;)+) => {$(
        $(#[doc = $doc])*
        ///
        /// ```
        #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
        #[doc = concat!("let id: ", stringify!($name), " = \"", $example, "\".to_uppercase().parse()?;")]
        #[doc = concat!("assert_eq!(id.to_string(), \"", $example, "\");")]
        #[doc = concat!("assert!(\"018f2d7c00007000800000000000000a\".parse::<", stringify!($name), ">().is_err());")]
        /// # Ok::<(), agentcfg_core::model::InvalidId>(())
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::{", stringify!($name), ", parse_uuid};")]
            #[doc = concat!("let id = ", stringify!($name), "::new(parse_uuid(\"", $example, "\")?);")]
            #[doc = concat!("assert_eq!(id.to_string(), \"", $example, "\");")]
            /// # Ok::<(), agentcfg_core::model::InvalidId>(())
            /// ```
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// The UUID itself.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
            #[doc = concat!("let id: ", stringify!($name), " = \"", $example, "\".parse()?;")]
            /// assert_eq!(id.as_uuid().get_version_num(), 7);
            /// # Ok::<(), agentcfg_core::model::InvalidId>(())
            /// ```
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

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

        serde_as_text!(read $name);
    )+};
}

uuid_ids! {
    /// The identifier of a workspace, a UUID.
    ///
    /// Only the hyphenated form is read, in any case; it is written in lower case.
    WorkspaceId "018f2d7c-0000-7000-8000-000000000001";
    /// The identifier of a webhook, a UUID. It is read and written as a [`WorkspaceId`] is.
    WebhookId "018f2d7c-0000-7000-8000-000000000002";
    /// The identifier of a model call, a UUID. It is read and written as a [`WorkspaceId`] is. Later calls have greater
    /// ones.
    CallId "018f2d7c-0000-7000-8000-000000000003";
}

from_text!(WorkspaceId);
