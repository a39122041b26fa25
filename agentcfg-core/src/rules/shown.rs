//! Forms of values that only the service makes. No body has them, so they are described and never checked.

/// The identifier of a record, which the service makes.
pub(crate) struct RecordId;

/// The plaintext of an API key, which the service makes.
#[cfg(feature = "schema")]
pub(crate) struct KeyText;

/// Always true.
pub(crate) struct True;

/// The secret of a webhook.
#[cfg(feature = "schema")]
pub(crate) struct SigningSecret;
