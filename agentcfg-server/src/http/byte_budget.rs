//! Budgets of the memory that request bodies and answers take, in total and for each caller.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use agentcfg_core::service::AnswerBudget;
use agentcfg_core::sync::lock;
use agentcfg_core::{Caller, Error, ErrorKind};
use bytes::Bytes;

use crate::http::errors::Failure;

/// The longest body that is not counted. The read buffer of a connection is as long, so `max_connections` bounds these
/// bodies.
pub const SMALL_BODY: usize = 16 << 10;

/// The longest answer that is not counted.
pub const SMALL_ANSWER: usize = 64 << 10;

/// Bytes that an answer of unknown length counts as. A longer piece counts in full while it is held.
const STREAMED_ANSWER: usize = 4 << 20;

/// A budget of bytes in flight: of the request bodies that are being received or whose calls have not ended, or of the
/// answers that their clients have not read.
///
/// A body of a declared length takes its share before the first byte is read, and a body of unknown length as its bytes
/// arrive. An answer takes its share once its length is known, and a long one also while it is made; texts that answers
/// share are not counted. What does not fit is refused at once: a queue would hold connections and credentials instead.
/// Clones share the budget.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    server: usize,
    caller: usize,
    /// Used in error messages.
    label: &'static str,
    held: Arc<Mutex<AllHeld>>,
}

#[derive(Debug, Default)]
struct AllHeld {
    total: usize,
    /// What each caller holds that holds some.
    callers: HashMap<String, CallerUsage>,
    /// The callers that hold nothing and whose answer was refused when a part of it was made. Until there is room for a
    /// long one, the next one is refused before.
    refused: HashSet<String>,
}

#[derive(Debug, Default)]
struct CallerUsage {
    bytes: usize,
    /// The longest answer of the caller since it held none: the next one is taken to be as long, so that no work is
    /// lost on one that does not fit.
    longest: usize,
}

impl AllHeld {
    fn take(&mut self, caller: &str, bytes: usize) {
        self.total += bytes;
        self.callers.entry(caller.to_owned()).or_default().bytes += bytes;
    }

    fn give_back(&mut self, caller: &str, bytes: usize) {
        self.total -= bytes;
        if let Some(of_caller) = self.callers.get_mut(caller) {
            of_caller.bytes -= bytes;
            if of_caller.bytes == 0 {
                self.callers.remove(caller);
            }
        }
    }
}

impl ByteBudget {
    /// The default for all callers together, in MiB, of bodies.
    pub const SERVER_MB: usize = 256;

    /// The same of answers. While they are made they take memory beyond their text.
    pub const SERVER_ANSWERS_MB: usize = 128;

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

    fn of(label: &'static str, server: usize, caller: usize) -> Self {
        Self {
            server,
            caller,
            label,
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
    /// 429 beyond the budget of the caller, 503 beyond that of the server. An answer that is longer than a whole budget
    /// goes alone.
    pub(crate) fn answer(&self, caller: String, length: usize) -> Result<HeldBytes, Failure> {
        self.add(&caller, length, true)?;
        if let Some(of_caller) = lock(&self.held).callers.get_mut(&caller) {
            of_caller.longest = of_caller.longest.max(length);
        }
        Ok(HeldBytes {
            budget: self.clone(),
            caller,
            bytes: length,
        })
    }

    /// Takes the share of an answer that is streamed and whose first piece has this length.
    ///
    /// # Errors
    ///
    /// As [`Self::answer`].
    pub(crate) fn streamed(&self, caller: String, piece: usize) -> Result<HeldBytes, Failure> {
        self.check_streamed(&caller, STREAMED_ANSWER.max(piece))?;
        self.answer(caller, STREAMED_ANSWER.max(piece))
    }

    /// Refuses an answer that may be streamed before it is made, of which `made` bytes are. To a caller that has not
    /// read others, or was refused one since there was room, it is refused as if it were long; to any other caller once
    /// there is no room for what is made.
    ///
    /// # Errors
    ///
    /// As [`Self::answer`].
    pub(crate) fn check_streamed(&self, caller: &str, made: usize) -> Result<(), Failure> {
        let mut held = lock(&self.held);
        let of_caller = held.callers.get(caller).map_or(0, |of_caller| of_caller.bytes);
        if of_caller == 0 && made <= SMALL_ANSWER && !held.refused.contains(caller) {
            return Ok(());
        }
        let more = match of_caller {
            0 if made > SMALL_ANSWER => made,
            _ => STREAMED_ANSWER.max(made),
        };
        let checked = self.check(&held, of_caller, more, true);
        match &checked {
            Ok(()) => held.refused.remove(caller),
            Err(_) => of_caller == 0 && held.refused.insert(caller.to_owned()),
        };
        Ok(checked?)
    }

    fn add(&self, caller: &str, more: usize, may_go_alone: bool) -> Result<(), Error> {
        let mut held = lock(&self.held);
        let of_caller = held.callers.get(caller).map_or(0, |of_caller| of_caller.bytes);
        self.check(&held, of_caller, more, may_go_alone)?;
        held.take(caller, more);
        Ok(())
    }

    /// Whether more bytes of a caller that holds so many fit.
    fn check(&self, held: &AllHeld, of_caller: usize, more: usize, may_go_alone: bool) -> Result<(), Error> {
        let fits = |held: usize, limit: usize| held + more <= limit || may_go_alone && held == 0;
        if !fits(of_caller, self.caller) {
            return Err(Error::new(
                ErrorKind::TooManyRequests,
                format!(
                    "your {} in flight must be at most {} bytes together",
                    self.label, self.caller
                ),
            ));
        }
        if !fits(held.total, self.server) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the server holds as many bytes of {} as it may", self.label),
            ));
        }
        Ok(())
    }
}

