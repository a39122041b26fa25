//! The queues of a [`Combiner`](super::combine::Combiner), as a state machine without tasks and clocks.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// The bounds of queues and groups; the [module's text](super) has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of requests in a group, at least 1.
    pub group: usize,
    /// The greatest number of bytes in a group of several requests. A larger request is a group of its own.
    pub bytes: u64,
    /// The greatest number of requests that wait in one lane.
    pub lane: usize,
    /// The greatest number of requests that wait in all lanes.
    pub queue: usize,
    /// The greatest number of groups in flight while none is slow, at least 1. With fewer of them the groups are
    /// larger, which costs the engine less for each request; with more, a request waits less for the answer to another.
    pub flights: usize,
    /// After this time in flight a group is slow and no longer counts in `flights`. So a group that waits for a locked
    /// row, or for a slow network, does not block the groups behind it.
    pub slow: Duration,
    /// The greatest number of groups in flight, the slow ones included.
    pub most: usize,
    /// How long a request waits before it is refused. It is checked when a group is formed.
    pub queue_timeout: Duration,
}

/// A queue for each lane. The requests of one lane are in flight in at most one group, in the order of their arrival.
#[derive(Debug)]
pub(super) struct Lanes<L, T> {
    limits: Limits,
    lanes: HashMap<L, Lane<T>>,
    /// The lanes with waiting requests and none in flight; the first one waits longest.
    ready: VecDeque<L>,
    /// The groups in flight that are not slow, with the reserved one.
    flights: usize,
    /// Whether a flight is reserved whose group is not formed yet.
    reserved: bool,
    /// The slow groups in flight.
    slow: usize,
    waiting: usize,
    /// How many waiting requests end the current pause.
    refill: usize,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<(u64, T)>,
    in_flight: bool,
}

/// The result of adding a request to its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queued {
    /// The request waits for the next group.
    Waits,
    /// The request waits, and with it enough others to end the pause.
    Refilled,
}

/// Requests that run together, and the lanes that they occupy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group<L, T> {
    pub(super) lanes: Vec<L>,
    pub(super) requests: Vec<T>,
}

impl<L: Clone + Eq + Hash, T> Lanes<L, T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            flights: 0,
            reserved: false,
            slow: 0,
            waiting: 0,
            refill: 0,
        }
    }

    /// Adds a request at the end of its lane, or returns it when a queue is full.
    pub(super) fn push(&mut self, lane: L, bytes: u64, request: T) -> Result<Queued, T> {
        let known = self.lanes.get_mut(&lane);
        let length = known.as_ref().map_or(0, |lane| lane.waiting.len());
        if self.waiting >= self.limits.queue || length >= self.limits.lane {
            return Err(request);
        }
        self.waiting += 1;
        match known {
            // A lane without requests in flight is in `ready` already.
            Some(known) => known.waiting.push_back((bytes, request)),
            None => {
                self.ready.push_back(lane.clone());
                let waiting = VecDeque::from([(bytes, request)]);
                let in_flight = false;
                self.lanes.insert(lane, Lane { waiting, in_flight });
            }
        }
        Ok(match self.waiting == self.refill {
            true => Queued::Refilled,
            false => Queued::Waits,
        })
    }

    /// Begins the pause after a group of this many requests, before they are answered. It ends with the push that
    /// returns [`Queued::Refilled`]. There is none where so many others wait that those of the group hardly count.
    pub(super) fn await_refill(&mut self, size: usize) -> bool {
        self.refill = ((self.waiting + size) * 7).div_ceil(8);
        self.waiting < self.refill
    }

    /// Reserves a flight for the next group, if one may start and requests wait for it; beside no other one to an
    /// engine that is [near](super::combine::Work::is_near). [`Self::form`] forms the group, which then has the
    /// requests that arrive in between, too.
    ///
    /// Whether it is near is asked only where that decides.
    pub(super) fn reserve(&mut self, is_near: impl FnOnce() -> bool) -> bool {
        let has_room = self.flights < self.limits.flights && self.flights + self.slow < self.limits.most;
        if self.reserved || !has_room || self.ready.is_empty() || (self.flights > 0 && is_near()) {
            return false;
        }
        self.reserved = true;
        self.flights += 1;
        true
    }

    /// Forms the group of the reserved flight, or ends the reservation if no request is wanted any more. `take` returns
    /// a request, or `None` for one that is no longer wanted. Each lane gets an equal share of the group's size.
    pub(super) fn form(&mut self, mut take: impl FnMut(T) -> Option<T>) -> Option<Group<L, T>> {
        self.reserved = false;
        let share = (self.limits.group / self.ready.len().max(1)).max(1);
        let (mut bytes, mut full) = (0_u64, false);
        let mut group = Group {
            lanes: Vec::new(),
            requests: Vec::new(),
        };
        while !full && let Some(name) = self.ready.pop_front() {
            let Some(lane) = self.lanes.get_mut(&name) else {
                continue;
            };
            let before = group.requests.len();
            while !full
                && group.requests.len() - before < share
                && let Some((size, request)) = lane.waiting.pop_front()
            {
                let Some(request) = take(request) else {
                    self.waiting -= 1;
                    continue;
                };
                if !group.requests.is_empty() && bytes.saturating_add(size) > self.limits.bytes {
                    lane.waiting.push_front((size, request));
                    full = true;
                    break;
                }
                bytes = bytes.saturating_add(size);
                self.waiting -= 1;
                group.requests.push(request);
                full = group.requests.len() >= self.limits.group;
            }
            if group.requests.len() > before {
                lane.in_flight = true;
                group.lanes.push(name);
            } else if lane.waiting.is_empty() {
                self.lanes.remove(&name);
            } else {
                self.ready.push_front(name);
            }
        }
        if group.requests.is_empty() {
            self.flights -= 1;
            return None;
        }
        Some(group)
    }

    /// Notes that a group in flight has become slow.
    pub(super) fn slowed(&mut self) {
        self.flights -= 1;
        self.slow += 1;
    }

    /// Ends the flight of a group that occupied these lanes.
    pub(super) fn landed(&mut self, lanes: &[L], slow: bool) {
        *(if slow { &mut self.slow } else { &mut self.flights }) -= 1;
        for name in lanes {
            let Some(lane) = self.lanes.get_mut(name) else { continue };
            lane.in_flight = false;
            if lane.waiting.is_empty() {
                self.lanes.remove(name);
            } else {
                self.ready.push_back(name.clone());
            }
        }
    }

    /// Whether no request waits or is in flight. Then no lane is stored.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.flights + self.slow == 0 && self.waiting == 0 && self.lanes.is_empty() && self.ready.is_empty()
    }
}
