//! What a parameter is: its place in the request, its description, and its reader.

use agentcfg_core::validate::Faults;

use super::Received;
use crate::http::errors::Failure;

/// A parameter of a request, declared once: the reader of requests and the OpenAPI document follow from it.
pub trait Parameter {
    /// What the reader gives.
    type Value<'a>: Send;

    /// The description.
    const DOC: ParameterDoc;

    /// Reads the parameter. Faults that can be reported together with others go into `faults`.
    ///
    /// # Errors
    ///
    /// 400 where the parameter is missing or breaks its rule.
    fn read<'a>(request: &'a Received<'_>, faults: &mut Faults) -> Result<Self::Value<'a>, Failure>;
}

/// All parameters of an endpoint: a tuple of [`Parameter`]s, read in order.
pub trait Input {
    /// A tuple of the values.
    type Values<'a>: Send;

    /// The descriptions.
    const DOCS: &'static [ParameterDoc];

    /// Reads all parameters.
    ///
    /// # Errors
    ///
    /// 400 where one is missing or breaks its rule.
    fn read<'a>(request: &'a Received<'_>) -> Result<Self::Values<'a>, Failure>;
}

/// The description of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterDoc {
    /// The name of the component in the OpenAPI document; `None` writes the parameter where it is used.
    pub component: Option<&'static str>,
    /// The name in the request.
    pub name: &'static str,
    /// The part of the request that it is in.
    pub place: Place,
    /// What it means, in Markdown.
    pub description: &'static str,
    /// Whether a request without it is refused.
    pub is_required: bool,
    /// What its text may be.
    pub shape: Shape,
    /// An example as JSON.
    pub example: Option<&'static str>,
    /// Statuses that an endpoint answers because it has this parameter.
    pub answers: &'static [u16],
}

impl ParameterDoc {
    /// An optional parameter of the query.
    pub const fn query(component: &'static str, name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            component: Some(component),
            name,
            place: Place::Query,
            description,
            is_required: false,
            shape,
            example: None,
            answers: &[],
        }
    }

    /// A header field.
    pub const fn header(component: &'static str, name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            place: Place::Header,
            ..Self::query(component, name, shape, description)
        }
    }

    /// A part of the path, which one endpoint has.
    pub const fn path(name: &'static str, shape: Shape, description: &'static str) -> Self {
        Self {
            component: None,
            place: Place::Path,
            is_required: true,
            ..Self::query("", name, shape, description)
        }
    }

    /// A request without it is refused.
    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    /// Shows an example, written as JSON.
    #[must_use]
    pub const fn example(self, json: &'static str) -> Self {
        Self {
            example: Some(json),
            ..self
        }
    }

    /// Adds statuses to the answers of each endpoint that has the parameter.
    #[must_use]
    pub const fn answers(self, statuses: &'static [u16]) -> Self {
        Self {
            answers: statuses,
            ..self
        }
    }
}

/// The part of a request that a parameter is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as OpenAPI names them")]
pub enum Place {
    Query,
    Path,
    Header,
}

/// What the text of a parameter may be.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// What a field of a described type may be: `("Agent", "workspace_id")`.
    Field(&'static str, &'static str),
    /// A whole number within bounds.
    Number {
        /// The minimum.
        minimum: u64,
        /// The maximum. The reader of numbers has a bound of its own, 2^64 - 1.
        maximum: Option<u64>,
        /// What a request without the parameter gets.
        default: Option<u64>,
    },
    /// One word of a closed set.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// What a request without the parameter gets.
        default: &'static str,
    },
    /// Any text.
    Text,
    /// A text of so many characters that a regular expression describes.
    Pattern {
        /// The least and the most characters.
        length: Option<(u64, u64)>,
        /// The regular expression.
        pattern: &'static str,
    },
}

macro_rules! input {
    ($($name:ident),*) => {
        impl<$($name: Parameter),*> Input for ($($name,)*) {
            type Values<'a> = ($($name::Value<'a>,)*);

            const DOCS: &'static [ParameterDoc] = &[$($name::DOC),*];

            #[allow(unused_variables, reason = "an endpoint without parameters reads nothing")]
            fn read<'a>(request: &'a Received<'_>) -> Result<Self::Values<'a>, Failure> {
                #[allow(unused_mut, reason = "as above")]
                let mut faults = Faults::default();
                let values = ($($name::read(request, &mut faults)?,)*);
                faults.into_result()?;
                Ok(values)
            }
        }
    };
}

input!();
input!(A);
input!(A, B);
input!(A, B, C);
input!(A, B, C, D);
input!(A, B, C, D, E);
input!(A, B, C, D, E, F);
input!(A, B, C, D, E, F, G);
input!(A, B, C, D, E, F, G, H);
input!(A, B, C, D, E, F, G, H, I);
input!(A, B, C, D, E, F, G, H, I, J);
