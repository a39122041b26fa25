//! Texts with rules: the identifiers of agents, of users and of API keys, labels and messages.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::body::{FromJson, list_from_json};
use crate::json::Json;
use crate::validate::{self, Faults, Invalid};

/// An identifier that is a text with rules.
pub(crate) trait TextId: Sized {
    /// The name of the field that holds one, for the faults of a value that is not in a body.
    const FIELD: &'static str;

    /// Notes each rule that a text breaks.
    fn check(text: &str, field: &dyn fmt::Display, faults: &mut Faults);

    /// Wraps a text that keeps the rules.
    fn wrap(text: Arc<str>) -> Self;
}

/// Wraps a text if it keeps the rules.
fn parse<T: TextId>(text: Cow<'_, str>) -> Result<T, Invalid> {
    let mut faults = Faults::default();
    T::check(&text, &T::FIELD, &mut faults);
    faults.into_result()?;
    Ok(T::wrap(text.into()))
}

macro_rules! text_ids {
    ($($(#[doc = $doc:literal])+ $name:ident, $field:literal, $check:path;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl TextId for $name {
            const FIELD: &'static str = $field;

            fn check(text: &str, field: &dyn fmt::Display, faults: &mut Faults) {
                $check(text, field, faults);
            }

            fn wrap(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                parse(text.into())
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Invalid;

            fn try_from(text: &str) -> Result<Self, Invalid> {
                parse(text.into())
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(text: String) -> Result<Self, Invalid> {
                parse(text.into())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                *self.0 == *text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                *self.0 == **text
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, text: &String) -> bool {
                *self.0 == **text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str>>::deserialize(deserializer)?;
                parse(text).map_err(serde::de::Error::custom)
            }
        }

        impl FromJson for $name {
            fn from_json(json: Json<'_>, field: &dyn fmt::Display, faults: &mut Faults) -> Option<Self> {
                let text = String::from_json(json, field, faults)?;
                let mut broken = Faults::default();
                Self::check(&text, field, &mut broken);
                match broken.into_result() {
                    Ok(()) => Some(Self::wrap(text.into())),
                    Err(invalid) => {
                        faults.add(invalid);
                        None
                    }
                }
            }
        }
    )+};
}

text_ids! {
    /// The identifier of an agent within its workspace: 1–50 of `a-z`, `0-9`, `-` and `_`.
    ///
    /// It is fixed at creation, and stays taken when the agent is deleted. A clone costs no allocation.
    ///
    /// ```
    /// use agentcfg_core::model::AgentId;
    /// let id: AgentId = "release-writer".parse()?;
    /// assert_eq!(id, "release-writer");
    /// let refused = "Release writer".parse::<AgentId>().unwrap_err();
    /// assert_eq!(refused.to_string(), "agent_id must be 1 to 50 of a-z, 0-9, - and _");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    AgentId, "agent_id", validate::agent_id;

    /// The identifier of a user: 1–200 characters without control characters, the `sub` of the user's session tokens.
    ///
    /// ```
    /// use agentcfg_core::model::UserId;
    /// let id: UserId = "auth0|5f7c".parse()?;
    /// assert_eq!(id.as_str(), "auth0|5f7c");
    /// assert!("".parse::<UserId>().is_err());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    UserId, "user_id", validate::user_id;

    /// The identifier of an API key: 20 of `0-9`, `A-Z` and `a-z`, which the service draws at random.
    ///
    /// It is part of the key's plaintext, right behind the prefix, and no secret.
    ///
    /// ```
    /// use agentcfg_core::model::ApiKeyId;
    /// let id: ApiKeyId = "4fQ8mZr2LkV7xN0bTy6W".parse()?;
    /// assert_eq!(id.len(), 20);
    /// assert!("4fQ8".parse::<ApiKeyId>().is_err());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    ApiKeyId, "key_id", validate::api_key_id;

    /// A name that points at a version of an agent, such as `production`: 1–36 of `a-z`, `0-9`, `.`, `_` and `-`, the first a
    /// letter or a digit, and not digits alone.
    ///
    /// `latest` is reserved: it is the current version of each agent, and cannot be moved.
    ///
    /// ```
    /// use agentcfg_core::model::Label;
    /// let production: Label = "production".parse()?;
    /// assert!(!production.is_latest());
    /// assert!("7".parse::<Label>().is_err(), "that is the number of a version");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    Label, "label", validate::label;

    /// Why a change was made, for people: at most 500 characters. It is kept with the version and with the audit entry.
    ///
    /// ```
    /// use agentcfg_core::model::Message;
    /// let message: Message = "Shorter notes, see the retrospective".parse()?;
    /// assert_eq!(message.as_str().len(), 36);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    Message, "message", validate::message;

    /// The name of a set of agents: 1–50 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit.
    ///
    /// ```
    /// use agentcfg_core::model::SetName;
    /// let name: SetName = "docs.team-1".parse()?;
    /// assert_eq!(name, "docs.team-1");
    /// assert!("-docs".parse::<SetName>().is_err());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    SetName, "set", validate::set_name;
}

list_from_json!(AgentId);

impl Label {
    /// The reserved label of the current version.
    pub const LATEST: &'static str = "latest";

    /// Whether this is the reserved label of the current version.
    pub fn is_latest(&self) -> bool {
        self.as_str() == Self::LATEST
    }
}

/// An identifier as the argument of a method that finds a record by it: a typed identifier, or a text of a request.
///
/// A text that no record could have for an identifier is an answer of its own, "not found", and that answer comes after
/// the checks of the caller's rights: otherwise it would reveal something about the request that only members
/// may learn. So these methods take the text as it came and check its form in their own order. An identifier of
/// another kind does not compile:
///
/// ```compile_fail
/// # use agentcfg_core::model::{AgentId, IdRef, UserId};
/// let user: UserId = "ada".parse().unwrap();
/// let agent: IdRef<'_, AgentId> = (&user).into();
/// ```
///
/// ```
/// use agentcfg_core::model::{AgentId, IdRef};
/// let id: AgentId = "writer".parse()?;
/// let (typed, text) = (IdRef::<AgentId>::from(&id), IdRef::<AgentId>::from("writer"));
/// assert_eq!(typed.as_str(), text.as_str());
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
pub struct IdRef<'a, Id> {
    text: &'a str,
    kind: PhantomData<fn() -> Id>,
}

impl<'a, Id> IdRef<'a, Id> {
    /// The text, which may break the rules of an identifier.
    pub const fn as_str(self) -> &'a str {
        self.text
    }
}

