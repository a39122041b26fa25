//! The same work for several items at a time.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::tasks::Task;
use crate::error::{Error, ErrorKind};

/// How long a round of background work is waited for.
const ROUND: Duration = Duration::from_millis(500);

/// Runs a round of background work in a task of its own, and returns its result. `None` where it takes too long or
/// panics: it goes on beside the next round, which skips the items that it works on.
pub(super) async fn round(work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Option<Result<(), Error>> {
    let work: Task<Result<(), Error>> = Box::pin(work);
    timeout(ROUND, tokio::spawn(work)).await.ok()?.ok()
}

/// Does the work for each item, for at most `at_once` of them at the same time; one after the other where there is no
/// runtime. One that fails does not keep the others from being done.
///
/// # Errors
///
/// The first failure.
pub(super) async fn for_each<T, F>(items: Vec<T>, at_once: usize, work: impl Fn(T) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let mut failure = None;
    if items.len() == 1 || Handle::try_current().is_err() {
        for item in items {
            failure = failure.or(work(item).await.err());
        }
        return failure.map_or(Ok(()), Err);
    }
    let mut running = JoinSet::new();
    let mut items = items.into_iter();
    loop {
        while running.len() < at_once
            && let Some(item) = items.next()
        {
            let work: Task<Result<(), Error>> = Box::pin(work(item));
            running.spawn(work);
        }
        match running.join_next().await {
            None => return failure.map_or(Ok(()), Err),
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => failure = failure.or(Some(error)),
            Some(Err(error)) => {
                let error = Error::new(ErrorKind::Internal, "a task was not finished").because(error);
                failure = failure.or(Some(error));
            }
        }
    }
}
