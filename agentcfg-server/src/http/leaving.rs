//! Whether a server is about to stop.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Tells that a server is about to stop: it serves as before, and load balancers are to choose another one. Clones
/// share the state.
///
/// ```
/// use agentcfg_server::Leaving;
/// let leaving = Leaving::default();
/// let seen = leaving.clone();
/// leaving.begin();
/// assert!(seen.has_begun());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Leaving(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_begun: AtomicBool,
    begun: Notify,
}

impl Leaving {
    /// From now on readiness fails and connections end with their next answer.
    ///
    /// ```
    /// agentcfg_server::Leaving::default().begin();
    /// ```
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::SeqCst);
        self.0.begun.notify_waiters();
    }

    /// Whether it has begun.
    ///
    /// ```
    /// assert!(!agentcfg_server::Leaving::default().has_begun());
    /// ```
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Relaxed)
    }

    /// Resolves once it has begun.
    ///
    /// ```
    /// # use agentcfg_server::Leaving;
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let leaving = Leaving::default();
    /// leaving.begin();
    /// leaving.begun().await;
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn begun(&self) {
        let mut begun = pin!(self.0.begun.notified());
        begun.as_mut().enable();
        if !self.0.has_begun.load(Ordering::SeqCst) {
            begun.await;
        }
    }
}
