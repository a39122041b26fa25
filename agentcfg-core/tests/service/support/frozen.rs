//! A store that does not come back from some commits.

use std::sync::Arc;

use agentcfg_core::store::{Batch, CommitError, Committed, Key, Record, Scan, Scanned, Store, StoreError};

/// A store whose commits never end that write a key of this kind.
pub struct Frozen<F> {
    inner: Arc<dyn Store>,
    freezes: F,
}

impl<F: Fn(&Key) -> bool + Send + Sync + 'static> Frozen<F> {
    pub fn behind(inner: &Arc<dyn Store>, freezes: F) -> Arc<dyn Store> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            freezes,
        })
    }
}

#[async_trait::async_trait]
impl<F: Fn(&Key) -> bool + Send + Sync + 'static> Store for Frozen<F> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        if batch.writes.iter().any(|write| (self.freezes)(&write.key())) {
            std::future::pending::<()>().await;
        }
        self.inner.commit(batch).await
    }
}
