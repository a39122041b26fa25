//! `Arc` of a store is a store.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    Batch, Changes, CommitError, Committed, Key, Kind, Marks, Partition, Position, Record, Scan, Scanned, Stamp, Store,
    StoreError, Tracker, Watcher,
};
use crate::model::WorkspaceId;

/// A store that several owners share.
#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        (**self).get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        (**self).scan(scan).await
    }

    async fn changed_since(
        &self,
        partition: &Partition,
        kind: Kind,
        position: Option<Position>,
    ) -> Result<Changes, StoreError> {
        (**self).changed_since(partition, kind, position).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        (**self).commit(batch).await
    }

    fn stamp(&self, key: &Key) -> Option<Stamp> {
        (**self).stamp(key)
    }

    fn is_current(&self, stamp: Stamp) -> bool {
        (**self).is_current(stamp)
    }

    fn marks(&self) -> Option<&Marks> {
        (**self).marks()
    }

    fn watch(&self, workspace: WorkspaceId, kind: Kind) -> Option<Watcher> {
        (**self).watch(workspace, kind)
    }

    fn track(&self, workspace: WorkspaceId, kind: Kind) -> Option<Tracker> {
        (**self).track(workspace, kind)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        (**self).ready().await
    }

    fn read_only(&self) -> Option<String> {
        (**self).read_only()
    }

    async fn end_removal(&self, workspace: WorkspaceId, marker: Key) -> Result<(), StoreError> {
        (**self).end_removal(workspace, marker).await
    }
}
