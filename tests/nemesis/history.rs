//! What the clients did and saw, and what is stored at the end.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One request of a client.
#[derive(Debug, Clone)]
pub struct Op {
    /// A number from before the request was sent.
    pub begin: u64,
    /// A number from after the answer. An operation whose `end` is below the `begin` of another one came before it.
    pub end: u64,
    pub action: Action,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Creates an agent that no other client creates.
    Create { agent: String },
    /// Creates an agent in the workspace whose plan has a limit.
    Claim { agent: String },
    /// Deletes an agent of that workspace.
    Release { agent: String },
    /// Lists that workspace.
    Count,
    /// Replaces a register's value if it still has this version.
    Write {
        register: String,
        value: String,
        basis: u64,
    },
    /// Reads a register.
    Read { register: String },
    /// Uses an API key.
    Use { key: String },
    /// Revokes an API key.
    Revoke { key: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done(Seen),
    /// The answer says that nothing was changed, and has this status.
    Refused(u16),
    /// It may have been done: the connection broke, or the answer says so.
    Unknown,
    /// There was no answer within a minute.
    Hung,
}

/// What a successful answer shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The version of the register.
    pub version: u64,
    /// The value of the register.
    pub value: String,
    /// How many agents were listed.
    pub count: usize,
}

/// An entry of a workspace's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub revision: u64,
    pub action: String,
    pub target: String,
    /// The version of the agent that the entry is about.
    pub version: u64,
    /// The new display name, if it changed.
    pub value: Option<String>,
}

/// What is stored when all requests are answered and the database is whole.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// The active agents, as each server lists them.
    pub listed: Vec<BTreeSet<String>>,
    /// The number of active agents that the store counts, against which a plan's limit is checked.
    pub counted: usize,
    /// The revision of the log's head.
    pub head: u64,
    pub log: Vec<Entry>,
}

/// A run: what the clients saw, and both workspaces.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub ops: Vec<Op>,
    pub open: Stored,
    pub limited: Stored,
    /// How many agents the limited workspace may have.
    pub limit: usize,
}

/// Records operations while they are under way.
#[derive(Debug, Default)]
pub struct Recorder {
    clock: AtomicU64,
    ops: Mutex<Vec<Op>>,
    done: AtomicU64,
}

impl Recorder {
    pub fn begin(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    pub fn end(&self, begin: u64, action: Action, outcome: Outcome) {
        let end = self.clock.fetch_add(1, Ordering::SeqCst);
        if matches!(outcome, Outcome::Done(_)) {
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        self.ops.lock().unwrap().push(Op {
            begin,
            end,
            action,
            outcome,
        });
    }

    /// How many operations were done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    pub fn take(&self) -> Vec<Op> {
        std::mem::take(&mut self.ops.lock().unwrap())
    }
}
