//! A store of your own in four methods, checked by the conformance suite, with the service on top.
//!
//! It keeps everything in a map behind a lock, so that each call is atomic. On an engine with
//! transactions, each call is one transaction.
//!
//! ```text
//! cargo run -p agentcfg-examples --example custom_store
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentcfg_core::AgentCfg;
use agentcfg_core::model::AgentFilter;
use agentcfg_core::model::{NewAgent, NewWorkspace};
use agentcfg_core::store::conformance;
use agentcfg_core::store::{
    Batch, Check, CommitError, Committed, Direction, Key, Partition, Record, Scan, Scanned, Store, StoreError, Write,
    with_revision,
};
use async_trait::async_trait;

/// The records, and the last version number that was assigned.
#[derive(Clone, Default)]
struct State {
    records: BTreeMap<Key, Record>,
    last_version: u64,
}

#[derive(Default)]
struct MapStore(Mutex<State>);

impl MapStore {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so a poisoned lock still holds a valid one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MapStore {
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let state = self.state();
        Ok(keys.iter().map(|key| state.records.get(key).cloned()).collect())
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        let state = self.state();
        let first = Key::new(scan.partition.clone(), scan.kind, "");
        let here = state.records.range(first..);
        let here = here.take_while(|(key, _)| *key.partition() == scan.partition && key.kind() == scan.kind);
        let mut entries: Vec<_> = here.map(|(key, record)| (key.clone(), record.clone())).collect();
        if scan.direction == Direction::Descending {
            entries.reverse();
        }
        if let Some(after) = &scan.after {
            entries.retain(|(key, _)| match scan.direction {
                Direction::Ascending => key.item() > &**after,
                Direction::Descending => key.item() < &**after,
            });
        }
        let (mut kept, mut bytes) = (0, 0);
        while let Some((_, record)) = entries.get(kept).filter(|_| !scan.is_full(kept, bytes)) {
            (kept, bytes) = (kept + 1, bytes + record.value.len());
        }
        entries.truncate(kept);
        let with = scan.with.iter().map(|key| state.records.get(key).cloned()).collect();
        Ok(Scanned { entries, with })
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        batch.check_revised()?;
        let mut state = self.state();
        for (index, check) in batch.checks.iter().enumerate() {
            let holds = match check {
                Check::Absent(key) => !state.records.contains_key(key),
                Check::Version(key, version) => state.records.get(key).is_some_and(|found| found.version == *version),
            };
            if !holds {
                return Err(CommitError::Conflict(index));
            }
        }
        // The batch is applied to a copy: if it fails half-way, the copy is dropped and the state is unchanged.
        let mut next = state.clone();
        let mut numbers = Vec::new();
        for (index, write) in batch.writes.into_iter().enumerate() {
            numbers.push(next.write(write, &state)?.ok_or(CommitError::Limit(index))?);
        }
        *state = next;
        Ok(Committed { numbers })
    }
}

impl State {
    /// Applies one write and returns its number; `None` when a counter would leave its bounds. `before` is the state
    /// before the batch.
    fn write(&mut self, write: Write, before: &Self) -> Result<Option<u64>, StoreError> {
        Ok(Some(match write {
            Write::Put(key, value) => self.put(key, value),
            Write::PutRevised(key, value) => {
                let Partition::Workspace(log) = *key.partition() else {
                    return Err(StoreError::Misuse("only a workspace has revisions".into()));
                };
                let revision = before.number(&Key::log_head(log))? + 1;
                self.put(key, with_revision(revision, &value))
            }
            Write::Delete(key) => {
                self.records.remove(&key);
                0
            }
            Write::Add { counter, delta, max } => {
                let sum = self.number(&counter)?.checked_add_signed(delta);
                let Some(sum) = sum.filter(|sum| delta <= 0 || max.is_none_or(|max| *sum <= max)) else {
                    return Ok(None);
                };
                self.put(counter, sum.to_string().into_bytes());
                sum
            }
            Write::Append { log, value } => {
                let head = Key::log_head(log);
                let number = self.number(&head)? + 1;
                self.put(Key::log_entry(log, number), value);
                self.put(head, number.to_string().into_bytes());
                number
            }
        }))
    }

    /// One sequence of versions for all keys, so that no version repeats even when a key is deleted and put again.
    fn put(&mut self, key: Key, value: Vec<u8>) -> u64 {
        self.last_version += 1;
        let (version, value) = (self.last_version, value.into());
        self.records.insert(key, Record { version, value });
        self.last_version
    }

    fn number(&self, key: &Key) -> Result<u64, StoreError> {
        let Some(record) = self.records.get(key) else {
            return Ok(0);
        };
        serde_json::from_slice(&record.value).map_err(|error| StoreError::Corrupt(format!("{key:?}: {error}")))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // In your own crate this is a test: it panics at the first violated guarantee.
    conformance::run(async || Arc::new(MapStore::default()) as Arc<dyn Store>).await;
    println!("the store keeps every guarantee");

    let service = AgentCfg::builder(MapStore::default()).build();
    let ada = service.trusted_user("ada")?;
    let name = "Studio".to_owned();
    let studio = service.create_workspace(&ada, NewWorkspace::new(name)).await?;
    service
        .create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer"))
        .await?;
    let agents = service.list_agents(&ada, studio.id, &AgentFilter::default()).await?;
    println!("{} agent on it", agents.value.agents()?.len());
    Ok(())
}
