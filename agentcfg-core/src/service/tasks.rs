//! Tasks in boxes: the runtime's code for a task is compiled once for all of them, and not for the type of each.

use std::pin::Pin;

use tokio::runtime::Handle;

/// A task whatever its type.
pub(super) type Task<T = ()> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts a task.
pub(super) fn spawn(runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    let task: Task = Box::pin(task);
    runtime.spawn(task);
}
