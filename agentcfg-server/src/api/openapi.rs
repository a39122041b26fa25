//! The OpenAPI document.

/// The OpenAPI document, as `/openapi.json` serves it.
pub const DOCUMENT: &str = include_str!("openapi.json");
