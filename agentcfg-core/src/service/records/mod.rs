//! The typed layer between the service and the store: which records there are, and how they are read and written.
//!
//! A kind of record is declared once, in [`kinds`]: its Rust type, its [`Kind`](crate::store::Kind) and its keys. The rest
//! of the service names keys of those types and handles no encoded records, no positions in a batch and no bare numbers:
//!
//! - [`AgentCfg::read`](super::AgentCfg::read) takes one key or a tuple of keys, and answers from one snapshot;
//! - [`AgentCfg::scan`](super::AgentCfg::scan) takes [`Entries`], the records of one kind in one partition;
//! - [`AgentCfg::changed_since`](super::AgentCfg::changed_since) answers with what is new among the records of one kind;
//! - [`AgentCfg::commit`](super::AgentCfg::commit) takes a [`Transaction`] and answers with an [`Outcome`].

mod codec;
mod entity;
mod history;
mod kinds;
mod read;
mod transaction;
mod webhooks;

pub(super) use self::codec::{encode, not_written};
pub(super) use self::entity::{Encoded, EncodedKey, Entity, EntityKey, NumberKey, Stored};
pub(super) use self::history::*;
pub(super) use self::kinds::*;
pub(super) use self::read::{ChangedRecords, Entries, Lookup, Scanned};
pub(super) use self::transaction::{Outcome, Transaction};
pub(super) use self::webhooks::*;
