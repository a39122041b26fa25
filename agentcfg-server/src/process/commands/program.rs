//! The name of this program, and its runtime.

/// The name that this program was called by, for messages that suggest a command.
pub(super) fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match called.contains(char::is_whitespace) || called.is_empty() {
        true => "agentcfg-server".to_owned(),
        false => called,
    }
}

/// The runtime of the server, with a worker for each core.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
