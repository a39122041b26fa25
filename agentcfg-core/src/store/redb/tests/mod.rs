//! Tests beyond the storage contract: the store file, the writer thread, backups.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod backup;
mod bit_flips;
mod check;
mod checkpoint;
mod checksum_cost;
mod compact;
mod crash;
mod damage;
mod faulty_disk;
mod file;
mod full_disk;
pub(super) mod memory;
mod planted_blocks;
mod recovery;
mod scan;
mod writer;

use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::super::{Batch, Check, Key, Kind, Partition, Record, Scan, Store, Write};
use super::blocks::Blocks;
use super::error::OpenError;
use super::health::Health;
use super::open::open_verified;
use super::schema::{begin_write, initialise, verify_tables};
use super::shared_state::Opened;
use super::{RedbOptions, RedbStore};
use crate::model::WorkspaceId;

/// The number of cases that a fault test tries: `CASES` of the environment, or the default.
fn cases(default: usize) -> usize {
    std::env::var("CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(default)
}

/// Reproducible random numbers, from the seed `SEED` of the environment.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        Self(seed.unwrap_or(1))
    }

    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn open(path: &Path) -> RedbStore {
    RedbStore::open(path, RedbOptions::default()).unwrap()
}

/// The engine's own view of a store file.
fn raw(path: &Path) -> redb::Database {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let blocks = Blocks::new(FileBackend::new(file).unwrap());
    redb::Builder::new().create_with_backend(blocks).unwrap()
}

/// Opens the engine on a file, and makes a store in an empty one.
fn open_or_create(
    file: impl StorageBackend + Clone,
    is_empty: bool,
    options: &RedbOptions,
) -> Result<Opened, OpenError> {
    let (database, blocks) = open_verified(options, &Health::default(), || Ok(file.clone()))?;
    if is_empty {
        let transaction = begin_write(&database).unwrap();
        initialise(&transaction, 0).unwrap();
        transaction.commit().unwrap();
    }
    verify_tables(&database)?;
    Ok(Opened {
        database,
        freeze: Some(Arc::new(blocks)),
    })
}

fn workspace() -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(7))
}

fn agent(item: &str) -> Key {
    Key::in_workspace(workspace(), Kind::Agent, item)
}

/// The kinds of records that a partition can hold.
fn kinds(partition: &Partition) -> impl Iterator<Item = Kind> {
    let held = partition.kind();
    Kind::ALL.into_iter().filter(move |kind| kind.partition_kind() == held)
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
        for kind in kinds(&partition) {
            records.extend(store.scan(&Scan::all(partition.clone(), kind)).await.unwrap().entries);
        }
    }
    records
}
