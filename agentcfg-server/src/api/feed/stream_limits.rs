//! The limits of open streams, and their end at shutdown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use agentcfg_core::sync::lock;
use tokio::sync::watch;

use crate::api::observer::Observer;
use crate::http::errors::Failure;

/// Streams of one API key or user at a time.
const PER_CALLER: u32 = 10;

/// Seconds after which a refused client may try again. This is a guess: a stream may end at any time.
const RETRY_AFTER: u32 = 5;

/// The open streams of a server: their limits, and the signal that ends them. Clones share everything.
///
/// ```
/// use agentcfg_server::Streams;
/// let streams = Streams::new(100);
/// assert_eq!(streams.open(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Streams {
    shared: Arc<StreamCounts>,
}

#[derive(Debug)]
struct StreamCounts {
    max: usize,
    open: Mutex<Open>,
    closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_caller: HashMap<Box<str>, u32>,
}

impl Default for Streams {
    /// With [`Self::DEFAULT_MAX`] streams.
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX)
    }
}

impl Streams {
    /// The default of the greatest number of open streams.
    pub const DEFAULT_MAX: usize = 5000;

    /// Allows so many streams at a time, of which each caller may have 10.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Cors, Streams};
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let app = app.with_streams(Streams::new(100));
    /// ```
    pub fn new(max: usize) -> Self {
        Self {
            shared: Arc::new(StreamCounts {
                max,
                open: Mutex::default(),
                closing: watch::Sender::new(false),
            }),
        }
    }

    /// The number of open streams.
    ///
    /// ```
    /// assert_eq!(agentcfg_server::Streams::default().open(), 0);
    /// ```
    pub fn open(&self) -> usize {
        self.lock().total
    }

    /// Ends all streams, and the waits for an event, so that a graceful shutdown need not wait for them. Later ones end
    /// at once.
    ///
    /// ```
    /// use agentcfg_server::Streams;
    /// let streams = Streams::default();
    /// // An app calls this at its shutdown, before it waits for the requests in flight.
    /// streams.close();
    /// ```
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }

    /// A receiver that becomes true when the streams must end.
    pub(in crate::api) fn closing(&self) -> watch::Receiver<bool> {
        self.shared.closing.subscribe()
    }

    /// Takes a slot for a stream of this caller.
    ///
    /// # Errors
    ///
    /// 429 when the caller, or the server, has as many as it may have.
    pub(super) fn enter(&self, caller: &str) -> Result<Slot, Failure> {
        let refused = |message: String| Failure {
            retry_after: Some(RETRY_AFTER),
            ..Failure::too_many_requests(message)
        };
        let mut open = self.lock();
        if open.by_caller.get(caller).is_some_and(|count| *count >= PER_CALLER) {
            let message = format!("at most {PER_CALLER} streams of one API key or user at a time: close one, or wait");
            return Err(refused(message));
        }
        if open.total >= self.shared.max {
            let max = self.shared.max;
            return Err(refused(format!(
                "this server has as many streams as it may have, {max}"
            )));
        }
        open.total += 1;
        *open.by_caller.entry(caller.into()).or_default() += 1;
        drop(open);
        Ok(Slot {
            shared: Arc::clone(&self.shared),
            caller: caller.into(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        lock(&self.shared.open)
    }
}

/// The slot of an open stream. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot {
    shared: Arc<StreamCounts>,
    caller: Box<str>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = lock(&self.shared.open);
        open.total = open.total.saturating_sub(1);
        if let Some(count) = open.by_caller.get_mut(&self.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_caller.remove(&self.caller);
            }
        }
    }
}

/// A slot whose stream an observer counts.
pub(super) struct ObservedSlot {
    _slot: Slot,
    observer: Option<Arc<dyn Observer>>,
}

impl ObservedSlot {
    pub(super) fn new(slot: Slot, observer: Option<Arc<dyn Observer>>) -> Self {
        if let Some(observer) = &observer {
            observer.stream_opened();
        }
        Self { _slot: slot, observer }
    }

    /// Reports an event, with the time since its commit.
    pub(super) fn sent(&self, lag: Duration) {
        if let Some(observer) = &self.observer {
            observer.event_sent(lag);
        }
    }
}

impl Drop for ObservedSlot {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer.stream_closed();
        }
    }
}