impl AnswerBudget for ByteBudget {
    fn begin(&self, caller: &Caller) -> Result<Box<dyn Send + Sync>, Error> {
        let caller = holder(caller);
        let longest = lock(&self.held)
            .callers
            .get(&caller)
            .map_or(0, |of_caller| of_caller.longest);
        let bytes = STREAMED_ANSWER.max(longest);
        self.add(&caller, bytes, true)?;
        let budget = self.clone();
        Ok(Box::new(HeldBytes { budget, caller, bytes }))
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
    /// Gives back what is beyond this length.
    pub(crate) fn shrink(&mut self, length: usize) {
        let Some(less) = self.bytes.checked_sub(length) else {
            return;
        };
        self.bytes = length;
        lock(&self.budget.held).give_back(&self.caller, less);
    }

    /// Counts the next piece of a streamed answer. It is not refused, because the answer has begun.
    pub(crate) fn next_piece(&mut self, length: usize) {
        let length = STREAMED_ANSWER.max(length);
        if let Some(more) = length.checked_sub(self.bytes) {
            lock(&self.budget.held).take(&self.caller, more);
            self.bytes = length;
        }
        self.shrink(length);
    }

    /// The text of the answer, which holds the share until the connection has taken all of it.
    pub(crate) fn hold(self, text: Bytes) -> Bytes {
        Bytes::from_owner(HeldText { text, _share: self })
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        lock(&self.budget.held).give_back(&self.caller, self.bytes);
    }
}

/// The name of a caller in the limits of bodies, answers and streams.
pub(crate) fn holder(caller: &Caller) -> String {
    let actor = caller.actor();
    format!("{} {}", actor.kind, actor.id)
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

#[cfg(test)]
mod tests {
    use agentcfg_core::AgentCfg;
    use agentcfg_core::store::MemoryStore;

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
        let held = lock(&budget.held);
        assert!(held.total == 0 && held.callers.is_empty(), "{held:?}");
    }

    #[test]
    fn a_long_answer_takes_a_share_before_it_is_made() {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let (ada, bob) = (
            service.trusted_user("ada").unwrap(),
            service.trusted_user("bob").unwrap(),
        );
        let budget = ByteBudget::of_answers(30 << 20, 20 << 20);
        let begun = budget.begin(&ada).unwrap();
        assert_eq!(lock(&budget.held).total, STREAMED_ANSWER);
        drop(begun);
        // The next one is taken to be as long as the longest that the caller holds.
        let unread = budget.answer(holder(&ada), 11 << 20).unwrap();
        let refused = Failure::from(budget.begin(&ada).err().unwrap());
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(1)));
        let others = budget.answer("eve".into(), 17 << 20).unwrap();
        let refused = Failure::from(budget.begin(&bob).err().unwrap());
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(1)));
        drop((unread, others));
        assert!(budget.begin(&ada).is_ok());
        assert_eq!(lock(&budget.held).total, 0);
    }

    #[test]
    fn a_share_shrinks_to_the_length_of_the_answer() {
        let budget = ByteBudget::of_answers(250_000, 100_000);
        let mut share = budget.answer("ada".into(), 90_000).unwrap();
        share.shrink(95_000);
        share.shrink(40_000);
        assert_eq!(lock(&budget.held).total, 40_000);
        drop(share);
        assert_eq!(lock(&budget.held).total, 0);
    }

    #[test]
    fn a_streamed_answer_counts_as_its_longest_piece_in_memory() {
        let budget = ByteBudget::of_answers(32 << 20, 16 << 20);
        let mut streamed = budget.streamed("ada".into(), 6 << 20).unwrap();
        let failure = budget.streamed("ada".into(), 11 << 20).unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.retry_after), (429, Some(1)));
        assert!(budget.check_streamed("ada", 0).is_ok() && budget.check_streamed("bob", 0).is_ok());
        let more = budget.streamed("ada".into(), 7 << 20).unwrap();
        assert_eq!(budget.check_streamed("ada", 0).unwrap_err().status, 429);
        drop(more);
        streamed.next_piece(1 << 20);
        assert_eq!(lock(&budget.held).total, STREAMED_ANSWER);
        streamed.next_piece(40 << 20);
        assert_eq!(budget.streamed("bob".into(), 0).unwrap_err().status, 503);
        // What eve asks for may be short, until it is not. The next one is refused before, as is that of bob.
        assert!(budget.check_streamed("eve", SMALL_ANSWER).is_ok());
        assert_eq!(budget.check_streamed("eve", SMALL_ANSWER + 1).unwrap_err().status, 503);
        assert_eq!(budget.check_streamed("eve", 0).unwrap_err().status, 503);
        assert_eq!(budget.check_streamed("bob", 0).unwrap_err().status, 503);
        drop(streamed);
        assert_eq!(lock(&budget.held).total, 0);
        assert!(budget.check_streamed("eve", 0).is_ok() && budget.check_streamed("bob", 0).is_ok());
        assert!(lock(&budget.held).refused.is_empty());
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
        assert_eq!(lock(&budget.held).total, 0);
    }
}
