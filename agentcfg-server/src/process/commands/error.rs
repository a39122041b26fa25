//! The error of a command.

/// A command failed. The text names the cause and the way out.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;
