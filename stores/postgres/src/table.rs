//! The tables, and the mapping of a key to its table and columns.

use agentcfg_core::store::{Key, Kind, Partition, PartitionKind, StoreError};

use super::pipeline::Param;

/// One table. Its primary key is the column `scope_column` and then the column `item_column`; the
/// columns `version` and `value` follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The name within the store's schema.
    pub(super) name: &'static str,
    /// The kind of its records.
    pub(super) kind: Kind,
    /// The column that holds the partition of a row: a workspace's UUID, or the text of a global partition.
    pub(super) scope_column: &'static str,
    pub(super) item_column: &'static str,
    /// Whether its values are numbers, which the database increments, and not JSON texts.
    pub(super) numeric: bool,
    /// Whether its rows are updated often: its pages keep free space for new row versions, and values stay in their rows,
    /// compressed, up to a page. So an update takes the room of an old row version in its page, where a value beside the
    /// table would stay until a vacuum.
    pub(super) hot: bool,
}

const fn table(name: &'static str, kind: Kind, scope_column: &'static str, item_column: &'static str) -> Table {
    Table {
        name,
        kind,
        scope_column,
        item_column,
        numeric: kind.is_number(),
        hot: kind.is_number()
            || matches!(
                kind,
                Kind::Agent
                    | Kind::AgentLabels
                    | Kind::Status
                    | Kind::KeyUse
                    | Kind::WebhookState
                    | Kind::UsageSum
                    | Kind::BudgetAccount
            ),
    }
}

/// The table of each kind. The column `item` is empty if a partition has one record of the kind.
pub(super) const TABLES: &[Table] = &[
    table("workspaces", Kind::Workspace, "workspace_id", "item"),
    table("counters", Kind::Counter, "workspace_id", "name"),
    table("log_heads", Kind::LogHead, "workspace_id", "item"),
    table("members", Kind::Member, "workspace_id", "user_id"),
    table("agents", Kind::Agent, "workspace_id", "agent_id"),
    table("statuses", Kind::Status, "workspace_id", "agent_id"),
    table("workspace_api_keys", Kind::WorkspaceApiKey, "workspace_id", "key_id"),
    table("provider_keys", Kind::ProviderKey, "workspace_id", "provider"),
    table("audit_log", Kind::LogEntry, "workspace_id", "number"),
    table("agent_versions", Kind::AgentVersion, "workspace_id", "place"),
    table("agent_touches", Kind::AgentTouch, "workspace_id", "place"),
    table("agent_labels", Kind::AgentLabels, "workspace_id", "agent_id"),
    table("sets", Kind::Set, "workspace_id", "set_name"),
    table("set_members", Kind::SetMember, "workspace_id", "agent_id"),
    table("usage_calls", Kind::UsageCall, "workspace_id", "call_id"),
    table("usage_sums", Kind::UsageSum, "workspace_id", "time_and_sum"),
    table("budgets", Kind::Budget, "workspace_id", "scope_and_period"),
    table(
        "budget_accounts",
        Kind::BudgetAccount,
        "workspace_id",
        "budget_and_period",
    ),
    table("webhooks", Kind::Webhook, "workspace_id", "webhook_id"),
    table("webhook_states", Kind::WebhookState, "workspace_id", "webhook_id"),
    table(
        "webhook_deliveries",
        Kind::WebhookDelivery,
        "workspace_id",
        "webhook_and_attempt",
    ),
    table("api_keys", Kind::ApiKey, "key_id", "item"),
    table("key_uses", Kind::KeyUse, "key_id", "item"),
    table("memberships", Kind::Membership, "user_id", "workspace_id"),
    table("sealed_keys", Kind::SealedKey, "list", "place"),
    table("removals", Kind::Removal, "list", "workspace_id"),
    table("browser_sessions", Kind::BrowserSession, "list", "hash"),
    table("login_codes", Kind::LoginCode, "list", "hash"),
    table("webhook_places", Kind::WebhookPlace, "list", "webhook_id"),
    table("workspace_places", Kind::WorkspacePlace, "list", "workspace_id"),
    table("users", Kind::User, "list", "user_id"),
    table("meta", Kind::Meta, "subject", "item"),
];

/// The table and the scope of the records of one kind in one partition.
#[derive(Debug, Clone)]
pub(super) struct Location {
    pub(super) table: &'static Table,
    pub(super) scope: Param,
}

impl Location {
    pub(super) fn of(partition: &Partition, kind: Kind) -> Result<Self, StoreError> {
        let table = Table::of(partition, kind)?;
        let scope = match partition {
            Partition::Workspace(id) => Param::Uuid(*id.as_uuid()),
            Partition::Global(name) => Param::Text((**name).to_owned()),
        };
        Ok(Self { table, scope })
    }

    pub(super) fn of_key(key: &Key) -> Result<Self, StoreError> {
        Self::of(key.partition(), key.kind())
    }
}

impl Table {
    /// The table of the records of one kind in one partition.
    pub(super) fn of(partition: &Partition, kind: Kind) -> Result<&'static Self, StoreError> {
        let table = TABLES.iter().find(|table| table.kind == kind);
        table
            .filter(|_| kind.partition_kind() == partition.kind())
            .ok_or_else(|| StoreError::Misuse(format!("records of kind {kind:?} have no place in {partition:?}")))
    }

    /// The type of the scope column.
    pub(super) fn scope_type(&self) -> &'static str {
        match self.kind.partition_kind() {
            PartitionKind::Workspace => "uuid",
            PartitionKind::Global => "text",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentcfg_core::model::WorkspaceId;

    #[test]
    fn each_kind_has_one_table_for_its_kind_of_partition_alone() {
        let partitions = [
            Partition::Workspace(WorkspaceId::new(uuid::Uuid::from_u128(7))),
            Partition::Global("a/b".into()),
        ];
        for kind in Kind::ALL {
            assert_eq!(TABLES.iter().filter(|table| table.kind == kind).count(), 1);
            for partition in &partitions {
                match Location::of(partition, kind) {
                    Ok(location) => {
                        assert_eq!(partition.kind(), kind.partition_kind());
                        assert_eq!(location.table.kind, kind);
                        assert_eq!(
                            matches!(location.scope, Param::Uuid(_)),
                            location.table.scope_type() == "uuid"
                        );
                    }
                    Err(error) => {
                        assert_ne!(partition.kind(), kind.partition_kind());
                        assert!(matches!(&error, StoreError::Misuse(text) if text.contains(&format!("{kind:?}"))));
                    }
                }
            }
        }
    }
}
