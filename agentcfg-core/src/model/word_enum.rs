//! One macro for the sets of words that the API uses.

use crate::validate::Invalid;

/// Defines an enum whose values are words: `as_str`, `ALL`, `Display`, `FromStr`, serde.
///
/// `, non_exhaustive` behind it says that a later release may add words, which this one refuses.
///
/// With `or Unknown` behind it, a word that a later release adds can be read as that value, so that one of them does
/// not fail a whole answer. The value is not in `ALL`, `FromStr` gives it for no word, and writing it is an error.
macro_rules! word_enum {
    ($(#[doc = $doc:literal])* $name:ident $words:tt $(, $attribute:ident)?) => {
        $crate::model::word_enum::word_enum! { @enum [$($doc)*] [$($attribute)?] $name $words [] }
    };
    ($(#[doc = $doc:literal])* $name:ident $words:tt or $unknown:ident) => {
        $crate::model::word_enum::word_enum! { @enum [$($doc)*] [non_exhaustive] $name $words [$unknown] }
    };
    (
        @enum [$($doc:literal)*] [$($attribute:ident)?] $name:ident
        { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ } [$($unknown:ident)?]
    ) => {
        $(#[doc = $doc])*
        ///
        /// ```
        #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
        $(#[doc = concat!("assert_eq!(\"", $word, "\".parse(), Ok(", stringify!($name), "::", stringify!($variant), "));")])+
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $(#[$attribute])?
        pub enum $name {
            $(
                /// A word that this release does not know. It can be read, but not written. It is less than every other value.
                $unknown,
            )?
            $($(#[$vdoc])* $variant,)+
        }

        $(
            impl $crate::model::word_enum::OpenSet for $name {
                const KNOWN: &'static [&'static str] = Self::WORDS;

                fn is_known(self) -> bool {
                    self != Self::$unknown
                }
            }
        )?

        impl $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            /// Every value that has a word, in the order of the definition.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
            #[doc = concat!("for value in ", stringify!($name), "::ALL {")]
            ///     println!("{value}");
            /// }
            /// ```
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word that stands for this value in the API.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
            #[doc = concat!("let value = ", stringify!($name), "::ALL[0];")]
            /// assert_eq!(value.as_str().parse(), Ok(value));
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                    $(Self::$unknown => "unknown",)?
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|known| known.as_str() == word)
                    .ok_or($crate::model::UnknownWord { known: Self::WORDS })
            }
        }

        $crate::model::with_schema::with_schema! {
            impl schemars::JsonSchema for $name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    schemars::json_schema!({
                        "type": "string",
                        "description": concat!($($doc, "\n"),*),
                        "enum": [$($word),+],
                    })
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $(
                    if *self == Self::$unknown {
                        return Err(serde::ser::Error::custom("a value that this release does not know cannot be written"));
                    }
                )?
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                let known = word.parse::<Self>();
                $(let known = known.or(Ok::<_, $crate::model::UnknownWord>(Self::$unknown));)?
                known.map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use word_enum;

/// An enum of words that can be read although this release does not know them.
pub(crate) trait OpenSet: Copy + PartialEq + 'static {
    /// The words that this release knows.
    const KNOWN: &'static [&'static str];

    /// Whether this release knows the word.
    fn is_known(self) -> bool;

    /// Refuses a word that this release does not know, as the value of a field or a parameter.
    fn known(self, field: &str) -> Result<Self, Invalid> {
        if self.is_known() {
            return Ok(self);
        }
        Err(Invalid::new(field, UnknownWord { known: Self::KNOWN }))
    }
}

/// The error of a word that is not in a closed set.
///
/// ```
/// use agentcfg_core::model::Plan;
/// let unknown = "gold".parse::<Plan>().unwrap_err();
/// assert_eq!(unknown.to_string(), "must be one of free, pro, team, enterprise");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {}", known.join(", "))]
pub struct UnknownWord {
    /// The words that are known.
    pub known: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use crate::model::{
        Action, ActorType, LiveStatus, Permission, Plan, PlanLimits, Role, Scope, StatusReport, WorkspaceView,
    };

    #[test]
    fn a_word_of_a_later_release_can_be_read_and_not_written() {
        let later: Action = serde_json::from_str(r#""agent.released""#).unwrap();
        assert_eq!(later, Action::Unknown);
        assert_eq!(later.to_string(), "unknown");
        assert!(serde_json::to_string(&later).is_err());
        assert!(!Action::ALL.contains(&later));
        for word in ["unknown", "agent.released"] {
            assert!(word.parse::<Action>().is_err(), "{word}");
        }
        let known: ActorType = serde_json::from_str(r#""user""#).unwrap();
        assert_eq!(
            (known, serde_json::to_string(&known).unwrap()),
            (ActorType::User, r#""user""#.into())
        );
    }

    #[test]
    fn a_word_of_a_later_release_does_not_fail_a_whole_answer() {
        let rows = r#"[
            {"id": "5b1f6a52-3b1e-4d0c-9a75-6f1a2b3c4d5e", "name": "Studio", "plan": "galaxy", "role": "auditor",
             "created_at": "2026-11-20T09:30:00Z", "updated_at": "2026-11-20T09:30:00Z"},
            {"id": "6b1f6a52-3b1e-4d0c-9a75-6f1a2b3c4d5e", "name": "Lab", "plan": "team", "role": "owner",
             "created_at": "2026-11-20T09:30:00Z", "updated_at": "2026-11-20T09:30:00Z"}
        ]"#;
        let rows: Vec<WorkspaceView> = serde_json::from_str(rows).unwrap();
        assert_eq!(
            (rows[0].workspace.plan, rows[0].role),
            (Plan::Unknown, Some(Role::Unknown))
        );
        assert_eq!((rows[1].workspace.plan, rows[1].role), (Plan::Team, Some(Role::Owner)));
    }

    #[test]
    fn an_unknown_word_allows_nothing() {
        assert_eq!(PlanLimits::default().of(Plan::Unknown), Some(0));
        assert!(!Plan::Unknown.allows_provider_keys());
        for permission in Permission::ALL {
            assert!(!Role::Unknown.permissions().contains(*permission));
            assert!(!Scope::Unknown.permissions().contains(*permission));
        }
        assert!(Role::Unknown < Role::Viewer);
    }

    #[test]
    fn a_body_with_an_unknown_word_is_refused() {
        let report = StatusReport {
            status: LiveStatus::Unknown,
            ..StatusReport::idle()
        };
        let invalid = report.validate().unwrap_err();
        assert_eq!(invalid.to_string(), "status must be one of idle, working, offline");
        assert!(StatusReport::from_json(br#"{"status": "unknown"}"#).is_err());
    }

    #[test]
    fn a_word_of_a_closed_set_must_be_known() {
        assert!(serde_json::from_str::<Permission>(r#""unknown""#).is_err());
    }
}
