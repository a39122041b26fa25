//! A store behind a pointer is a store.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Batch, CommitError, Committed, Key, Record, Scan, Scanned, Store, StoreError};

macro_rules! pointers {
    ($($({$store:ident})? $pointer:ty),+ $(,)?) => {
        $(
            #[async_trait]
            impl$(<$store: Store>)? Store for $pointer {
                fn inner(&self) -> Option<&dyn Store> {
                    Some(&**self)
                }

                async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
                    (**self).get(keys).await
                }

                async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
                    (**self).scan(scan).await
                }

                async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
                    (**self).commit(batch).await
                }
            }
        )+
    };
}

pointers! {
    {S} Arc<S>,
    Arc<dyn Store>,
    {S} Box<S>,
    Box<dyn Store>,
}
