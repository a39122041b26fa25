//! Fixed rate windows that all servers on one database share.
//!
//! Requests that are counted at the same time share a statement, which counts each subject once with the number of its
//! requests.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use agentcfg_core::store::{SharedWindow, SharedWindows, StoreError};
use async_trait::async_trait;
use tokio_postgres::Row;

use super::contention::Contention;
use super::pipeline::{Param, Step};
use super::sql::Sql;
use super::{PostgresStore, read};

/// The time limit of counting a request here. After it, the caller counts in its own memory.
pub(super) const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// A request to count.
pub(super) struct Hit {
    pub(super) subject: String,
    pub(super) window_millis: i64,
}

/// A window in the database: its subject, and when it ends.
pub(super) type Window = (String, i64);

pub(super) type Counted = Result<SharedWindow, StoreError>;

/// The requests of a group in windows of one length: the places of each subject's requests in the group.
pub(super) struct SharedCount {
    window_millis: i64,
    subjects: BTreeMap<String, Vec<usize>>,
}

impl SharedCount {
    /// One for each length of window. In practice all windows have one length.
    pub(super) fn of(hits: impl Iterator<Item = Option<Hit>>) -> Vec<Self> {
        let mut lengths: BTreeMap<i64, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        for (place, hit) in hits.enumerate().filter_map(|(place, hit)| Some((place, hit?))) {
            let subjects = lengths.entry(hit.window_millis).or_default();
            subjects.entry(hit.subject).or_default().push(place);
        }
        let count = |(window_millis, subjects)| Self {
            window_millis,
            subjects,
        };
        lengths.into_iter().map(count).collect()
    }

    /// The statement that counts the requests.
    pub(super) fn step<'s>(&self, sql: &'s Sql) -> Step<'s> {
        let requests = self.subjects.values();
        let requests = requests.map(|places| i64::try_from(places.len()).unwrap_or(i64::MAX));
        Step {
            sql: &sql.window_hits,
            params: vec![
                Param::Texts(self.subjects.keys().cloned().collect()),
                Param::Number(self.window_millis),
                Param::Numbers(requests.collect()),
            ],
        }
    }

    /// Gives each request its place in the window after all of them. `contention` follows the counts of each window.
    pub(super) fn tell(
        &self,
        rows: Result<Vec<Row>, StoreError>,
        contention: &Contention<Window>,
        mut tell: impl FnMut(usize, Counted),
    ) {
        let windows = rows.and_then(|rows| rows.iter().map(window).collect::<Result<HashMap<_, _>, _>>());
        if let Ok(windows) = &windows {
            contention.note(self.subjects.iter().filter_map(|(subject, places)| {
                let SharedWindow {
                    ends_at_millis, used, ..
                } = *windows.get(subject)?;
                let first = (used + 1).saturating_sub(places.len() as u64);
                Some(((subject.clone(), ends_at_millis), (first, used)))
            }));
        }
        let missing = || StoreError::Unavailable("the database returned no count".into());
        for (subject, places) in &self.subjects {
            let window = match &windows {
                Ok(windows) => windows.get(subject).copied().ok_or_else(missing),
                Err(error) => Err(error.clone()),
            };
            // The requests of a subject are counted in the order of their arrival.
            for (later, place) in (0..).zip(places.iter().rev()) {
                let counted = window.clone().map(|window| SharedWindow {
                    used: window.used.saturating_sub(later),
                    ..window
                });
                tell(*place, counted);
            }
        }
    }
}

fn window(row: &Row) -> Result<(String, SharedWindow), StoreError> {
    let window = SharedWindow {
        ends_at_millis: read::column(row, 1)?,
        used: u64::try_from(read::column::<i64>(row, 2)?).unwrap_or(u64::MAX),
        now_millis: read::column(row, 3)?,
    };
    Ok((read::column(row, 0)?, window))
}

#[async_trait]
impl SharedWindows for PostgresStore {
    async fn hit(&self, subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError> {
        let hit = Hit {
            subject: subject.to_owned(),
            window_millis,
        };
        self.queries.hit(hit).await
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        let step = Step {
            sql: &self.engine.sql.window_sweep,
            params: Vec::new(),
        };
        self.engine.connections.rows(&step).await.map(drop)
    }
}
