//! The error of a command.

/// The error of a command. The text has the cause and what to do about it.
pub type CommandError = Box<dyn std::error::Error + Send + Sync>;
