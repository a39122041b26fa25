//! Tests beyond the storage contract: the store file, the writer thread, backups.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod backup;
mod check;
mod disk;
mod file;
mod golden;
mod heal;
mod scan;
mod writer;

use std::path::Path;

use super::super::{Batch, Check, Key, Kind, Partition, Record, Scan, Store, Write};
use super::{RedbOptions, RedbStore};
use crate::model::WorkspaceId;

fn open(path: &Path) -> RedbStore {
    RedbStore::open(path, RedbOptions::default()).unwrap()
}

fn workspace() -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(7))
}

fn agent(item: &str) -> Key {
    Key::in_workspace(workspace(), Kind::Agent, item)
}

fn put(item: &str, value: &str) -> Write {
    Write::Put(agent(item), value.as_bytes().to_vec())
}

fn batch(checks: impl IntoIterator<Item = Check>, writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch {
        checks: checks.into_iter().collect(),
        writes: writes.into_iter().collect(),
    }
}

/// Commits records of several kinds, enough for a tree of several pages.
async fn fill(store: &RedbStore) {
    let own = Key::in_workspace(workspace(), Kind::Workspace, "");
    let writes = [Write::Put(own, b"{}".to_vec())];
    store.commit(batch([], writes)).await.unwrap();
    for number in 0..40 {
        let writes = [
            put(
                &format!("agent-{number}"),
                &format!("{{\"text\":\"{}\"}}", "ä".repeat(number * 20)),
            ),
            Write::Put(Key::global(format!("key-{number}"), Kind::ApiKey, ""), b"{}".to_vec()),
            Write::Add {
                counter: Key::in_workspace(workspace(), Kind::Counter, "c"),
                delta: 1,
                max: None,
            },
            Write::Append {
                log: workspace(),
                value: number.to_string().into_bytes(),
            },
        ];
        store.commit(batch([], writes)).await.unwrap();
    }
    store
        .commit(batch([], [Write::Delete(agent("agent-3"))]))
        .await
        .unwrap();
}

/// Reads every record that [`fill`] writes.
async fn dump(store: &RedbStore) -> Vec<(Key, Record)> {
    let mut partitions = vec![Partition::Workspace(workspace())];
    partitions.extend((0..40).map(|number| Partition::Global(format!("key-{number}").into())));
    let mut records = Vec::new();
    for partition in partitions {
        for kind in Kind::ALL
            .into_iter()
            .filter(|kind| kind.partition_kind() == partition.kind())
        {
            records.extend(store.scan(&Scan::all(partition.clone(), kind)).await.unwrap().entries);
        }
    }
    records
}