#[allow(private_bounds, reason = "it only says which types are identifiers")]
impl<Id: TextId> IdRef<'_, Id> {
    /// Whether a record could have this text for its identifier.
    pub fn is_possible(self) -> bool {
        let mut faults = Faults::default();
        Id::check(self.text, &Id::FIELD, &mut faults);
        faults.into_result().is_ok()
    }
}

impl<'a, Id> From<&'a str> for IdRef<'a, Id> {
    fn from(text: &'a str) -> Self {
        Self {
            text,
            kind: PhantomData,
        }
    }
}

impl<'a, Id> From<&'a String> for IdRef<'a, Id> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

#[allow(private_bounds, reason = "as above")]
impl<'a, Id: TextId + AsRef<str>> From<&'a Id> for IdRef<'a, Id> {
    fn from(id: &'a Id) -> Self {
        id.as_ref().into()
    }
}

impl<Id> Clone for IdRef<'_, Id> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Id> Copy for IdRef<'_, Id> {}

impl<Id> fmt::Debug for IdRef<'_, Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: FromStr<Err = Invalid> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().unwrap_err().to_string()
    }

    #[test]
    fn an_agent_id_keeps_its_rules() {
        for good in ["a", "writer-2", "_", &"z".repeat(50)] {
            assert_eq!(good.parse::<AgentId>().unwrap(), good);
        }
        let rule = "agent_id must be 1 to 50 of a-z, 0-9, - and _";
        for bad in ["", "A", "ä", "a b", "a\0"] {
            assert_eq!(refusal::<AgentId>(bad), rule, "{bad:?}");
        }
        assert_eq!(
            refusal::<AgentId>(&"A".repeat(51)),
            format!("agent_id must be at most 50 characters, got 51; {rule}")
        );
    }

    #[test]
    fn an_api_key_id_keeps_its_rules() {
        assert_eq!(
            "4fQ8mZr2LkV7xN0bTy6W".parse::<ApiKeyId>().unwrap().to_string(),
            "4fQ8mZr2LkV7xN0bTy6W"
        );
        for bad in [
            "",
            "4fQ8mZr2LkV7xN0bTy6",
            "4fQ8mZr2LkV7xN0bTy6WW",
            "4fQ8mZr2LkV7xN0bTy6-",
        ] {
            assert_eq!(refusal::<ApiKeyId>(bad), "key_id must be 20 of 0-9, A-Z and a-z");
        }
    }

    #[test]
    fn an_identifier_is_its_text_in_json_and_is_checked_when_it_is_read() {
        let id: UserId = serde_json::from_str(r#""auth0|\u00e4""#).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""auth0|ä""#);
        assert_eq!(format!("{id} {id:?}"), r#"auth0|ä "auth0|ä""#);
        assert!(serde_json::from_str::<UserId>(r#""a\n""#).is_err());
        assert!(serde_json::from_str::<AgentId>(r#""A""#).is_err());
    }
}
