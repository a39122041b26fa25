//! Fixed rate windows that all servers on one database share.
//!
//! Requests that are counted at the same time share a statement, which counts each subject once with the number of its
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::super::StoreError;
use super::super::group::{Combiner, Limits, Unanswered, Work};
use super::run::{Param, Step};
use super::{Engine, PostgresStore, flights, read};
use crate::rate_limit::{SharedWindow, SharedWindows};

/// The time limit of counting a request here. After it, the caller counts in its own memory.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts requests, in groups.
pub(super) struct Windows {
    combiner: Combiner<Counts>,
    next: AtomicU64,
}

impl Windows {
    pub(super) fn new(engine: Arc<Engine>, pool_size: usize) -> Self {
        let limits = Limits {
            group: 256,
            bytes: u64::MAX,
            lane: 1,
            queue: 16_384,
            ..flights(pool_size, COUNT_TIMEOUT)
        };
        Self {
            combiner: Combiner::new(Counts(engine), limits),
            next: AtomicU64::new(0),
        }
    }
}

/// A request to count.
struct Hit {
    subject: String,
    window_millis: i64,
}

struct Counts(Arc<Engine>);

impl Work for Counts {
    type Lane = u64;
    type Request = Hit;
    type Answer = Result<SharedWindow, StoreError>;

    async fn run(&self, group: Vec<Hit>) -> Vec<Self::Answer> {
        // In practice all windows have one length.
        let mut lengths: BTreeMap<i64, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        let hits = group.len();
        for (index, hit) in group.into_iter().enumerate() {
            let subjects = lengths.entry(hit.window_millis).or_default();
            subjects.entry(hit.subject).or_default().push(index);
        }
        let missing = || StoreError::Unavailable("the database returned no count".into());
        let mut answers = vec![Err(missing()); hits];
        for (length, subjects) in lengths {
            match self.count(length, &subjects).await {
                Ok(windows) => {
                    for (subject, window) in windows {
                        // The requests of a subject are counted in the order of their arrival.
                        let hits = subjects.get(&subject).into_iter().flatten().rev();
                        for (later, index) in (0..).zip(hits) {
                            let used = window.used.saturating_sub(later);
                            answers[*index] = Ok(SharedWindow { used, ..window });
                        }
                    }
                }
                Err(error) => {
                    for index in subjects.into_values().flatten() {
                        answers[index] = Err(error.clone());
                    }
                }
            }
        }
        answers
    }
}

impl Counts {
    /// Counts the requests of each subject. Returns the windows after them.
    async fn count(
        &self,
        length: i64,
        subjects: &BTreeMap<String, Vec<usize>>,
    ) -> Result<Vec<(String, SharedWindow)>, StoreError> {
        let requests = subjects
            .values()
            .map(|hits| i64::try_from(hits.len()).unwrap_or(i64::MAX));
        let step = Step {
            sql: &self.0.sql.window_hits,
            params: vec![
                Param::Texts(subjects.keys().cloned().collect()),
                Param::Number(length),
                Param::Numbers(requests.collect()),
            ],
        };
        let rows = self.0.connections.rows_within(COUNT_TIMEOUT, &step).await?;
        let window = |row| {
            let window = SharedWindow {
                ends_at_millis: read::column(row, 1)?,
                used: u64::try_from(read::column::<i64>(row, 2)?).unwrap_or(u64::MAX),
                now_millis: read::column(row, 3)?,
            };
            Ok((read::column(row, 0)?, window))
        };
        rows.iter().map(window).collect()
    }
}

#[async_trait]
impl SharedWindows for PostgresStore {
    async fn hit(&self, subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError> {
        let hit = Hit {
            subject: subject.to_owned(),
            window_millis,
        };
        // A lane for each request, as for reads.
        let lane = self.windows.next.fetch_add(1, Ordering::Relaxed);
        match self.windows.combiner.submit(lane, 0, hit).await {
            Ok(window) => window,
            Err(Unanswered::NotRun(why)) => Err(StoreError::Unavailable(why.into())),
            Err(Unanswered::Lost) => Err(StoreError::Unavailable("the count ended without an answer".into())),
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        let step = Step {
            sql: &self.engine.sql.window_sweep,
            params: Vec::new(),
        };
        self.engine.connections.rows(&step).await.map(drop)
    }
}
