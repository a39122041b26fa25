//! The definition of an agent: what is no field of its own.

mod members;
mod read;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::settings::ModelSettings;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::body::FromJson;
use crate::json::{self, Json};
use crate::validate::{Faults, Invalid};

/// The definition of an agent: a JSON object with its tools, MCP servers, settings of the model and whatever else belongs to it.
///
/// The order of the keys is kept. Two definitions are equal where they have the same content: the order of keys and white space
/// make no difference, and numbers are compared by their value. A clone shares the text.
///
/// ```
/// use agentcfg_core::model::Definition;
/// let definition = Definition::from_json(br#"{"tools": ["search"], "metadata": {"team": "docs"}}"#)?;
/// assert_eq!(definition.as_str(), r#"{"tools":["search"],"metadata":{"team":"docs"}}"#);
/// assert_eq!(definition, Definition::from_json(br#"{"metadata": {"team": "docs"}, "tools": ["search"]}"#)?);
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Definition(Arc<RawValue>);

impl Definition {
    /// The greatest length in bytes, as compact JSON.
    ///
    /// ```
    /// assert_eq!(agentcfg_core::model::Definition::MAX_BYTES, 65_536);
    /// ```
    pub const MAX_BYTES: usize = read::MAX_BYTES;

    /// The greatest depth: the definition itself is level 1, and each array or object in it adds one.
    ///
    /// ```
    /// assert_eq!(agentcfg_core::model::Definition::MAX_LEVELS, 32);
    /// ```
    pub const MAX_LEVELS: usize = read::MAX_LEVELS;

    /// Reads a JSON text, and checks it as the body of a request is checked.
    ///
    /// # Errors
    ///
    /// Every fault, each with its place, such as `definition.mcp_servers[3].name`.
    ///
    /// ```
    /// use agentcfg_core::model::Definition;
    /// let invalid = Definition::from_json(br#"{"tools": 1}"#).unwrap_err();
    /// assert_eq!(invalid.to_string(), "definition.tools must be an array, got a number");
    /// ```
    pub fn from_json(text: &[u8]) -> Result<Self, Invalid> {
        const FIELD: &str = "definition";
        let mut faults = Faults::default();
        let read = <Self as FromJson>::from_json(json::parse(text)?, &FIELD, &mut faults);
        if let Some(definition) = &read {
            definition.check(FIELD, &mut faults);
        }
        faults.into_result()?;
        read.ok_or_else(|| Invalid::new(FIELD, "is incomplete"))
    }

    /// Reports each fault of the members that have rules.
    pub(crate) fn check(&self, field: &str, faults: &mut Faults) {
        if self.as_str().len() > Self::MAX_BYTES {
            faults.push(field, read::too_long(self.as_str().len()));
            return;
        }
        match json::parse(self.as_str().as_bytes()) {
            Ok(Json::Object(members)) => members::check(&members, field, faults),
            Ok(other) => faults.push(field, format_args!("must be an object, got {}", other.kind())),
            Err(invalid) => faults.add(invalid),
        }
    }

    /// A definition of a text that was read, written as compact JSON.
    fn of_compact(text: String) -> serde_json::Result<Self> {
        Ok(Self(RawValue::from_string(text)?.into()))
    }

    /// The JSON text.
    ///
    /// ```
    /// use agentcfg_core::model::Definition;
    /// assert_eq!(Definition::from_json(b"{ }")?.as_str(), "{}");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The settings of model calls.
    ///
    /// ```
    /// use agentcfg_core::model::Definition;
    /// let definition = Definition::from_json(br#"{"model_settings": {"temperature": 0.2}}"#)?;
    /// assert_eq!(definition.model_settings().as_str(), r#"{"temperature":0.2}"#);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn model_settings(&self) -> ModelSettings {
        #[derive(Deserialize)]
        struct Settings {
            #[serde(default)]
            model_settings: ModelSettings,
        }

