//! The JSON Schema of a type, for the OpenAPI document. The running server does not need it: only tests, which generate
//! the document, build with schemas.

use agentcfg_core::model::Limits;
use agentcfg_core::validate::Invalid;

use crate::http::request::MAX_BODY;

#[cfg(test)]
pub use self::with_schema::{Described, Example};
#[cfg(not(test))]
pub use self::without_schema::{Described, Example};

/// The schema of a type and the check of its examples. Empty unless the document is generated.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The schema or a reference to it.
    #[cfg(test)]
    pub(super) schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Reads an example as the type and, where the type can be serialised, serialises it again.
    #[cfg(test)]
    pub(super) read: fn(&str) -> Result<Option<serde_json::Value>, String>,
}

impl Schema {
    /// The schema of what an answer shows.
    pub const fn of_answer<T: Example>() -> Self {
        Self {
            #[cfg(test)]
            schema: schemars::SchemaGenerator::subschema_for::<T>,
            #[cfg(test)]
            read: |json| {
                let value: T = serde_json::from_str(json).map_err(|error| error.to_string())?;
                serde_json::to_value(&value)
                    .map(Some)
                    .map_err(|error| error.to_string())
            },
        }
    }

    /// The schema of a body.
    pub const fn of_body<T: ReadJson>() -> Self {
        Self {
            #[cfg(test)]
            schema: schemars::SchemaGenerator::subschema_for::<T::Described>,
            #[cfg(test)]
            read: |json| {
                T::read_json(json.as_bytes(), Limits::default())
                    .map(|_| None)
                    .map_err(|invalid| invalid.to_string())
            },
        }
    }
}

/// A body of JSON, which is read by a reader of its own that reports all faults together.
pub trait ReadJson: Sized + Send {
    /// The type that describes it.
    type Described: Described;

    /// The greatest length in bytes.
    const MAX_BYTES: usize = MAX_BODY;

    /// Reads the body, which is checked by the limits of the deployment.
    ///
    /// # Errors
    ///
    /// Every fault of the body.
    fn read_json(json: &[u8], limits: Limits) -> Result<Self, Invalid>;
}

#[cfg(test)]
mod with_schema {
    /// A type that has a JSON Schema.
    pub trait Described: schemars::JsonSchema {}

    impl<T: schemars::JsonSchema> Described for T {}

    /// A type that has a JSON Schema and that examples can be read as.
    pub trait Example: Described + serde::Serialize + serde::de::DeserializeOwned {}

    impl<T: Described + serde::Serialize + serde::de::DeserializeOwned> Example for T {}
}

#[cfg(not(test))]
mod without_schema {
    /// A type that has a JSON Schema when the document is generated.
    pub trait Described {}

    impl<T> Described for T {}

    /// A type that has a JSON Schema, and that examples can be read as, when the document is generated.
    pub trait Example {}

    impl<T> Example for T {}
}
