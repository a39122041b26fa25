//! What a failed attempt reveals about the request.

/// What a failure reveals about the processing of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server has certainly changed nothing, and a retry may succeed.
    NotApplied,
    /// The server may have processed it.
    Unknown,
    /// A retry would fail in the same way.
    Final,
}
