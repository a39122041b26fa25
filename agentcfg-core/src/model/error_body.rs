//! The bodies that report a failure, or a success without a record.

use crate::body::record;
use crate::rules;

record! {
    /// Body of every answer that reports a failure.
    ///
    /// ```
    /// use agentcfg_core::model::ErrorBody;
    /// let body: ErrorBody = serde_json::from_str(r#"{"error":"invalid credentials"}"#)?;
    /// assert_eq!(body.error, "invalid credentials");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    ErrorBody "Error" {
        /// What went wrong, for people to read. The wording may change between releases: rely on the status code.
        error: required String,
    }
    examples: [{ "error": "display_name must be at most 100 characters, got 142" }],
}

record! {
    /// Says that it is done, where there is no record to show.
    ///
    /// ```
    /// use agentcfg_core::model::Success;
    /// assert_eq!(serde_json::to_string(&Success::OK)?, r#"{"success":true}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    Success {
        /// Always true.
        success: required bool as rules::True,
    }
    examples: [{ "success": true }],
}

impl ErrorBody {
    /// A body with this message.
    ///
    /// ```
    /// use agentcfg_core::model::ErrorBody;
    /// assert_eq!(serde_json::to_string(&ErrorBody::new("not found"))?, r#"{"error":"not found"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(error: impl Into<String>) -> Self {
        Self { error: error.into() }
    }
}

impl Success {
    /// `{"success": true}`.
    ///
    /// ```
    /// use agentcfg_core::model::Success;
    /// assert!(Success::OK.success);
    /// ```
    pub const OK: Self = Self { success: true };
}
