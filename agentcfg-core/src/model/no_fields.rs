//! The body of a request that takes none.

use serde::Serialize;

use crate::body::{Body, Fields};
use crate::validate::{self, Faults, Invalid, Valid};

/// The body of a request that takes none: `{}`, for clients that always send one.
///
/// ```
/// use agentcfg_core::model::NoFields;
/// assert!(NoFields::from_json(b"{}").is_ok());
/// let refused = NoFields::from_json(br#"{"seconds":1}"#).unwrap_err();
/// assert_eq!(refused.to_string(), "seconds is not a known field");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct NoFields {}

impl NoFields {
    /// Reads the JSON text of a request.
    ///
    /// # Errors
    ///
    /// When the text is no object, or has a field.
    ///
    /// ```
    /// use agentcfg_core::model::NoFields;
    /// assert!(NoFields::from_json(b"[]").is_err());
    /// ```
    pub fn from_json(bytes: &[u8]) -> Result<Valid<Self>, Invalid> {
        validate::read(bytes)
    }
}

impl Body for NoFields {
    const FIELDS: &'static [&'static str] = &[];
    const READ_ONLY: &'static [&'static str] = &[];

    fn read(_: &mut Fields<'_>) -> Option<Self> {
        Some(Self {})
    }

    fn check(&self, _: &mut Faults) {}
}
