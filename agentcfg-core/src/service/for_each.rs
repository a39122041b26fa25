//! The same work for several items at a time.

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::error::{Error, ErrorKind};

/// Does the work for each item, for at most `at_once` of them at the same time; one after the other where there is no runtime. One
/// that fails does not keep the others from being done.
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
            running.spawn(work(item));
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