        // The text is that of an object, whose settings were checked.
        serde_json::from_str(self.as_str())
            .map_or_else(|_| ModelSettings::default(), |read: Settings| read.model_settings)
    }

    /// The models that stand in for the agent's when it fails, in order.
    ///
    /// ```
    /// use agentcfg_core::model::Definition;
    /// let definition = Definition::from_json(br#"{"fallback_models": ["gpt-5.4-mini"]}"#)?;
    /// assert_eq!(definition.fallback_models(), ["gpt-5.4-mini"]);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn fallback_models(&self) -> Vec<String> {
        #[derive(Default, Deserialize)]
        struct Fallbacks {
            #[serde(default)]
            fallback_models: Vec<String>,
        }

        // Most definitions have none, which is found out without reading them.
        if !self.as_str().contains(r#""fallback_models""#) {
            return Vec::new();
        }
        let read: Fallbacks = serde_json::from_str(self.as_str()).unwrap_or_default();
        read.fallback_models
    }

    /// The members by name, each as JSON text.
    ///
    /// ```
    /// use agentcfg_core::model::Definition;
    /// let definition = Definition::from_json(br#"{"model_settings": {"temperature": 0.2}}"#)?;
    /// assert_eq!(definition.members()["model_settings"].get(), r#"{"temperature":0.2}"#);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn members(&self) -> BTreeMap<String, &RawValue> {
        // The text is that of an object.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl FromJson for Definition {
    fn from_json(json: Json<'_>, field: &dyn fmt::Display, faults: &mut Faults) -> Option<Self> {
        let text = read::compact(&json, field, faults)?;
        let definition = Self::of_compact(text);
        definition.map_err(|error| faults.push(field, error)).ok()
    }
}

/// Whether two definitions have the same content.
impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        if self.as_str() == other.as_str() {
            return true;
        }
        let value = |definition: &Self| serde_json::from_str::<Value>(definition.as_str());
        match (value(self), value(other)) {
            (Ok(one), Ok(other)) => is_same(&one, &other),
            _ => false,
        }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_same =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(has_same)
        }
        _ => one == other,
    }
}

/// Whether two numbers are equal. An integer of 64 bits is compared with a double exactly: several of them round to one double.
fn is_same_number(one: &Number, other: &Number) -> bool {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        (Some(whole), None) => is_whole(other, whole),
        (None, Some(whole)) => is_whole(one, whole),
    }
}

/// Whether a double is this integer. Each integral double of up to 2⁶⁴ is an integer of 128 bits, and a larger one saturates.
fn is_whole(double: &Number, whole: i128) -> bool {
    let double = double.as_f64().filter(|double| double.fract() == 0.0);
    double.is_some_and(|double| double as i128 == whole)
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Definition").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match text.get().starts_with('{') {
            true => Ok(Self(text.into())),
            false => Err(serde::de::Error::custom("a definition must be a JSON object")),
        }
    }
}

impl TryFrom<Value> for Definition {
    type Error = Invalid;

    /// Checks the value as the body of a request is checked.
    fn try_from(value: Value) -> Result<Self, Invalid> {
        Self::from_json(value.to_string().as_bytes())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Definition {
        Definition::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_order_of_keys_is_kept_and_makes_no_difference() {
        let one = read(r#" { "b" : 1, "a" : [ {"d": 1.50, "c": "\u0041\/"} ] } "#);
        assert_eq!(one.as_str(), r#"{"b":1,"a":[{"d":1.5,"c":"A/"}]}"#);
        assert_eq!(one, read(r#"{"a":[{"c":"A/","d":1.5}],"b":1.0}"#));
        assert_eq!(serde_json::to_string(&one).unwrap(), one.as_str());
        assert_eq!(
            serde_json::from_str::<Definition>(one.as_str()).unwrap().as_str(),
            one.as_str()
        );
        assert_eq!(serde_json::from_value::<Definition>(json!(one)).unwrap(), one);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let number = |text: &str| read(&format!("{{\"n\":{text}}}"));
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("9007199254740992", "9007199254740992.0"),
            ("0", "-0.0"),
            ("0.1", "1e-1"),
        ] {
            assert_eq!(number(one), number(other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "2"),
            ("1", "\"1\""),
            ("9007199254740993", "9007199254740992"),
            ("9007199254740993", "9007199254740992.0"),
            ("18446744073709551615", "18446744073709551616"),
            ("-9223372036854775807", "-9223372036854775808.0"),
            ("1", "1.5"),
            ("1", "true"),
        ] {
            assert_ne!(number(one), number(other), "{one} {other}");
        }
    }

    #[test]
    fn arrays_have_an_order_and_objects_a_size() {
        for (one, other) in [
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,1]"),
            ("{}", "{\"a\":null}"),
            ("{\"a\":1}", "{\"b\":1}"),
        ] {
            assert_ne!(read(&format!("{{\"x\":{one}}}")), read(&format!("{{\"x\":{other}}}")));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e300..1e300).prop_map(Value::from),
            "[^\0]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("x[^\0]{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_object_is_kept(value in any_json()) {
            let value = json!({"x": value});
            let definition = Definition::try_from(value.clone()).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(definition.as_str()).unwrap(), value.clone());
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(read(&pretty), definition);
        }
    }
}
