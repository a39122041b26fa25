//! Reads by key that share a statement.
//!
//! A statement costs the database far more than a row that is found by its key, and concurrent requests often need the
//! same rows, such as the record of their API key or the head of their workspace's log. So the reads of a group are one
//! statement, which begins after each of them did, and reads each key once.

use std::collections::HashMap;

use agentcfg_core::store::{Key, Record, StoreError};
use tokio_postgres::Row;

use super::pipeline::Step;
use super::{Engine, read};

pub(super) type RecordsRead = Result<Vec<Option<Record>>, StoreError>;

/// The reads of a group as one statement.
pub(super) struct SharedReads<'a> {
    /// The keys of each read.
    reads: Vec<&'a [Key]>,
    /// Where each key is among those of the statement.
    places: HashMap<&'a Key, usize>,
    lookup: read::Lookup,
    /// Whether one read alone has keys.
    is_lone: bool,
}

impl<'a> SharedReads<'a> {
    /// `None` if there is no key.
    pub(super) fn of(engine: &Engine, reads: Vec<&'a [Key]>) -> Result<Option<Self>, StoreError> {
        let mut places = HashMap::new();
        let mut keys = Vec::new();
        for key in reads.iter().copied().flatten() {
            places.entry(key).or_insert_with(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
        }
        let with_keys = reads.iter().filter(|keys| !keys.is_empty()).count();
        let lookup = match with_keys {
            0 => return Ok(None),
            1 => read::Lookup::of(&engine.sql, &keys)?,
            _ => read::Lookup::shared(&engine.sql, &keys)?,
        };
        let is_lone = with_keys == 1;
        Ok(Some(Self {
            reads,
            places,
            lookup,
            is_lone,
        }))
    }

    /// The statement.
    pub(super) fn step(&self) -> Step<'_> {
        self.lookup.step()
    }

    /// The answer to each read, in their order.
    pub(super) async fn answers(&self, engine: &Engine, rows: Result<Vec<Row>, StoreError>) -> Vec<RecordsRead> {
        match rows.and_then(|rows| self.lookup.found(&rows)) {
            Ok(found) => {
                let record = |key| self.places.get(key).and_then(|place| found.get(*place)?.clone());
                let reads = self.reads.iter();
                reads.map(|keys| Ok(keys.iter().map(record).collect())).collect()
            }
            Err(error) if self.is_lone || matches!(error, StoreError::Unavailable(_)) => {
                vec![Err(error); self.reads.len()]
            }
            // A damaged record fails the reads that need it, and no others.
            Err(_) => {
                let mut answers = Vec::with_capacity(self.reads.len());
                for keys in &self.reads {
                    answers.push(read::get(&engine.connections, &engine.sql, keys).await);
                }
                answers
            }
        }
    }
}
