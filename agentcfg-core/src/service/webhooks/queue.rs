//! The queue of one webhook's events and the decision after each attempt, as pure code without storage and network.

use std::collections::BTreeMap;

use crate::clock::{Entropy, EntropyError};
use crate::model::{DisabledReason, Timestamp};
use crate::service::records::{Pending, Previous, WebhookState};
use crate::webhook::{DeliveryAnswer, LAST_ATTEMPT, disables_at, pause};

/// The greatest number of events in flight for one webhook.
const MAX_IN_FLIGHT: usize = 16;

/// The greatest number of events that wait for their next attempt. At this number no further events are read: the
/// receiver fails, and the log keeps them.
const MAX_PENDING: usize = 256;

/// From how many milliseconds for an answer on a receiver is slow.
const SLOW: i64 = 1_000;

/// The events of one webhook that were read and are neither delivered nor given up.
///
/// The number of events in flight starts at one, doubles with each success and falls to one with a failure, so a
/// receiver that is down costs one attempt at a time.
pub(super) struct Queue {
    created: u64,
    position: u64,
    previous: Previous,
    items: BTreeMap<u64, Item>,
    in_flight: usize,
    window: usize,
    failing_since: Option<Timestamp>,
    is_slow: bool,
}

struct Item {
    pending: Pending,
    in_flight: bool,
}

/// The decision after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AttemptVerdict {
    /// The number of the attempt.
    pub(super) attempt: u32,
    /// When the next attempt is due, if there is one.
    pub(super) next_at: Option<Timestamp>,
    /// Whether the event is given up.
    pub(super) is_given_up: bool,
    /// Why the webhook must be disabled, if it must.
    pub(super) disable: Option<DisabledReason>,
}

impl Queue {
    /// The queue of a stored state. Events that were in flight are due again.
    pub(super) fn of(state: &WebhookState) -> Self {
        let item = |pending: &Pending| Item {
            pending: *pending,
            in_flight: false,
        };
        Self {
            created: state.created,
            position: state.position,
            previous: state.previous,
            items: state
                .pending
                .iter()
                .map(|pending| (pending.revision, item(pending)))
                .collect(),
            in_flight: 0,
            window: 1,
            failing_since: state.failing_since,
            is_slow: state.is_slow,
        }
    }

    /// The state to store. Events in flight are pending in it.
    pub(super) fn state(&self, recorded: u64, lease: Option<Box<str>>) -> WebhookState {
        WebhookState {
            created: self.created,
            position: self.position,
            previous: self.previous,
            pending: self.items.values().map(|item| item.pending).collect(),
            failing_since: self.failing_since,
            is_slow: self.is_slow,
            recorded,
            lease,
        }
    }

    /// The last revision that was read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Whether the event before the position must be searched in the log.
    pub(super) fn lacks_previous(&self) -> bool {
        self.previous == Previous::Unknown
    }

    pub(super) fn set_previous(&mut self, previous: Previous) {
        self.previous = previous;
    }

    /// Whether all recent attempts have failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Whether the receiver fails, or took long for its last answer.
    pub(super) fn is_late(&self) -> bool {
        self.is_failing() || self.is_slow
    }

    /// Whether another attempt may begin now.
    pub(super) fn has_room(&self, ordered: bool) -> bool {
        let window = if ordered || self.is_failing() { 1 } else { self.window };
        self.in_flight < window
    }

    /// The first event that is due, if there is one. With `ordered` only the first of all can be.
    pub(super) fn first_due(&self, ordered: bool, now: Timestamp) -> Option<Pending> {
        let candidates = if ordered { 1 } else { usize::MAX };
        let mut items = self.items.values().take(candidates);
        let due = items.find(|item| !item.in_flight && item.pending.next_at <= now);
        due.map(|item| item.pending)
    }

    /// Takes an event, for an attempt that begins.
    pub(super) fn take(&mut self, revision: u64) {
        if let Some(item) = self.items.get_mut(&revision)
            && !item.in_flight
        {
            item.in_flight = true;
            self.in_flight += 1;
        }
    }

