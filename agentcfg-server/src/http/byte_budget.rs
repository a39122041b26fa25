//! Budgets of the memory that request bodies and answers take, in total and for each caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::http::errors::Failure;

/// The longest body that is not counted. The read buffer of a connection is as long, so `max_connections` bounds these
/// bodies.
pub const SMALL_BODY: usize = 16 << 10;

/// The longest answer that is not counted.
pub const SMALL_ANSWER: usize = 64 << 10;

/// What a streamed answer counts as: its pieces are made one after the other, and most are shorter.
const STREAMED_ANSWER: usize = 4 << 20;

/// A budget of bytes in flight: of the request bodies that are being received or whose calls have not ended, or of the answers
/// that their clients have not read.
///
/// A body of a declared length takes its share before the first byte is read, and a body of unknown length as its bytes
/// arrive. An answer takes its share once its length is known; texts that answers share are not counted. What does not fit is
/// refused at once: a queue would hold connections and credentials instead. Clones share the budget.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    server: usize,
    caller: usize,
    /// What the bytes are of, for messages.
    of: &'static str,
    held: Arc<Mutex<AllHeld>>,
}

#[derive(Debug, Default)]
struct AllHeld {
    total: usize,
    /// The bytes of each caller that holds some.
    callers: HashMap<String, usize>,
}

impl ByteBudget {
    /// The default for all callers together, in MiB, of bodies and of answers.
    pub const SERVER_MB: usize = 256;

    /// The default for each caller, in MiB, of bodies and of answers.
    pub const CALLER_MB: usize = 64;

    /// A budget of request bodies with limits in bytes: for all callers together, and for each.
    ///
    /// ```
    /// use agentcfg_server::ByteBudget;
    /// let budget = ByteBudget::of_bodies(64 << 20, 16 << 20);
    /// ```
    pub fn of_bodies(server: usize, caller: usize) -> Self {
        Self::of("request bodies", server, caller)
    }

    /// A budget of answers with limits in bytes: for all callers together, and for each.
    ///
    /// ```
    /// use agentcfg_server::ByteBudget;
    /// let budget = ByteBudget::of_answers(64 << 20, 16 << 20);
    /// ```
    pub fn of_answers(server: usize, caller: usize) -> Self {
        Self::of("unread answers", server, caller)
    }

    fn of(of: &'static str, server: usize, caller: usize) -> Self {
        Self {
            server,
            caller,
            of,
            held: Arc::default(),
        }
    }

    /// An empty share for one request. `caller` gives the name of the caller when the share grows.
    pub(crate) fn share<'a>(&'a self, caller: &'a (dyn Fn() -> String + Sync)) -> Share<'a> {
        Share {
            budget: self,
            name: caller,
            held: None,
        }
    }

    /// Takes the share of an answer of this length.
    ///
    /// # Errors
    ///
    /// 429 beyond the budget of the caller, 503 beyond that of the server. An answer that is longer than a whole budget goes alone.
    pub(crate) fn answer(&self, caller: String, length: usize) -> Result<HeldBytes, Failure> {
        self.add(&caller, length, true)?;
        Ok(HeldBytes {
            budget: self.clone(),
            caller,
            bytes: length,
        })
    }

    /// Takes the share of an answer that is streamed.
    ///
    /// # Errors
    ///
    /// As [`Self::answer`].
    pub(crate) fn streamed(&self, caller: String) -> Result<HeldBytes, Failure> {
        self.answer(caller, STREAMED_ANSWER)
    }

    fn add(&self, caller: &str, more: usize, may_go_alone: bool) -> Result<(), Failure> {
        let mut held = self.held();
        let of_caller = held.callers.get(caller).copied().unwrap_or_default();
        let fits = |held: usize, limit: usize| held + more <= limit || may_go_alone && held == 0;
        if !fits(of_caller, self.caller) {
            return Err(refused(Failure::too_many_requests(format!(
                "your {} in flight must be at most {} bytes together",
                self.of, self.caller
            ))));
        }
        if !fits(held.total, self.server) {
            return Err(refused(Failure::unavailable(format!(
                "the server holds as many bytes of {} as it may",
                self.of
            ))));
        }
        held.total += more;
        *held.callers.entry(caller.to_owned()).or_default() += more;
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, AllHeld> {
        // After a panic elsewhere the sums are still right: each change is one addition or one subtraction.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that one request holds, until the share is dropped.
pub(crate) struct Share<'a> {
    budget: &'a ByteBudget,
    name: &'a (dyn Fn() -> String + Sync),
    held: Option<HeldBytes>,
}

impl Share<'_> {
    /// Takes what a body of this length needs.
    ///
    /// # Errors
    ///
    /// 429 beyond the budget of the caller, 503 beyond that of the server.
    pub(crate) fn fit(&mut self, length: usize) -> Result<(), Failure> {
        let bytes = self.held.as_ref().map_or(0, |held| held.bytes);
        if length <= SMALL_BODY.max(bytes) {
            return Ok(());
        }
        let held = self.held.get_or_insert_with(|| HeldBytes {
            budget: self.budget.clone(),
            caller: (self.name)(),
            bytes: 0,
        });
        self.budget.add(&held.caller, length - bytes, false)?;
        held.bytes = length;
        Ok(())
    }
}

/// Bytes of one caller in a budget, until they are dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: ByteBudget,
    caller: String,
    bytes: usize,
}

impl HeldBytes {
    /// The text of the answer, which holds the share until the connection has taken all of it.
    pub(crate) fn hold(self, text: Bytes) -> Bytes {
        Bytes::from_owner(HeldText { text, _share: self })
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.total -= self.bytes;
        if let Entry::Occupied(mut known) = held.callers.entry(std::mem::take(&mut self.caller)) {
            *known.get_mut() -= self.bytes;
            if *known.get() == 0 {
                known.remove();
            }
        }
    }
}

struct HeldText {
    text: Bytes,
    _share: HeldBytes,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// Other bodies and answers end soon, so a retry makes sense.
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
        let budget = ByteBudget::of_bodies(250_000, 100_000);
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

    #[test]
    fn an_answer_holds_its_bytes_until_it_is_read() {
        let budget = ByteBudget::of_answers(250_000, 100_000);
        let text = budget
            .answer("ada".into(), 90_000)
            .unwrap()
            .hold(Bytes::from_static(b"[]"));
        let unread = text.slice(1..);
        drop(text);
        assert_eq!(budget.answer("ada".into(), 90_000).unwrap_err().status, 429);
        drop(unread);
        let all = budget.answer("ada".into(), 300_000).unwrap();
        let failure = budget.answer("bob".into(), 1).unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.retry_after), (503, Some(1)));
        drop(all);
        assert_eq!(budget.held().total, 0);
    }
}
