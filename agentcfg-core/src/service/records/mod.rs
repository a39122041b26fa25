//! The typed layer between the service and the store: which records there are, and how they are read and written.
//!
//! A kind of record is declared once, in [`kinds`]: its Rust type, its [`Kind`](crate::store::Kind) and its keys. The
//! rest of the service names keys of those types and handles no encoded records, no positions in a batch and no bare
//! numbers:
//!
//! - [`AgentCfg::read`](super::AgentCfg::read) takes one key or a tuple of keys, and answers from one snapshot;
//! - [`AgentCfg::scan`](super::AgentCfg::scan) takes [`Entries`], the records of one kind in one partition;
//! - [`AgentCfg::changed_since`](super::AgentCfg::changed_since) answers with what is new among the records of one kind;
//! - [`AgentCfg::commit`](super::AgentCfg::commit) takes a [`Transaction`] and answers with an [`Outcome`].

mod budgets;
mod call_block;
mod codec;
mod entity;
mod history;
mod kinds;
mod packed;
mod query;
mod read;
mod transaction;
mod unpack;
mod usage;
mod users;
mod webhooks;

pub(super) use self::budgets::*;
pub(super) use self::call_block::{CallBlock, NewCallBlock, calls_before, calls_from};
pub(super) use self::codec::{encode, not_read, not_written};
pub(super) use self::entity::{Encoded, EncodedKey, Entity, EntityKey, NumberKey, Stored};
pub(super) use self::history::*;
pub(super) use self::kinds::*;
pub(super) use self::packed::{PackedPaths, PackedTexts};
pub(super) use self::query::{Counted, Lookup, Query};
pub(super) use self::read::{ChangedRecords, Entries, Scanned};
pub(super) use self::transaction::{Done, Outcome, Transaction, Turn};
pub(super) use self::usage::*;
pub(super) use self::users::*;
pub(super) use self::webhooks::*;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{Provider, WorkspaceId};
    use crate::store::{Key, Kind};

    /// The keys that callers name must be those that a removal finds.
    #[test]
    fn the_records_outside_a_workspace_are_linked_to_those_within() {
        let workspace = WorkspaceId::new(uuid::Uuid::from_u128(7));
        let webhook = uuid::Uuid::from_u128(8).to_string();
        let linked = |kind, item: &str| Key::in_workspace(workspace, kind, item).linked();
        let provider = Provider::OPENAI;
        let expected: [(Kind, &str, Vec<Key>); 5] = [
            (
                Kind::WorkspaceApiKey,
                "k1",
                vec![api_key("k1").into(), key_use("k1").into()],
            ),
            (Kind::Member, "ada", vec![membership("ada", workspace).into()]),
            (
                Kind::ProviderKey,
                provider.as_str(),
                vec![sealed_key(workspace, provider).into()],
            ),
            (
                Kind::Webhook,
                &webhook,
                vec![webhook_place(webhook.parse().unwrap()).into()],
            ),
            (Kind::Workspace, "", vec![workspace_place(workspace).into()]),
        ];
        for (kind, item, keys) in expected {
            assert_eq!(linked(kind, item), keys, "{kind:?}");
        }
    }
}
