//! Long computations, apart from the async workers.

use std::any::Any;

use tokio::runtime::Handle;

use crate::error::{Error, ErrorKind};

/// The length of texts from which work on them counts as long: it takes about a millisecond, in which the other
/// requests of an async worker would wait.
pub(super) const LONG: usize = 256 << 10;

/// The number of records from which work on them counts as long, however short they are.
const MANY: usize = 100;

/// Whether work on so many records, of so many bytes together, is long.
pub(super) fn is_long(records: usize, bytes: usize) -> bool {
    records >= MANY || bytes >= LONG
}

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
        Ok(runtime) => {
            let work: Work = Box::new(|| Box::new(work()));
            let result = on_blocking_pool(&runtime, work).await?;
            result.downcast().map(|result| *result).map_err(|_| unfinished())
        }
        Err(_) => Ok(work()),
    }
}

/// A computation whatever its type, so that the code which runs it is compiled once.
type Work = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

async fn on_blocking_pool(runtime: &Handle, work: Work) -> Result<Box<dyn Any + Send>, Error> {
    let done = runtime.spawn_blocking(work).await;
    done.map_err(|error| unfinished().because(error))
}

fn unfinished() -> Error {
    Error::new(ErrorKind::Internal, "a computation was not finished")
}