    /// Whether an event is due.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.items
            .values()
            .any(|item| !item.in_flight && item.pending.next_at <= now)
    }

    /// Whether further events may be read from the log.
    pub(super) fn may_read(&self, ordered: bool) -> bool {
        if ordered {
            self.items.is_empty()
        } else {
            self.items.len() < MAX_PENDING
        }
    }

    /// Moves the position past a log entry that is no event for this webhook.
    pub(super) fn skip(&mut self, revision: u64) {
        self.position = revision;
    }

    /// Moves the position to an event of this webhook, which is due now.
    pub(super) fn push(&mut self, revision: u64, now: Timestamp) -> Pending {
        let pending = Pending {
            revision,
            previous: self.previous.revision(),
            attempts: 0,
            next_at: now,
        };
        let item = Item {
            pending,
            in_flight: false,
        };
        self.items.insert(revision, item);
        self.position = revision;
        if revision > self.created {
            self.previous = Previous::Revision(revision);
        }
        pending
    }

    /// Removes an event whose log entry is gone.
    pub(super) fn forget(&mut self, revision: u64) {
        if self.items.remove(&revision).is_some_and(|item| item.in_flight) {
            self.in_flight -= 1;
        }
    }

    /// Decides what follows from the end of an attempt that began at `at`.
    pub(super) fn finish(
        &mut self,
        revision: u64,
        answer: &DeliveryAnswer,
        at: Timestamp,
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Result<AttemptVerdict, EntropyError> {
        let Some(item) = self.items.get_mut(&revision) else {
            return Ok(AttemptVerdict::done(1));
        };
        item.in_flight = false;
        self.in_flight -= 1;
        self.is_slow = now.unix_millis() - at.unix_millis() > SLOW;
        item.pending.attempts += 1;
        let attempt = item.pending.attempts;
        if answer.is_success() {
            self.items.remove(&revision);
            self.failing_since = None;
            self.window = (2 * self.window).min(MAX_IN_FLIGHT);
            return Ok(AttemptVerdict::done(attempt));
        }
        self.window = 1;
        let failing_since = *self.failing_since.get_or_insert(at);
        if answer.status == Some(410) {
            item.pending.next_at = now;
            return Ok(AttemptVerdict {
                disable: Some(DisabledReason::Gone),
                ..AttemptVerdict::done(attempt)
            });
        }
        let disable = (now >= disables_at(failing_since)).then_some(DisabledReason::Failing);
        if attempt >= LAST_ATTEMPT {
            self.items.remove(&revision);
            return Ok(AttemptVerdict {
                is_given_up: true,
                disable,
                ..AttemptVerdict::done(attempt)
            });
        }
        let next_at = now.plus_millis(pause(attempt, answer.retry_after.as_deref(), now, entropy)?);
        item.pending.next_at = next_at;
        Ok(AttemptVerdict {
            next_at: disable.is_none().then_some(next_at),
            disable,
            ..AttemptVerdict::done(attempt)
        })
    }
}

