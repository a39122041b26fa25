//! The fields of bodies and records as JSON Schema, by their presence.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::model::schema::{Property, summary};
use crate::rules::Rule;

/// The schema of a type that may be null: a type with a name is referred to, of another one the keywords are extended.
fn or_null<R: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    if !R::inline_schema() {
        return json_schema!({ "anyOf": [generator.subschema_for::<R>(), { "type": "null" }] });
    }
    let mut schema = R::json_schema(generator);
    schema.remove("examples");
    if let Some(one) = schema.remove("type") {
        schema.insert("type".into(), [one, "null".into()].into_iter().collect());
    }
    schema
}

/// In a body that creates something.
pub(crate) mod create {
    use super::*;

    pub(crate) fn required<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(generator.subschema_for::<R>(), &summary(documentation), true)
    }

    /// The default stands in the description. As the keyword `default` it would let generators of clients demand the field.
    pub(crate) fn defaulted<R>(generator: &mut SchemaGenerator, documentation: &str) -> Property
    where
        R: Rule<Value: Default + serde::Serialize> + JsonSchema,
    {
        let default = match serde_json::to_value(R::Value::default()) {
            Ok(serde_json::Value::String(word)) => word,
            Ok(value) => value.to_string(),
            Err(_) => String::new(),
        };
        let description = format!("{} Left out: `{default}`.", summary(documentation));
        Property::new(generator.subschema_for::<R>(), &description, false)
    }

    pub(crate) fn optional<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(generator.subschema_for::<R>(), &summary(documentation), false)
    }

    pub(crate) fn nullable<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(or_null::<R>(generator), &summary(documentation), false)
    }

    pub(crate) use nullable as tristate;
}

/// In a body that changes something.
pub(crate) mod change {
    pub(crate) use super::create::{nullable, optional as required, optional as defaulted};
}

/// In a record that is shown, where every field is there.
pub(crate) mod record {
    use super::*;

    pub(crate) use super::create::required;
    pub(crate) use required as defaulted;

    pub(crate) fn nullable<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(or_null::<R>(generator), &summary(documentation), true)
    }
}
