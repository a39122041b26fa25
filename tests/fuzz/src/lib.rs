//! What is done with hostile input.
//!
//! A target takes any bytes, gives them to one reader of the product, and panics if the reader does or if its outcome
//! breaks a rule. `cargo fuzz` runs a target under libFuzzer, and `tests/mutations.rs` runs all of them over the files
//! of `fuzz/corpus` and many mutations of these.

mod connection;
mod files;
pub mod mutate;
mod readers;
mod service;

/// A target: its name, which is that of its corpus, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("agent_files", files::agent_file),
    ("backups", files::backup),
    ("bodies", readers::bodies),
    ("config_files", files::config_file),
    ("credentials", service::credential),
    ("cursors", readers::cursor),
    ("envelopes", files::envelope),
    ("http_heads", connection::heads),
    ("mcp", service::mcp),
    ("queries", service::query),
    ("requests", service::request),
    ("session_tokens", service::session_token),
    ("webhook_urls", readers::webhook_url),
];

/// Runs the target of this name.
///
/// # Panics
///
/// If there is none, and when the input shows a fault.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.unwrap_or_else(|| panic!("there is no target {name}"));
    target(input);
}

/// The input as text, where a reader takes text alone.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}
