//! The tables, and the mapping of a key to its table and columns.

use super::super::{Key, Kind, Partition, StoreError};
use super::run::Param;
use crate::model::WorkspaceId;

/// The type of a table's scope column, which holds the partition of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A workspace's UUID.
    Workspace,
    /// A text.
    Name,
}

/// One table. Its primary key is the column `scope_column` and then the column `item_column`; the
/// columns `version` and `value` follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The name within the store's schema.
    pub(super) name: &'static str,
    /// The kind of its records; `None` for the table of those that are in no other.
    pub(super) kind: Option<Kind>,
    pub(super) scope: Scope,
    pub(super) scope_column: &'static str,
    pub(super) item_column: &'static str,
    /// Whether its values are numbers, which the database increments, and not JSON texts.
    pub(super) numeric: bool,
    /// Whether its rows are updated often: its pages keep free space for new row versions.
    pub(super) hot: bool,
}

const fn table(
    name: &'static str,
    kind: Kind,
    scope: Scope,
    scope_column: &'static str,
    item_column: &'static str,
) -> Table {
    Table {
        name,
        kind: Some(kind),
        scope,
        scope_column,
        item_column,
        numeric: matches!(kind, Kind::Counter | Kind::LogHead),
        hot: matches!(kind, Kind::Counter | Kind::LogHead | Kind::Status | Kind::KeyUse),
    }
}

/// Every table that has a kind. `item` is empty if a partition has one record of the kind.
pub(super) const TABLES: &[Table] = &[
    table("workspaces", Kind::Workspace, Scope::Workspace, "workspace_id", "item"),
    table("counters", Kind::Counter, Scope::Workspace, "workspace_id", "name"),
    table("log_heads", Kind::LogHead, Scope::Workspace, "workspace_id", "item"),
    table("members", Kind::Member, Scope::Workspace, "workspace_id", "user_id"),
    table("agents", Kind::Agent, Scope::Workspace, "workspace_id", "agent_id"),
    table("statuses", Kind::Status, Scope::Workspace, "workspace_id", "agent_id"),
    table(
        "workspace_api_keys",
        Kind::WorkspaceApiKey,
        Scope::Workspace,
        "workspace_id",
        "key_id",
    ),
    table(
        "provider_keys",
        Kind::ProviderKey,
        Scope::Workspace,
        "workspace_id",
        "provider",
    ),
    table("audit_log", Kind::LogEntry, Scope::Workspace, "workspace_id", "number"),
    table("api_keys", Kind::ApiKey, Scope::Name, "key_id", "item"),
    table("key_uses", Kind::KeyUse, Scope::Name, "key_id", "item"),
    table("memberships", Kind::Membership, Scope::Name, "user_id", "workspace_id"),
    table("sealed_keys", Kind::SealedKey, Scope::Name, "list", "place"),
    table("meta", Kind::Meta, Scope::Name, "subject", "item"),
];

/// Records of a kind in a partition where that kind is not at home. The service makes none; the
/// contract allows them.
pub(super) const OTHER: &Table = &Table {
    name: "other_records",
    kind: None,
    scope: Scope::Name,
    scope_column: "place",
    item_column: "item",
    numeric: false,
    hot: false,
};

pub(super) fn all() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().chain([OTHER])
}

/// The table and the scope of the records of one kind in one partition.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) table: &'static Table,
    pub(super) scope: Param,
}

impl Place {
    pub(super) fn of(partition: &Partition, kind: Kind) -> Self {
        let home = TABLES.iter().find(|table| table.kind == Some(kind));
        match (home, partition) {
            (Some(table), Partition::Workspace(id)) if table.scope == Scope::Workspace => Self {
                table,
                scope: Param::Uuid(*id.as_uuid()),
            },
            (Some(table), Partition::Global(name)) if table.scope == Scope::Name => Self {
                table,
                scope: Param::Text(name.to_string()),
            },
            _ => Self {
                table: OTHER,
                scope: Param::Text(place_name(partition, kind)),
            },
        }
    }

    pub(super) fn of_key(key: &Key) -> Self {
        Self::of(key.partition(), key.kind())
    }
}

/// The text in `other_records.place`: the kind's number, the sort of partition, the partition.
fn place_name(partition: &Partition, kind: Kind) -> String {
    let kind = kind as u8;
    match partition {
        Partition::Workspace(id) => format!("{kind}/workspace/{id}"),
        Partition::Global(name) => format!("{kind}/name/{name}"),
    }
}

/// Reads what [`place_name`] wrote.
fn place_of_name(place: &str) -> Option<(Partition, Kind)> {
    let (kind, rest) = place.split_once('/')?;
    let kind = kind.parse::<u8>().ok()?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
    let (sort, name) = rest.split_once('/')?;
    let partition = match sort {
        "workspace" => Partition::Workspace(name.parse().ok()?),
        "name" => Partition::Global(name.into()),
        _ => return None,
    };
    Some((partition, kind))
}

impl Table {
    pub(super) fn key(&self, scope: &Param, item: &str) -> Result<Key, StoreError> {
        let damage = || StoreError::Corrupt(format!("a row of table {} has no key: {scope:?} {item:?}", self.name));
        match (self.kind, scope) {
            (Some(kind), Param::Uuid(id)) => Ok(Key::in_workspace(WorkspaceId::new(*id), kind, item)),
            (Some(kind), Param::Text(name)) => Ok(Key::global(name.as_str(), kind, item)),
            (None, Param::Text(place)) => {
                let (partition, kind) = place_of_name(place).ok_or_else(damage)?;
                Ok(Key::new(partition, kind, item))
            }
            _ => Err(damage()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_table_and_every_key_is_found_again() {
        let partitions = [
            Partition::Workspace(WorkspaceId::new(uuid::Uuid::from_u128(7))),
            Partition::Global("a/b".into()),
        ];
        for kind in Kind::ALL {
            assert_eq!(TABLES.iter().filter(|table| table.kind == Some(kind)).count(), 1);
            for partition in &partitions {
                let key = Key::new(partition.clone(), kind, "x/y");
                let place = Place::of_key(&key);
                assert_eq!(place.table.key(&place.scope, key.item()).unwrap(), key);
            }
        }
    }
}
