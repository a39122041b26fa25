//! The settings of model calls.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// The settings of a definition: members that the body of a model call gets where it lacks them, in their order.
///
/// ```
/// use agentcfg_core::model::ModelSettings;
/// let settings: ModelSettings = serde_json::from_str(r#"{"temperature":0.2,"stop":["END"]}"#)?;
/// assert_eq!(settings.members(), [(r#""temperature""#, "0.2"), (r#""stop""#, r#"["END"]"#)]);
/// assert!(ModelSettings::default().members().is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ModelSettings(Option<Arc<RawValue>>);

impl ModelSettings {
    /// The JSON text, an object.
    ///
    /// ```
    /// assert_eq!(agentcfg_core::model::ModelSettings::default().as_str(), "{}");
    /// ```
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("{}", |text| text.get())
    }

    /// The members in their order: name, with its quotes, and value, both as JSON text.
    ///
    /// ```
    /// use agentcfg_core::model::ModelSettings;
    /// let settings: ModelSettings = serde_json::from_str(r#"{"max_tokens": 200}"#)?;
    /// assert_eq!(settings.members(), [(r#""max_tokens""#, "200")]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn members(&self) -> Vec<(&str, &str)> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(&'de str, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((name.get(), value.get()));
                }
                Ok(members)
            }
        }

        let Some(text) = &self.0 else { return Vec::new() };
        // The text was read as an object.
        let mut reader = serde_json::Deserializer::from_str(text.get());
        reader.deserialize_map(Members).unwrap_or_default()
    }

    /// Whether there is a list of models, of which a gateway may choose.
    pub(crate) fn lists_models(&self) -> bool {
        #[derive(Deserialize)]
        struct Listed {
            models: Option<IgnoredAny>,
        }

        serde_json::from_str::<Listed>(self.as_str()).is_ok_and(|listed| listed.models.is_some())
    }
}

impl PartialEq for ModelSettings {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelSettings").field(&self.as_str()).finish()
    }
}

impl Serialize for ModelSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(text) => text.serialize(serializer),
            None => serializer.collect_map(std::iter::empty::<((), ())>()),
        }
    }
}

impl<'de> Deserialize<'de> for ModelSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match text.get().starts_with('{') {
            true => Ok(Self(Some(text.into()))),
            false => Err(D::Error::custom("the settings of model calls must be a JSON object")),
        }
    }
}
