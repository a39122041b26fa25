//! The texts of the statements, built once for each store because the schema's name is a setting.
//!
//! A statement that must find its row is wrapped so that it fails with a division by zero if it finds
//! none: the only way to abort a pipelined transaction with standard SQL alone.

use std::collections::HashMap;

use agentcfg_core::model::WorkspaceId;

use super::many_rows_sql::{self, Existing, ManySql};
use super::table::{TABLES, Table};

/// The statements on one table. `$1` is the scope of the row and `$2` its item. Each statement returns
/// a column `number`: the write's number in `Committed::numbers`.
#[derive(Debug)]
pub(super) struct TableSql {
    /// `$3` the version of the key's first record, `$4` the value.
    pub(super) put: String,
    /// As `put`, with the number of the head of the workspace's log as the first field of the value.
    pub(super) put_revised: String,
    /// As `put`; fails if there is a record.
    pub(super) put_absent: String,
    /// `$3` the version that the record must have, `$4` the value.
    pub(super) put_version: String,
    /// Leaves a tombstone: a row without a value that keeps the version.
    pub(super) delete: String,
    /// `$3` the version that the record must have.
    pub(super) delete_version: String,
    /// `$3` the version that the record must have; locks the row, so the version stays until the commit.
    pub(super) check_version: String,
    /// As `check_version` for a row that the same transaction writes later. A shared lock of two transactions would let
    /// none of them write.
    pub(super) lock_version: String,
    /// `$3` the version before the first; fails if there is a record, and else locks the key with a tombstone.
    pub(super) check_absent: String,
    /// `$3` the version of the key's first record, `$4` the addend, `$5` the maximum of the sum.
    pub(super) add: String,
    /// `$3` the addend, `$4` the maximum of the sum; fails if there is no number.
    pub(super) add_present: String,
    /// The statements on many rows.
    pub(super) many: ManySql,
}

#[derive(Debug)]
pub(super) struct Sql {
    pub(super) schema: String,
    tables: HashMap<&'static str, TableSql>,
    /// `$1` the workspace, `$2` the version of the key's first record, `$3` the entry.
    pub(super) append: String,
    /// The same for many entries of several workspaces; see [`many_rows_sql::append`].
    pub(super) append_many: String,
    /// As `append_many` for entries that have no row.
    pub(super) append_new: String,
    /// `$1` the subjects, `$2` the length of a window in milliseconds, `$3` how many requests of each subject. A window
    /// ends one length from now at the latest: otherwise a clock that is set back by hours would keep it open for
    /// hours.
    pub(super) window_hits: String,
    /// Removes windows that ended more than a minute ago.
    pub(super) window_sweep: String,
}

/// Begins the transaction of a commit. The statement timeout is off, because it would also cut off the
/// wait for a synchronous standby. The other two bound the wait for a lock, and the time that a stalled
/// client can keep its locks.
pub(super) const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '5s'; \
                                SET LOCAL idle_in_transaction_session_timeout = '15s'";

/// Begins the transaction of a hold. The database ends one that sends nothing for seconds.
pub(super) const BEGIN_HOLD: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '5s'; \
                                     SET LOCAL idle_in_transaction_session_timeout = '3s'";

/// The maximum of a counter.
pub(super) const MAX: u64 = u64::MAX;

impl Sql {
    pub(super) fn new(schema: &str) -> Self {
        let name = |table: &str| format!("{schema}.{table}");
        let (heads, log) = (name("log_heads"), name("audit_log"));
        let windows = name("rate_windows");
        let now = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
        Self {
            tables: TABLES
                .iter()
                .map(|table| (table.name, TableSql::new(&name(table.name), table, &heads)))
                .collect(),
            append: format!(
                "WITH head AS (\
                 INSERT INTO {heads} AS r (workspace_id, item, version, value) VALUES ($1, '', $2, 1) \
                 ON CONFLICT (workspace_id, item) DO UPDATE \
                 SET version = r.version + 1, value = COALESCE(r.value, 0) + 1 RETURNING value) \
                 INSERT INTO {log} AS r (workspace_id, number, version, value) \
                 SELECT $1, lpad(value::text, 20, '0'), $2, $3::json FROM head \
                 ON CONFLICT (workspace_id, number) DO UPDATE \
                 SET version = r.version + 1, value = EXCLUDED.value RETURNING number"
            ),
            append_many: many_rows_sql::append(&heads, &log, Existing::IsReplaced),
            append_new: many_rows_sql::append(&heads, &log, Existing::Fails),
            window_hits: format!(
                "INSERT INTO {windows} AS w (subject, ends_at, used) \
                 SELECT k.subject, {now} + $2, k.requests FROM unnest($1::text[], $3::int8[]) AS k(subject, requests) \
                 ON CONFLICT (subject) DO UPDATE SET \
                 used = CASE WHEN w.ends_at <= EXCLUDED.ends_at - $2 THEN EXCLUDED.used ELSE w.used + EXCLUDED.used END, \
                 ends_at = CASE WHEN w.ends_at <= EXCLUDED.ends_at - $2 THEN EXCLUDED.ends_at \
                 ELSE LEAST(w.ends_at, {now} + $2) END \
                 RETURNING subject, ends_at, used, {now}"
            ),
            window_sweep: format!("DELETE FROM {windows} WHERE ends_at < {now} - 60000"),
            schema: schema.to_owned(),
        }
    }

