//! What breaks the contract for callers.

use agentcfg_core::store::{Batch, CommitError, Key, Kind, Partition, Scan, Store, StoreError, Write};

/// Asserts that misuse is refused and changes nothing. Returns the text of a batch that names a key in two writes.
pub async fn is_refused(store: &impl Store) -> String {
    let misplaced = Scan::all(Partition::Global("x".into()), Kind::Agent);
    let refused = store.scan(&misplaced).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Misuse(text) if text.contains("Agent")),
        "{refused}"
    );
    let key = Key::global("x", Kind::Meta, "a");
    let twice = Batch {
        checks: vec![],
        writes: vec![Write::Put(key.clone(), b"1".to_vec()), Write::Delete(key.clone())],
    };
    let text = match store.commit(twice).await.unwrap_err() {
        CommitError::Store(StoreError::Misuse(text)) => text,
        other => panic!("{other}"),
    };
    assert_eq!(store.get(&[key]).await.unwrap(), [None]);
    text
}