impl AttemptVerdict {
    fn done(attempt: u32) -> Self {
        Self {
            attempt,
            next_at: None,
            is_given_up: false,
            disable: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    const START: &str = "2026-11-20T09:30:00Z";

    fn at(seconds: i64) -> Timestamp {
        START.parse::<Timestamp>().unwrap().plus_millis(seconds * 1000)
    }

    fn queue() -> Queue {
        Queue::of(&WebhookState {
            created: 3,
            position: 3,
            previous: Previous::None,
            pending: Vec::new(),
            failing_since: None,
            is_slow: false,
            recorded: 0,
            lease: None,
        })
    }

    fn answer(status: u16) -> DeliveryAnswer {
        DeliveryAnswer {
            status: Some(status),
            ..DeliveryAnswer::default()
        }
    }

    /// Takes the first event that is due.
    fn take_due(queue: &mut Queue, ordered: bool, now: Timestamp) -> Option<Pending> {
        let due = queue.first_due(ordered, now)?;
        queue.take(due.revision);
        Some(due)
    }

    fn attempt(queue: &mut Queue, seconds: i64, status: u16) -> AttemptVerdict {
        let taken = take_due(queue, false, at(seconds)).unwrap();
        let now = at(seconds);
        queue
            .finish(taken.revision, &answer(status), now, now, &SystemEntropy)
            .unwrap()
    }

    #[test]
    fn the_window_grows_with_successes_and_falls_with_a_failure() {
        let mut queue = queue();
        let mut widths = Vec::new();
        for revision in 4..104 {
            queue.push(revision, at(0));
        }
        for _ in 0..6 {
            let mut taken = Vec::new();
            while queue.has_room(false) {
                taken.push(take_due(&mut queue, false, at(0)).unwrap().revision);
            }
            widths.push(taken.len());
            queue
                .finish(taken[0], &answer(200), at(0), at(0), &SystemEntropy)
                .unwrap();
            for revision in &taken[1..] {
                queue.items.get_mut(revision).unwrap().in_flight = false;
                queue.in_flight -= 1;
            }
        }
        assert_eq!(widths, [1, 2, 4, 8, 16, 16]);
        assert!(queue.has_room(false) && queue.has_room(true));
        assert_eq!(attempt(&mut queue, 0, 500).attempt, 1);
        take_due(&mut queue, false, at(0)).unwrap();
        assert!(!queue.has_room(false), "one at a time while the receiver fails");
    }

    #[test]
    fn an_ordered_event_waits_for_the_one_before() {
        let mut queue = queue();
        queue.push(5, at(0));
        assert!(!queue.may_read(true));
        assert_eq!(take_due(&mut queue, true, at(0)).unwrap().revision, 5);
        queue.finish(5, &answer(500), at(0), at(0), &SystemEntropy).unwrap();
        assert!(!queue.may_read(true));
        assert_eq!(take_due(&mut queue, true, at(1)), None);
        assert_eq!(take_due(&mut queue, true, at(6)).unwrap().revision, 5);
        queue.finish(5, &answer(204), at(6), at(6), &SystemEntropy).unwrap();
        assert!(queue.may_read(true));
    }

    #[test]
    fn previous_revisions_count_from_the_creation_on() {
        let mut queue = queue();
        queue.skip(4);
        queue.push(5, at(0));
        queue.skip(6);
        queue.push(7, at(0));
        let previous: Vec<_> = queue.items.values().map(|item| item.pending.previous).collect();
        assert_eq!(previous, [None, Some(5)]);
        // After a replay from the start.
        let mut replayed = Queue::of(&WebhookState {
            position: 0,
            ..queue.state(0, None)
        });
        replayed.items.clear();
        replayed.set_previous(Previous::None);
        for revision in [2, 3, 5, 7] {
            replayed.push(revision, at(0));
        }
        let previous: Vec<_> = replayed.items.values().map(|item| item.pending.previous).collect();
        assert_eq!(previous, [None, None, None, Some(5)]);
    }

    #[test]
    fn an_event_is_given_up_after_ten_attempts_and_a_webhook_after_five_days() {
        let mut queue = queue();
        queue.push(4, at(0));
        let mut now = 0;
        for number in 1..=9 {
            let verdict = attempt(&mut queue, now, 503);
            assert_eq!(
                (verdict.attempt, verdict.is_given_up, verdict.disable),
                (number, false, None)
            );
            let next = verdict.next_at.unwrap();
            assert_eq!(take_due(&mut queue, false, next.plus_millis(-1)), None);
            now = (next.unix_millis() - at(0).unix_millis()) / 1000 + 1;
        }
        let last = attempt(&mut queue, now, 503);
        assert_eq!((last.attempt, last.is_given_up, last.next_at), (10, true, None));
        assert_eq!(queue.state(0, None).pending, []);
        assert!((240_000..300_000).contains(&now), "about three days: {now} s");
        // The next event fails as well.
        queue.push(5, at(now));
        assert_eq!(attempt(&mut queue, now, 500).disable, None);
        let late = 5 * 86_400;
        let verdict = attempt(&mut queue, late, 500);
        assert_eq!(
            (verdict.disable, verdict.next_at),
            (Some(DisabledReason::Failing), None)
        );
    }

    #[test]
    fn a_success_ends_the_failing_time() {
        let mut queue = queue();
        queue.push(4, at(0));
        queue.push(5, at(0));
        attempt(&mut queue, 0, 500);
        assert!(queue.is_failing());
        attempt(&mut queue, 1, 200);
        assert!(!queue.is_failing());
        let verdict = attempt(&mut queue, 6 * 86_400, 500);
        assert_eq!(verdict.disable, None);
    }

    #[test]
    fn a_receiver_is_late_while_it_fails_or_answers_slowly() {
        let mut queue = queue();
        for revision in 4..8 {
            queue.push(revision, at(0));
        }
        let mut finish = |revision, status, seconds| {
            let (began, ended) = (at(0), at(seconds));
            queue.take(revision);
            queue
                .finish(revision, &answer(status), began, ended, &SystemEntropy)
                .unwrap();
            (queue.is_late(), Queue::of(&queue.state(0, None)).is_late())
        };
        assert_eq!(finish(4, 200, 1), (false, false));
        assert_eq!(finish(5, 200, 2), (true, true));
        assert_eq!(finish(6, 200, 0), (false, false));
        assert_eq!(finish(7, 500, 0), (true, true));
    }

    #[test]
    fn gone_keeps_the_event() {
        let mut queue = queue();
        queue.push(4, at(0));
        let verdict = attempt(&mut queue, 2, 410);
        assert_eq!((verdict.disable, verdict.next_at), (Some(DisabledReason::Gone), None));
        let state = queue.state(1, None);
        assert_eq!(
            (state.pending[0].revision, state.pending[0].attempts, state.confirmed()),
            (4, 1, 3)
        );
        assert!(queue.is_due(at(2)));
    }

    #[test]
    fn what_is_in_flight_is_pending_in_the_stored_state() {
        let mut queue = queue();
        for revision in 4..10 {
            queue.push(revision, at(0));
        }
        take_due(&mut queue, false, at(0)).unwrap();
        let state = queue.state(0, None);
        assert_eq!((state.pending.len(), state.position, state.confirmed()), (6, 9, 3));
        assert_eq!(take_due(&mut Queue::of(&state), false, at(0)).unwrap().revision, 4);
    }
}
