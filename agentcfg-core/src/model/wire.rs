//! The smallest bodies.

use serde::{Deserialize, Serialize};

/// The body of every answer that is not a success. (Interface specification, *Errors*.)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What went wrong, for people.
    pub error: String,
}

/// The body of an answer that has nothing else to say: `{"success": true}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// Always true.
    pub success: bool,
}

impl Success {
    /// `{"success": true}`.
    pub const OK: Self = Self { success: true };
}
