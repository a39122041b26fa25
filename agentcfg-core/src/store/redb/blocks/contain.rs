//! Containment of damage: a damaged block fails one read and not the whole engine.
//!
//! After any I/O error the engine fails every further call until its file is reopened. That is right for a write, but
//! one damaged block must not fail all readers. So a read transaction runs in [`contained`]: a damaged block unwinds
//! from the backend through the engine to `contained`, and the engine sees no error. The engine holds no lock while it
//! reads a block for a reader, so the unwinding poisons nothing. An app that is built without unwinding is refused when
//! it opens a store.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A block that cannot be read, or does not match its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Damage {
    /// The number of the block.
    pub(in super::super) block: u64,
    /// Why the operating system could not read it; `None` if it was read and does not match its checksum.
    pub(in super::super) unreadable: Option<io::ErrorKind>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unreadable {
            Some(why) => write!(f, "block {} cannot be read: {why}", self.block),
            None => write!(f, "block {} does not match its checksum", self.block),
        }
    }
}

impl std::error::Error for Damage {}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Why the work was broken off.
pub(in super::super) enum Broken {
    /// It read a damaged block.
    Damage(Damage),
    /// It panicked.
    Panic(Box<dyn Any + Send>),
}

/// Runs a read transaction of the engine, or a part of one. A write transaction must not run inside.
pub(in super::super) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, Broken> {
    let outer = CONTAINED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    outcome.map_err(|payload| match payload.downcast::<Damage>() {
        Ok(damage) => Broken::Damage(*damage),
        Err(payload) => Broken::Panic(payload),
    })
}

/// Whether this thread runs in [`contained`].
pub(super) fn is_contained() -> bool {
    CONTAINED.get()
}

/// Fails a read of a damaged block: it unwinds to [`contained`], or returns the error outside of it.
pub(super) fn raise(damage: Damage) -> io::Error {
    if CONTAINED.get() {
        // Unlike `panic!`, this does not call the panic hook, so nothing is printed.
        resume_unwind(Box::new(damage));
    }
    io::Error::new(io::ErrorKind::InvalidData, damage)
}

/// The damaged block that an error of the backend is about.
pub(in super::super) fn damage_of(error: &io::Error) -> Option<Damage> {
    error.get_ref()?.downcast_ref::<Damage>().copied()
}
