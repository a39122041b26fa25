//! The fields of bodies and records as JSON Schema, by their presence.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::Rule;

/// A UUID in its hyphenated form.
pub(crate) const UUID: &str = "^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$";

/// The first paragraph of a documentation, as one line.
pub(crate) fn summary(text: &str) -> String {
    let lines = text.trim().lines().map(str::trim);
    let first: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    first.join(" ")
}

/// The schema of an object that has no other properties than these.
pub(crate) fn object(
    description: &str,
    properties: impl IntoIterator<Item = (&'static str, Property)>,
    examples: Value,
) -> Schema {
    let mut all = Map::new();
    let mut required = Vec::new();
    for (name, Property { schema, is_required }) in properties {
        all.insert(name.to_owned(), schema.into());
        if is_required {
            required.push(name);
        }
    }
    let mut schema = json_schema!({
        "type": "object",
        "description": summary(description),
        "properties": all,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if examples.as_array().is_some_and(|examples| !examples.is_empty()) {
        schema.insert("examples".into(), examples);
    }
    schema
}

/// Adds keywords to a schema.
pub(crate) fn extend(mut schema: Schema, keywords: Value) -> Schema {
    if let Value::Object(keywords) = keywords {
        schema.ensure_object().extend(keywords);
    }
    schema
}

/// The schema of a type that shows another one and one field more. Each example changes the first one of that type.
pub(crate) fn extended<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    description: &str,
    (name, Property { schema, is_required }): (&str, Property),
    examples: &[Value],
) -> Schema {
    let mut all = T::json_schema(generator);
    all.insert("description".into(), description.into());
    let object = all.ensure_object();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.insert(name.into(), schema.into());
    }
    if let (true, Some(Value::Array(required))) = (is_required, object.get_mut("required")) {
        required.push(name.into());
    }
    let first = all.pointer("/examples/0").cloned().unwrap_or_default();
    let changed = |more: &Value| {
        let mut example = first.clone();
        if let (Value::Object(example), Value::Object(more)) = (&mut example, more) {
            example.extend(more.clone());
        }
        example
    };
    all.insert("examples".into(), examples.iter().map(changed).collect());
    all
}

/// A property of an object: its schema, and whether it is required.
pub(crate) struct Property {
    schema: Schema,
    is_required: bool,
}

impl Property {
    /// A property with its description.
    pub(crate) fn new(mut schema: Schema, description: &str, is_required: bool) -> Self {
        schema.insert("description".into(), description.into());
        Self { schema, is_required }
    }
}

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

/// Schemas of the fields of a body that creates a resource.
pub(crate) mod create {
    use super::*;

    pub(crate) fn required<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(generator.subschema_for::<R>(), &summary(documentation), true)
    }

    /// The default stands in the description. As the keyword `default` it would let generators of clients demand the
    /// field.
    pub(crate) fn defaulted<R>(generator: &mut SchemaGenerator, documentation: &str) -> Property
    where
        R: Rule<Value: Default + serde::Serialize> + JsonSchema,
    {
        let default = match serde_json::to_value(R::Value::default()) {
            Ok(Value::String(word)) => word,
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
    pub(crate) use nullable as sparse;
}

/// Schemas of the fields of a body that changes a resource.
pub(crate) mod change {
    pub(crate) use super::create::{nullable, optional as defaulted, optional as required, sparse};
}

/// Schemas of the fields of a record, which is shown with all of them.
pub(crate) mod record {
    use super::*;

    pub(crate) use super::create::{nullable as chosen, optional as sparse, required};
    pub(crate) use required as defaulted;

    pub(crate) fn nullable<R: JsonSchema>(generator: &mut SchemaGenerator, documentation: &str) -> Property {
        Property::new(or_null::<R>(generator), &summary(documentation), true)
    }
}

/// Schemas that are written inline, or as components with the names of their types.
macro_rules! schemas {
    ($($rule:ident $(<$($parameter:ident: $kind:ty),+>)?, inline $inline:literal => $schema:tt;)+) => {$(
        impl $(<$(const $parameter: $kind),+>)? schemars::JsonSchema for $rule $(<$($parameter),+>)? {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($rule).into()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                std::any::type_name::<Self>().into()
            }

            fn inline_schema() -> bool {
                $inline
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    )+};
}

pub(crate) use schemas;
