//! The outcome of a failed attempt, for the decision on a retry.

/// What a failure says about the request's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// The server has certainly changed nothing, and a retry may succeed.
    NotApplied,
    /// The server may have processed the request.
    Unknown,
    /// A retry would fail in the same way.
    Final,
}
