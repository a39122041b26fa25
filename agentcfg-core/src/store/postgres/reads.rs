//! Reads by key that share a statement.
//!
//! A statement costs the database far more than a row that is found by its key, and concurrent requests often need the same
//! rows, such as the record of their API key or the head of their workspace's log. A read that meets few others is sent at
//! once. Reads that wait share the next statement, which begins after each of them did, and read each key once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::group::{Combiner, Limits, Unanswered, Work};
use super::super::{Key, Record, StoreError};
use super::table::Place;
use super::{Engine, flights, read};

type Found = Result<Vec<Option<Record>>, StoreError>;

/// Reads by key, in groups.
pub(super) struct Reads {
    combiner: Combiner<Gets>,
    next: AtomicU64,
}

impl Reads {
    pub(super) fn new(engine: Arc<Engine>, pool_size: usize, patience: Duration) -> Self {
        let limits = Limits {
            group: 128,
            // A read counts with the number of its keys.
            bytes: 512,
            lane: 1,
            queue: 16_384,
            ..flights(pool_size, patience)
        };
        Self {
            combiner: Combiner::new(Gets(engine), limits),
            next: AtomicU64::new(0),
        }
    }

    /// Reads records by their keys, in one snapshot that is not older than this call.
    pub(super) async fn get(&self, keys: &[Key]) -> Found {
        for key in keys {
            Place::of_key(key)?;
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        // A lane for each read: equal reads do not wait for each other while more statements may be in flight.
        let lane = self.next.fetch_add(1, Ordering::Relaxed);
        match self.combiner.submit(lane, keys.len() as u64, keys.to_vec()).await {
            Ok(found) => found,
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into())),
            Err(Unanswered::Lost) => Err(StoreError::Unavailable("the read ended without an answer".into())),
        }
    }
}

struct Gets(Arc<Engine>);

impl Work for Gets {
    type Lane = u64;
    type Request = Vec<Key>;
    type Answer = Found;

    async fn run(&self, group: Vec<Vec<Key>>) -> Vec<Found> {
        if let [keys] = &group[..] {
            return vec![self.get(keys).await];
        }
        let Engine { connections, sql, .. } = &*self.0;
        let mut places: HashMap<&Key, usize> = HashMap::new();
        let mut keys = Vec::new();
        for key in group.iter().flatten() {
            places.entry(key).or_insert_with(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
        }
        let found = match read::get_shared(connections, sql, &keys).await {
            Ok(found) => found,
            Err(error @ StoreError::Unavailable(_)) => return vec![Err(error); group.len()],
            // A damaged record fails the reads that need it, and no others.
            Err(_) => {
                let mut answers = Vec::with_capacity(group.len());
                for keys in &group {
                    answers.push(self.get(keys).await);
                }
                return answers;
            }
        };
        let record = |key| places.get(key).and_then(|place| found.get(*place)?.clone());
        group.iter().map(|keys| Ok(keys.iter().map(record).collect())).collect()
    }
}

impl Gets {
    async fn get(&self, keys: &[Key]) -> Found {
        read::get(&self.0.connections, &self.0.sql, keys).await
    }
}
