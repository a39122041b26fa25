//! The smallest bodies.

use crate::body::record;
use crate::rules;

record! {
    /// Body of every answer that reports a failure.
    ///
    /// (Interface specification, *Errors*.)
    #[derive(Debug, Clone, PartialEq, Eq)]
    ErrorBody "Error" {
        /// What went wrong, for people to read. The wording may change between releases: rely on the status code.
        error: required String,
    }
    examples: [{ "error": "display_name must be at most 100 characters, got 142" }],
}

record! {
    /// Says that it is done, where there is no record to show.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    Success {
        /// Always true.
        success: required bool as rules::True,
    }
    examples: [{ "success": true }],
}

impl Success {
    /// `{"success": true}`.
    pub const OK: Self = Self { success: true };
}
