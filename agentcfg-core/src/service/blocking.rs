//! Long computations, apart from the async workers.

use tokio::runtime::Handle;

use crate::error::{Error, ErrorKind};

/// The length of texts from which work on them counts as long: it takes about a millisecond, in which the other
/// requests of an async worker would wait.
pub(super) const LONG: usize = 256 << 10;

/// Runs a computation in place, or on the blocking pool when it is long.
///
/// # Errors
///
/// As [`blocking`].
pub(super) async fn blocking_if<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    match is_long {
        true => blocking(work).await,
        false => Ok(work()),
    }
}

/// Runs a computation on the blocking pool, so that it holds up no other request; in place where there is no runtime.
///
/// # Errors
///
/// [`ErrorKind::Internal`] when the computation panics or the runtime is shut down.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    match Handle::try_current() {
        Ok(runtime) => runtime
            .spawn_blocking(work)
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "a computation was not finished").because(error)),
        Err(_) => Ok(work()),
    }
}
