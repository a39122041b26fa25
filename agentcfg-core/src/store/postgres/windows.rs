//! Fixed rate windows that all servers on one database share.

use std::time::Duration;

use async_trait::async_trait;

use super::super::StoreError;
use super::run::{Param, Step};
use super::{PostgresStore, read};
use crate::rate_limit::{SharedWindow, SharedWindows};

/// The time limit of counting a request here. After it, the caller counts in its own memory.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

#[async_trait]
impl SharedWindows for PostgresStore {
    async fn hit(&self, subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError> {
        let step = Step {
            sql: &self.engine.sql.window_hit,
            params: vec![Param::Text(subject.to_owned()), Param::Number(window_millis)],
        };
        let rows = self.engine.connections.rows_within(COUNT_TIMEOUT, &step).await?;
        let row = rows
            .first()
            .ok_or_else(|| StoreError::Unavailable("the database returned no count".into()))?;
        Ok(SharedWindow {
            ends_at_millis: read::column(row, 0)?,
            used: u64::try_from(read::column::<i64>(row, 1)?).unwrap_or(u64::MAX),
            now_millis: read::column(row, 2)?,
        })
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        let step = Step {
            sql: &self.engine.sql.window_sweep,
            params: Vec::new(),
        };
        self.engine.connections.rows(&step).await.map(drop)
    }
}
