//! This program as it runs: the name it was called by, and its runtime.

/// How this program was called, for messages that say what to run next.
pub(super) fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match called.contains(char::is_whitespace) || called.is_empty() {
        true => "agentcfg-server".to_owned(),
        false => called,
    }
}

/// The runtime of the server: a worker for each core.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
