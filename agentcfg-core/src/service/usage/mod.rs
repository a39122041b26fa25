//! The usage of model calls: a meter for each call, the ledger that the calls are written to, and its
//! readers.
//!
//! A call that ends is put into the [`Ledger`] of the process. A task writes what is there several times a second: each
//! call as a record, and the sums of its hour and its day. Readers of sums touch no calls, and those of whole days no
//! hours.

mod calls;
mod days;
mod durations;
mod ledger;
mod meter;
mod query;
mod selection;
mod totals;
mod write;

pub(super) use ledger::Ledger;
pub use meter::{CallFacts, CallMeter, EndedCall};
