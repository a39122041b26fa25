//! Records: values with their versions.

use std::sync::Arc;

/// A stored value with its version.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use agentcfg_core::store::{Batch, Key, Kind, MemoryStore, Store, Write};
/// # let store = MemoryStore::new();
/// # let key = Key::global("store", Kind::Meta, "name");
/// # store.commit(Batch { checks: vec![], writes: vec![Write::Put(key.clone(), b"\"north\"".to_vec())] }).await?;
/// if let Some(record) = &store.get(&[key]).await?[0] {
///     println!("version {}: {}", record.version, String::from_utf8_lossy(&record.value));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The version of this write; see guarantee 5 in the [module's text](super).
    pub version: u64,
    /// The value: a JSON text. A counter's value and a log head's is a decimal number.
    pub value: Arc<[u8]>,
}
