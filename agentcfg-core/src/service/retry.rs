//! Retries of mutations that lost a race against another writer.

use super::AgentCfg;
use super::records::Outcome;
use crate::error::{Error, ErrorKind};

/// How many attempts a mutation has at most. An attempt fails when another writer committed first. Of concurrent
/// attempts at least one succeeds, so this bounds how many writers can go first.
const MAX_ROUNDS: usize = 2000;

/// How an attempt at a mutation ended.
pub(super) enum Attempt<T> {
    /// The mutation is done.
    Done(T),
    /// The state has changed since it was read: decide again.
    Raced,
}

impl Outcome {
    /// The result of a change that no limit can refuse, because it raises no counter that has a maximum.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when a counter is lower than what the change takes off it.
    pub(super) fn attempt<T>(self, value: T) -> Result<Attempt<T>, Error> {
        match self {
            Self::Done(_) => Ok(Attempt::Done(value)),
            Self::Raced => Ok(Attempt::Raced),
            Self::Limit => Err(Error::new(
                ErrorKind::Internal,
                "a counter is lower than what it counts",
            )),
        }
    }
}

impl AgentCfg {
    /// Makes attempts until one succeeds or fails for another reason than a lost race.
    pub(super) async fn retry_lost_races<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Attempt<T>, Error>>,
    {
        let mut rounds = Rounds::default();
        loop {
            if let Attempt::Done(value) = attempt().await? {
                return Ok(value);
            }
            rounds.lost().await?;
        }
    }
}

/// Counts the attempts that a mutation has lost.
#[derive(Default)]
pub(super) struct Rounds(usize);

impl Rounds {
    /// Whether none was lost yet.
    pub(super) fn is_first(&self) -> bool {
        self.0 == 0
    }

    /// Counts a lost attempt, and yields to other tasks. Too many are an error.
    pub(super) async fn lost(&mut self) -> Result<(), Error> {
        self.0 += 1;
        if self.0 >= MAX_ROUNDS {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "too many writers change this record at the same time, try again",
            ));
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}
