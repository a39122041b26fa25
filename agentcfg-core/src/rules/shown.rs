//! Forms of values that only the service makes. No body has them, so they are described and never checked.

/// The identifier of a record.
pub(crate) struct RecordId;

/// The plaintext of an API key.
#[cfg(feature = "schema")]
pub(crate) struct KeyText;

/// The constant `true`.
pub(crate) struct True;

/// The secret that signs the deliveries of a webhook.
#[cfg(feature = "schema")]
pub(crate) struct SigningSecret;
