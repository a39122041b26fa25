//! The schemas of the types of bodies and answers.

use agentcfg_core::model::{ErrorBody, schema};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::ordered_json::OrderedJson;
use crate::api::answer::AnswerBody;
use crate::api::call::Shape;
use crate::api::endpoints;
use crate::api::schema::Schema;

/// The schemas of the document, and references to them.
pub(super) struct Schemas {
    generator: SchemaGenerator,
    definitions: Map<String, Value>,
    /// Schemas that a definition contains as JSON.
    fixed: Vec<(&'static str, OrderedJson)>,
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
                AnswerBody::Fixed(Some(name), json) => fixed.push((name, OrderedJson::parse(json))),
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
    pub(super) fn reference(&mut self, schema: Schema) -> OrderedJson {
        OrderedJson::schema(&(schema.schema)(&mut self.generator).to_value())
    }

    /// An example, completed with the members that its schema requires: those of the schema's own example.
    pub(super) fn completed(&self, schema: Schema, example: OrderedJson) -> OrderedJson {
        let reference = OrderedJson::schema(&(schema.schema)(&mut self.generator.clone()).to_value());
        let own = self.definition(&reference).and_then(|definition| {
            let examples = definition.get("examples")?;
            Some(self.ordered(examples.items().first()?.clone(), &definition))
        });
        let Some(own) = own else { return example };
        let required = own
            .members()
            .map(|(name, value)| (name, example.get(name).unwrap_or(value)));
        let more = example.members().filter(|(name, _)| own.get(name).is_none());
        required.chain(more).fold(OrderedJson::object(), |node, (name, value)| {
            node.with(name, value.clone())
        })
    }

    /// An object with the members that its schema requires, in the order of the schema.
    fn ordered(&self, object: OrderedJson, definition: &OrderedJson) -> OrderedJson {
        let Some(required) = definition.get("required") else {
            return object;
        };
        required
            .items()
            .iter()
            .filter_map(OrderedJson::as_str)
            .fold(OrderedJson::object(), |node, name| {
                let value = object.get(name).cloned().map(|value| {
                    let property = definition.get("properties").and_then(|all| all.get(name));
                    match property.and_then(|property| self.definition(property)) {
                        Some(definition) => self.ordered(value, &definition),
                        None => value,
                    }
                });
                node.with_some(name, value)
            })
    }

    /// The component of a reference.
    fn definition(&self, schema: &OrderedJson) -> Option<OrderedJson> {
        let name = schema.text("$ref").strip_prefix("#/components/schemas/")?;
        self.definitions.get(name).map(OrderedJson::schema)
    }

    /// The schema of a parameter.
    pub(super) fn shape(&self, shape: Shape) -> OrderedJson {
        match shape {
            Shape::Word { words, default } => OrderedJson::object()
                .with("type", "string")
                .with("enum", words.to_vec())
                .with("default", default),
            Shape::Text => OrderedJson::object().with("type", "string"),
            Shape::Field(name, field) => {
                let field = self.definitions[name]["properties"].get(field);
                let field = field.unwrap_or_else(|| panic!("a parameter refers to a field that {name} lacks"));
                // A parameter that is left out is absent, and its text is never null.
                OrderedJson::schema(field).without("description").not_null()
            }
            Shape::Number {
                minimum,
                maximum,
                default,
            } => OrderedJson::object()
                .with("type", "integer")
                .with_some("format", maximum.is_none().then_some("uint64"))
                .with("minimum", minimum)
                .with("maximum", maximum.unwrap_or(u64::MAX))
                .with_some("default", default),
            Shape::Pattern { length, pattern } => OrderedJson::object()
                .with("type", "string")
                .with_some("minLength", length.map(|(least, _)| least))
                .with_some("maxLength", length.map(|(_, most)| most))
                .with("pattern", pattern),
        }
    }

    /// All schemas as components.
    pub(super) fn components(&self) -> OrderedJson {
        let mut all: Vec<_> = self
            .definitions
            .iter()
            .map(|(name, schema)| (name.clone(), OrderedJson::schema(schema)))
            .collect();
        all.extend(
            self.fixed
                .iter()
                .map(|(name, schema)| ((*name).to_owned(), schema.clone())),
        );
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        OrderedJson::Object(all)
    }
}

/// The order in which the members of a schema are written.
const ORDER: [&str; 19] = [
    "$ref",
    "type",
    "format",
    "description",
    "const",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "maxItems",
    "maxProperties",
    "pattern",
    "default",
    "properties",
    "items",
    "required",
    "additionalProperties",
    "examples",
];

impl OrderedJson {
    /// A schema with its members in order, and its properties in the order of `required`.
    fn schema(schema: &Value) -> Self {
        let Value::Object(members) = schema else {
            return Self::Leaf(schema.clone());
        };
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        let member = |(name, value): (&String, &Value)| {
            let value = match (name.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let mut properties: Vec<_> = properties.iter().collect();
                    let place = |name: &str| required.iter().position(|known| *known == name).unwrap_or(usize::MAX);
                    properties.sort_by_key(|(name, _)| place(name));
                    let schemas = properties
                        .into_iter()
                        .map(|(name, schema)| (name.clone(), Self::schema(schema)));
                    Self::Object(schemas.collect())
                }
                ("items" | "additionalProperties" | "propertyNames" | "if" | "then" | "else", value) => {
                    Self::schema(value)
                }
                (_, value) => Self::plain(value, &required),
            };
            (name.clone(), value)
        };
        Self::Object(members.into_iter().map(member).collect())
    }

    /// The schema of a field without null.
    fn not_null(self) -> Self {
        if let Some([referred, _]) = self.get("anyOf").map(Self::items) {
            return referred.clone();
        }
        let Some([kind, null]) = self.get("type").map(Self::items) else {
            return self;
        };
        let (kind, is_nullable) = (kind.clone(), null.as_str() == Some("null"));
        let Self::Object(mut members) = self else {
            return self;
        };
        for (_, value) in members.iter_mut().filter(|(name, _)| is_nullable && name == "type") {
            *value = kind.clone();
        }
        Self::Object(members)
    }

    /// A value whose objects have these members first, in this order.
    fn plain(value: &Value, order: &[&Value]) -> Self {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| {
                    order
                        .iter()
                        .position(|known| *known == name.as_str())
                        .unwrap_or(usize::MAX)
                });
                let members = members
                    .into_iter()
                    .map(|(name, value)| (name.clone(), Self::plain(value, &[])));
                Self::Object(members.collect())
            }
            Value::Array(items) => Self::Array(items.iter().map(|item| Self::plain(item, order)).collect()),
            leaf => Self::Leaf(leaf.clone()),
        }
    }
}
