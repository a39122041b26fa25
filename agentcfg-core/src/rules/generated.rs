//! Forms of values that only the service makes. No body has them, so they are described and never checked.

/// The identifier of a record.
pub(crate) struct RecordId;

/// Always true.
pub(crate) struct True;
