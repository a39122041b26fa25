//! Forms of values that only the service makes. No body has them, so they are described and never checked.

/// The identifier of a record.
pub(crate) struct RecordId;

/// Changes by their path, or nulls in a summary.
pub(crate) struct ChangesByPath;

/// Always true.
pub(crate) struct True;
