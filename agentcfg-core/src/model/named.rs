//! One macro for the closed sets of words that the API uses.

/// Defines an enum whose values are words: `as_str`, `ALL`, `Display`, `FromStr`, serde.
macro_rules! named {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])*
        ///
        /// ```
        #[doc = concat!("use agentcfg_core::model::", stringify!($name), ";")]
        $(#[doc = concat!("assert_eq!(\"", $word, "\".parse(), Ok(", stringify!($name), "::", stringify!($variant), "));")])+
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the definition.
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
                    .ok_or($crate::model::UnknownWord { known: &[$($word,)+] })
            }
        }

        #[cfg(feature = "schema")]
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

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use named;

/// Why a word is none of a closed set.
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
