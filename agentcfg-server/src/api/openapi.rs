//! The description of the API for tools.
//!
//! It is written by hand; the tests of this module hold it against the route table, the limits and the types.

/// The OpenAPI document, as `/openapi.json` serves it.
pub const DOCUMENT: &str = include_str!("openapi.json");

#[cfg(test)]
mod tests;
