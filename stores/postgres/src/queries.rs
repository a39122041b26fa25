//! The queries that requests make before their work, in groups: reads by key, and counts in rate windows.
//!
//! The reads of a group share a statement, and so do its counts. Both go to the database at the same time; to one that
//! is near, in one message over one connection. So a request that reads and counts at the same time, as each one does
//! on entry, waits for one round trip, and many concurrent ones cost the database little more than one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentcfg_core::store::group::{Combiner, Limits, Unanswered, Work};
use agentcfg_core::store::{Key, StoreError};

use super::contention::Contention;
use super::shared_reads::{RecordsRead, SharedReads};
use super::table::Location;
use super::windows::{COUNT_TIMEOUT, Counted, Hit, SharedCount, Window};
use super::{Engine, flights};

/// The smallest group that a pause follows: a few callers are answered sooner without.
const PAUSED: usize = 4;
/// The longest pause; most end as soon as the callers of the group are back.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Reads and counts, in groups.
pub(super) struct Queries {
    combiner: Combiner<Grouped>,
    next: AtomicU64,
}

impl Queries {
    pub(super) fn new(engine: Arc<Engine>, pool_size: usize, queue_timeout: Duration) -> Self {
        let limits = Limits {
            group: 256,
            // A read counts with the number of its keys.
            bytes: 768,
            lane: 1,
            queue: 32_768,
            ..flights(pool_size, queue_timeout)
        };
        Self {
            combiner: Combiner::new(Grouped::new(engine), limits),
            next: AtomicU64::new(0),
        }
    }

    /// Reads records by their keys, in one snapshot that is not older than this call.
    pub(super) async fn get(&self, keys: &[Key]) -> RecordsRead {
        for key in keys {
            Location::of_key(key)?;
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let query = Query {
            keys: keys.to_vec(),
            hit: None,
        };
        self.submit(query).await?.found
    }

    /// Counts a request in its window.
    pub(super) async fn hit(&self, hit: Hit) -> Counted {
        let query = Query {
            keys: Vec::new(),
            hit: Some(hit),
        };
        self.submit(query).await?.counted
    }

    async fn submit(&self, query: Query) -> Result<QueryAnswer, StoreError> {
        // A lane for each query: equal ones do not wait for each other while more groups may be in flight.
        let lane = self.next.fetch_add(1, Ordering::Relaxed);
        let size = query.keys.len() as u64;
        match self.combiner.submit(lane, size, query).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into())),
            Err(Unanswered::Lost) => Err(StoreError::Unavailable("the query ended without an answer".into())),
        }
    }
}

/// What one request asks: to read keys, or to count.
struct Query {
    keys: Vec<Key>,
    hit: Option<Hit>,
}

#[derive(Clone)]
struct QueryAnswer {
    found: RecordsRead,
    counted: Counted,
}

struct Grouped {
    engine: Arc<Engine>,
    /// Of the rate windows.
    contention: Contention<Window>,
}

impl Grouped {
    fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            contention: Contention::default(),
        }
    }
}

impl Work for Grouped {
    type Lane = u64;
    type Request = Query;
    type Answer = QueryAnswer;

    fn is_near(&self) -> bool {
        self.engine.connections.is_near()
    }

    fn pause(&self, size: usize, _: Duration) -> Duration {
        // The groups of several servers wait for each other at the rows of windows that all of them count in, so large
        // groups cost less. One server alone had better send the next group at once.
        match size >= PAUSED && self.is_near() && self.contention.is_found() {
            true => LONGEST_PAUSE,
            false => Duration::ZERO,
        }
    }

    async fn run(&self, mut group: Vec<Query>) -> Vec<QueryAnswer> {
        let engine = &*self.engine;
        let connections = &engine.connections;
        let counts = SharedCount::of(group.iter_mut().map(|query| query.hit.take()));
        let reads = match SharedReads::of(engine, group.iter().map(|query| &query.keys[..]).collect()) {
            Ok(reads) => reads,
            Err(error) => return vec![QueryAnswer::failed(&error); group.len()],
        };
        let (first, others) = match counts.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, &[][..]),
        };
        let read = reads.as_ref().map(SharedReads::step);
        let count = first.map(|count| (COUNT_TIMEOUT, count.step(&engine.sql)));
        let (rows, windows) = connections.read_and(read, count).await;

        let none = QueryAnswer::failed(&StoreError::Unavailable("the database returned no answer".into()));
        let mut answers = vec![none; group.len()];
        if let Some(reads) = &reads {
            for (answer, found) in answers.iter_mut().zip(reads.answers(engine, rows).await) {
                answer.found = found;
            }
        }
        let mut tell = |count: &SharedCount, windows| {
            count.tell(windows, &self.contention, |place, counted| {
                answers[place].counted = counted
            });
        };
        if let Some(first) = first {
            tell(first, windows);
        }
        for count in others {
            tell(
                count,
                connections.rows_within(COUNT_TIMEOUT, &count.step(&engine.sql)).await,
            );
        }
        answers
    }
}

impl QueryAnswer {
    fn failed(error: &StoreError) -> Self {
        Self {
            found: Err(error.clone()),
            counted: Err(error.clone()),
        }
    }
}
