//! Retries of mutations that lost a race against another writer.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::AgentCfg;
use super::records::{Outcome, Turn};
use super::tasks::spawn;
use crate::error::{Error, ErrorKind};
use crate::model::WorkspaceId;

/// How many attempts a mutation has at most. An attempt fails when another writer committed first. Of concurrent
/// attempts at least one succeeds, so this bounds how many writers can go first.
const MAX_ROUNDS: usize = 2000;

/// How many attempts a decision on many records makes before others have to wait for it.
const PATIENCE: usize = 8;

/// How many attempts it makes while they wait. The first one may lose against commits that were on their way.
const ATTEMPTS_HELD: usize = 4;

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

    /// As [`Self::retry_lost_races`], for a decision on so many records that other writers could always be faster.
    /// After some attempts they wait for it: the store orders it among them.
    pub(super) async fn retry_decision<T, F>(
        &self,
        workspace: WorkspaceId,
        attempt: impl Fn(Turn) -> F + Send + Sync + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<Attempt<T>, Error>> + Send,
    {
        for _ in 0..PATIENCE {
            if let Attempt::Done(value) = attempt(Turn::default()).await? {
                return Ok(value);
            }
            tokio::task::yield_now().await;
        }
        let Ok(runtime) = Handle::try_current() else {
            return self.decide_first(workspace, attempt, || false).await;
        };
        // A task of its own, because others wait for it: an attempt that has begun ends, whatever its caller does.
        let (caller, decision) = oneshot::channel();
        let service = self.clone();
        spawn(&runtime, async move {
            let decided = service.decide_first(workspace, attempt, || caller.is_closed()).await;
            // The caller may have left meanwhile.
            drop(caller.send(decided));
        });
        decision
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "a decision was not finished").because(error))?
    }

    /// Makes attempts while others wait for them.
    async fn decide_first<T, F>(
        &self,
        workspace: WorkspaceId,
        attempt: impl Fn(Turn) -> F,
        has_left: impl Fn() -> bool,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<Attempt<T>, Error>>,
    {
        let mut rounds = Rounds::default();
        loop {
            let turn = Turn::of(self.store().hold(workspace).await?);
            let attempts = turn.hold().map_or(1, |_| ATTEMPTS_HELD);
            for _ in 0..attempts {
                if has_left() {
                    return Err(Error::new(ErrorKind::Unavailable, "the caller has left"));
                }
                if let Attempt::Done(value) = attempt(turn.clone()).await? {
                    return Ok(value);
                }
            }
            drop(turn);
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
