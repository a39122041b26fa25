//! Placeholder.
/// The in-memory store.
#[derive(Debug, Default)]
pub struct MemoryStore;
