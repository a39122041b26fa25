//! The schemas of the types of bodies and answers.

use agentcfg_core::model::{ErrorBody, schema};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::json_tree::{JsonTree, object, parse};
use crate::api::answer::AnswerBody;
use crate::api::call::Shape;
use crate::api::endpoints;
use crate::api::schema::Schema;

/// The schemas of the document, and references to them.
pub(super) struct Schemas {
    generator: SchemaGenerator,
    definitions: Map<String, Value>,
    /// Schemas that a definition contains as JSON.
    fixed: Vec<(&'static str, Value)>,
}

impl Schemas {
    /// The schemas of all types that endpoints name.
    pub(super) fn new() -> Self {
        let mut generator = schema::generator();
        let mut fixed = Vec::new();
        generator.subschema_for::<ErrorBody>();
        for endpoint in endpoints::all() {
            if let Some(body) = endpoint.content.schema() {
                (body.schema)(&mut generator);
            }
            match endpoint.answer.shown {
                AnswerBody::Value(shown)
                | AnswerBody::List(shown)
                | AnswerBody::Lines(shown)
                | AnswerBody::Events(shown) => {
                    (shown.schema)(&mut generator);
                }
                AnswerBody::Fixed(Some(name), json) => fixed.push((name, parse(json))),
                AnswerBody::Fixed(None, _) | AnswerBody::Relayed | AnswerBody::Nothing => {}
            }
        }
        let definitions = generator.clone().take_definitions(true);
        Self {
            generator,
            definitions,
            fixed,
        }
    }

    /// A reference to the schema of a type.
    pub(super) fn reference(&mut self, schema: Schema) -> Value {
        (schema.schema)(&mut self.generator).to_value()
    }

    /// An example, completed with the members that its schema requires: those of the schema's own example.
    pub(super) fn completed(&self, schema: Schema, example: Value) -> Value {
        let reference = (schema.schema)(&mut self.generator.clone()).to_value();
        let own = self.definition(&reference).and_then(|definition| {
            let example = definition.get("examples")?.items().first()?;
            Some(self.required(example, definition))
        });
        let Some(own) = own else { return example };
        let required = own
            .members()
            .map(|(name, value)| (name, example.get(name).unwrap_or(value)));
        let more = example.members().filter(|(name, _)| own.get(name).is_none());
        required
            .chain(more)
            .fold(object(), |node, (name, value)| node.with(name, value.clone()))
    }

    /// The members of an object that its schema requires, those of its objects too.
    fn required(&self, members: &Value, definition: &Value) -> Value {
        let Some(names) = definition.get("required") else {
            return members.clone();
        };
        let names = names.items().iter().filter_map(Value::as_str);
        names.fold(object(), |node, name| {
            let property = definition.get("properties").and_then(|all| all.get(name));
            let value = members.get(name).map(|value| {
                let of_property = property.and_then(|property| self.definition(property));
                of_property.map_or_else(|| value.clone(), |definition| self.required(value, definition))
            });
            node.with_some(name, value)
        })
    }

    /// The component of a reference.
    fn definition(&self, schema: &Value) -> Option<&Value> {
        let name = schema.text("$ref").strip_prefix("#/components/schemas/")?;
        self.definitions.get(name)
    }

    /// The schema of a parameter.
    pub(super) fn shape(&self, shape: Shape) -> Value {
        match shape {
            Shape::Word { words, default } => object()
                .with("type", "string")
                .with("enum", words.to_vec())
                .with("default", default),
            Shape::Text => object().with("type", "string"),
            Shape::Field(name, field) => {
                let field = self.definitions[name]["properties"].get(field);
                let field = field.unwrap_or_else(|| panic!("a parameter refers to a field that {name} lacks"));
                // A parameter that is left out is absent, and its text is never null.
                let mut field = not_null(field.clone());
                if let Some(members) = field.as_object_mut() {
                    members.shift_remove("description");
                }
                field
            }
            Shape::Number {
                minimum,
                maximum,
                default,
            } => object()
                .with("type", "integer")
                .with_some("format", maximum.is_none().then_some("uint64"))
                .with("minimum", minimum)
                .with("maximum", maximum.unwrap_or(u64::MAX))
                .with_some("default", default),
            Shape::Pattern { length, pattern } => object()
                .with("type", "string")
                .with_some("minLength", length.map(|(least, _)| least))
                .with_some("maxLength", length.map(|(_, most)| most))
                .with("pattern", pattern),
        }
    }

    /// All schemas as components, by name.
    pub(super) fn components(&self) -> Value {
        let mut all = self.definitions.clone();
        all.extend(
            self.fixed
                .iter()
                .map(|(name, schema)| ((*name).to_owned(), schema.clone())),
        );
        all.sort_keys();
        Value::Object(all)
    }
}

/// The schema of a field without null.
fn not_null(mut schema: Value) -> Value {
    if let Some([referred, _]) = schema.get("anyOf").map(Value::items) {
        return referred.clone();
    }
    if let Some([kind, Value::String(null)]) = schema.get("type").map(Value::items)
        && null == "null"
    {
        schema["type"] = kind.clone();
    }
    schema
}
