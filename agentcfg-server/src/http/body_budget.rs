//! The budget of the memory for request bodies, in total and for each caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::errors::Failure;

/// The longest body that is not counted. The read buffer of a connection is as long, so `max_connections` bounds these
/// bodies.
pub const SMALL_BODY: usize = 16 << 10;

/// The budget of request bodies in flight: those that are being received, and those whose calls have not ended.
///
/// A body of a declared length takes its share before the first byte is read, and a body of unknown length as its bytes
/// arrive. What does not fit is refused at once: a queue would hold connections and credentials instead. Clones share
/// the budget.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    server: usize,
    caller: usize,
    held: Arc<Mutex<AllHeld>>,
}

#[derive(Debug, Default)]
struct AllHeld {
    total: usize,
    /// The bytes of each caller that holds some.
    callers: HashMap<String, usize>,
}

impl Default for BodyBudget {
    /// With [`Self::SERVER_MB`] and [`Self::CALLER_MB`].
    fn default() -> Self {
        Self::new(Self::SERVER_MB << 20, Self::CALLER_MB << 20)
    }
}

impl BodyBudget {
    /// The default for all callers together, in MiB.
    pub const SERVER_MB: usize = 256;

    /// The default for each caller, in MiB.
    pub const CALLER_MB: usize = 64;

    /// A budget with limits in bytes: for all callers together, and for each.
    ///
    /// ```
    /// use agentcfg_server::BodyBudget;
    /// let budget = BodyBudget::new(64 << 20, 16 << 20);
    /// ```
    pub fn new(server: usize, caller: usize) -> Self {
        Self {
            server,
            caller,
            held: Arc::default(),
        }
    }

    /// An empty share for one request. `caller` gives the name of the caller when the share grows.
    pub(crate) fn share<'a>(&'a self, caller: &'a (dyn Fn() -> String + Sync)) -> Share<'a> {
        Share {
            budget: self,
            name: caller,
            caller: None,
            bytes: 0,
        }
    }

    fn held(&self) -> MutexGuard<'_, AllHeld> {
        // After a panic elsewhere the sums are still right: each change is one addition or one subtraction.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that one request holds, until the share is dropped.
pub(crate) struct Share<'a> {
    budget: &'a BodyBudget,
    name: &'a (dyn Fn() -> String + Sync),
    caller: Option<String>,
    bytes: usize,
}

impl Share<'_> {
    /// Takes what a body of this length needs.
    ///
    /// # Errors
    ///
    /// 429 beyond the budget of the caller, 503 beyond that of the server.
    pub(crate) fn fit(&mut self, length: usize) -> Result<(), Failure> {
        if length <= SMALL_BODY.max(self.bytes) {
            return Ok(());
        }
        let more = length - self.bytes;
        let caller = self.caller.get_or_insert_with(self.name);
        let mut held = self.budget.held();
        let of_caller = held.callers.get(caller).copied().unwrap_or_default();
        if of_caller + more > self.budget.caller {
            return Err(refused(Failure::too_many_requests(format!(
                "the bodies of your requests in flight must be at most {} bytes together",
                self.budget.caller
            ))));
        }
        if held.total + more > self.budget.server {
            return Err(refused(Failure::unavailable(
                "the server holds as many bytes of request bodies as it may",
            )));
        }
        held.total += more;
        match held.callers.entry(caller.clone()) {
            Entry::Occupied(mut known) => *known.get_mut() += more,
            Entry::Vacant(new) => drop(new.insert(more)),
        }
        self.bytes = length;
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let Some(caller) = self.caller.take().filter(|_| self.bytes > 0) else {
            return;
        };
        let mut held = self.budget.held();
        held.total -= self.bytes;
        if let Entry::Occupied(mut known) = held.callers.entry(caller) {
            *known.get_mut() -= self.bytes;
            if *known.get() == 0 {
                known.remove();
            }
        }
    }
}

/// Other bodies end soon, so a retry makes sense.
fn refused(failure: Failure) -> Failure {
    Failure {
        retry_after: Some(1),
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &'static str) -> impl Fn() -> String + Sync {
        || name.to_owned()
    }

    #[test]
    fn callers_and_the_server_have_a_limit_that_ends_with_the_calls() {
        let budget = BodyBudget::new(250_000, 100_000);
        let (ada, bob, eve) = (name("ada"), name("bob"), name("eve"));
        let mut first = budget.share(&ada);
        first.fit(60_000).unwrap();
        first.fit(100_000).unwrap();
        let mut second = budget.share(&ada);
        let failure = second.fit(SMALL_BODY + 1).unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.retry_after), (429, Some(1)));
        second.fit(SMALL_BODY).unwrap();

        let mut third = budget.share(&bob);
        third.fit(100_000).unwrap();
        let mut fourth = budget.share(&eve);
        fourth.fit(50_000).unwrap();
        let failure = fourth.fit(50_001).unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.retry_after), (503, Some(1)));

        drop(first);
        fourth.fit(100_000).unwrap();
        second.fit(50_000).unwrap();
        drop((second, third, fourth));
        let held = budget.held();
        assert!(held.total == 0 && held.callers.is_empty(), "{held:?}");
    }
}