    /// Locks the head of a log and, before it in the order of all transactions, the counters that its appends may
    /// change too. The identifier in the text is a UUID.
    pub(super) fn lock_log(&self, log: WorkspaceId) -> String {
        let rows = |table: &str| format!("SELECT 1 FROM {}.{table} WHERE workspace_id = '{log}'", self.schema);
        let (counters, heads) = (rows("counters"), rows("log_heads"));
        format!("{counters} ORDER BY name FOR UPDATE; {heads} FOR UPDATE")
    }

    /// The statements on a table.
    pub(super) fn on(&self, table: &Table) -> &TableSql {
        // `new` inserts every table.
        &self.tables[table.name]
    }

    /// A table's full name.
    pub(super) fn name(&self, table: &Table) -> String {
        format!("{}.{}", self.schema, table.name)
    }
}

impl TableSql {
    fn new(name: &str, table: &Table, heads: &str) -> Self {
        let (s, i) = (table.scope_column, table.item_column);
        let value_type = if table.numeric { "numeric" } else { "json" };
        let (number, value): (&str, fn(&str) -> String) = if table.numeric {
            ("r.value", str::to_owned)
        } else {
            ("r.value::text::numeric", |number| format!("({number})::text::json"))
        };
        let row = format!("r.{s} = $1 AND r.{i} = $2");
        let record = format!("{row} AND r.value IS NOT NULL");
        let insert = format!("INSERT INTO {name} AS r ({s}, {i}, version, value)");
        let conflict = format!("ON CONFLICT ({s}, {i}) DO UPDATE SET");
        let replace = "version = r.version + 1, value = EXCLUDED.value";
        let put = format!("{insert} VALUES ($1, $2, $3, $4::text::{value_type}) {conflict} {replace}");
        let returning = "RETURNING version::text AS number";
        let first = value("$4::text::numeric");
        let more = value(&format!("COALESCE({number}, 0) + $4::text::numeric"));
        let present = value(&format!("{number} + $3::text::numeric"));
        Self {
            many: ManySql::new(name, table, heads),
            put: format!("{put} {returning}"),
            put_revised: format!(
                "{insert} VALUES ($1, $2, $3, ('{{\"revision\":' || \
                 (SELECT h.value::text FROM {heads} AS h WHERE h.workspace_id = $1 AND h.item = '') \
                 || ',' || substr($4::text, 2))::{value_type}) {conflict} {replace} {returning}"
            ),
            put_absent: require_row(&format!("{put} WHERE r.value IS NULL {returning}")),
            put_version: require_row(&format!(
                "UPDATE {name} AS r SET version = r.version + 1, value = $4::text::{value_type} \
                 WHERE {record} AND r.version = $3 {returning}"
            )),
            delete: format!("UPDATE {name} AS r SET value = NULL WHERE {record} RETURNING '0' AS number"),
            delete_version: require_row(&format!(
                "UPDATE {name} AS r SET value = NULL WHERE {record} AND r.version = $3 RETURNING '0' AS number"
            )),
            check_version: require_row(&format!(
                "SELECT '0' AS number FROM {name} AS r WHERE {record} AND r.version = $3 FOR SHARE"
            )),
            lock_version: require_row(&format!(
                "SELECT '0' AS number FROM {name} AS r WHERE {record} AND r.version = $3 FOR UPDATE"
            )),
            check_absent: require_row(&format!(
                "{insert} VALUES ($1, $2, $3, NULL) {conflict} version = r.version WHERE r.value IS NULL \
                 RETURNING '0' AS number"
            )),
            add: require_row(&format!(
                "{insert} VALUES ($1, $2, $3, {first}) {conflict} version = r.version + 1, value = {more} \
                 WHERE COALESCE({number}, 0) + $4::text::numeric BETWEEN 0 AND $5::text::numeric \
                 RETURNING r.value::text AS number"
            )),
            add_present: require_row(&format!(
                "UPDATE {name} AS r SET version = r.version + 1, value = {present} \
                 WHERE {record} AND {number} + $3::text::numeric BETWEEN 0 AND $4::text::numeric \
                 RETURNING r.value::text AS number"
            )),
        }
    }
}

/// Wraps a statement so that it fails if it finds no row.
fn require_row(statement: &str) -> String {
    format!("WITH hit AS ({statement}) SELECT max(number) AS number, 1 / count(*) FROM hit")
}
