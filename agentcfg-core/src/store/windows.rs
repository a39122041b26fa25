//! Rate windows that the processes on one store share.

use async_trait::async_trait;

use super::StoreError;

/// A window after a request was counted in it.
///
/// ```
/// use agentcfg_core::store::SharedWindow;
/// let window = SharedWindow { ends_at_millis: 1_795_167_060_000, used: 1, now_millis: 1_795_167_000_000 };
/// assert_eq!(window.ends_at_millis - window.now_millis, 60_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedWindow {
    /// When the window ends, in milliseconds since the Unix epoch by the clock of the shared counter.
    pub ends_at_millis: i64,
    /// The number of requests in the window, this one included.
    pub used: u64,
    /// The current time by the same clock.
    pub now_millis: i64,
}

/// A counter of windows that several processes share.
///
/// All windows go by its clock. The clocks of the processes differ a little, and with them one process could open a
/// window that is still open for another.
///
/// ```
/// use std::sync::Mutex;
/// use agentcfg_core::store::{SharedWindow, SharedWindows, StoreError};
///
/// /// One window for all, which never ends. A real counter would ask a server.
/// struct Counter(Mutex<u64>);
///
/// #[async_trait::async_trait]
/// impl SharedWindows for Counter {
///     async fn hit(&self, _subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError> {
///         let mut used = self.0.lock().map_err(|error| StoreError::Unavailable(error.to_string()))?;
///         *used += 1;
///         Ok(SharedWindow { ends_at_millis: window_millis, used: *used, now_millis: 0 })
///     }
///
///     async fn sweep(&self) -> Result<(), StoreError> {
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait SharedWindows: Send + Sync + 'static {
    /// Counts a request in the subject's window. Where that has ended, or there is none, a new one
    /// begins and lasts so long.
    ///
    /// Every call for a subject, of any process, must give the same length, which the service does with
    /// [`WINDOW_MILLIS`](crate::rate_limit::WINDOW_MILLIS). With another one it is up to the engine when an open window
    /// ends.
    ///
    /// # Errors
    ///
    /// When the counter does not answer. The request may have been counted.
    ///
    /// ```no_run
    /// # use agentcfg_core::rate_limit::WINDOW_MILLIS;
    /// # use agentcfg_core::store::SharedWindows;
    /// # async fn example(counter: impl SharedWindows) -> Result<(), Box<dyn std::error::Error>> {
    /// let window = counter.hit("key 4fQ8mZr2LkV7xN0bTy6W", WINDOW_MILLIS).await?;
    /// println!("{} requests until {}", window.used, window.ends_at_millis);
    /// # Ok(())
    /// # }
    /// ```
    async fn hit(&self, subject: &str, window_millis: i64) -> Result<SharedWindow, StoreError>;

    /// Removes windows that ended a while ago.
    ///
    /// # Errors
    ///
    /// When the counter does not answer.
    ///
    /// ```no_run
    /// # use agentcfg_core::store::SharedWindows;
    /// # async fn example(counter: impl SharedWindows) -> Result<(), Box<dyn std::error::Error>> {
    /// // Now and then, by one process or by each:
    /// counter.sweep().await?;
    /// # Ok(())
    /// # }
    /// ```
    async fn sweep(&self) -> Result<(), StoreError>;
}
