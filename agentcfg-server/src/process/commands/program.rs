//! The name of this program.

/// The name that this program was called by, for messages that suggest a command.
pub(super) fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match called.contains(char::is_whitespace) || called.is_empty() {
        true => "agentcfg-server".to_owned(),
        false => called,
    }
}
