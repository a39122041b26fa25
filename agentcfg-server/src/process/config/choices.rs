//! Settings whose value is a word of a closed set.

/// The kinds of identity provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionProvider {
    /// This server issues tokens itself.
    Local,
    /// Tokens are verified by the keys that the provider publishes.
    Jwks,
    /// The provider verifies each token on request.
    Introspection,
}

/// How statements are sent to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once for each connection.
    Prepared,
    /// Parsed each time, for poolers that share a session between transactions.
    Unnamed,
}

/// How spans are encoded and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// Protocol buffers over HTTP.
    HttpProtobuf,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
