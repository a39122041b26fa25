//! The texts of the statements on many rows, for transactions of several batches.
//!
//! Each takes its rows as arrays, in the order of the keys, and processes them in that order: it reads `unnest` from
//! the outside of a nested loop, or inserts from it. So the locks of a statement are taken in key order, too.

use super::table::Table;

/// The statements on many rows of one table. `$1` is the scopes and `$2` the items. Those that write return one row of
/// arrays: `scopes`, `items` and `numbers`. A statement fails with a division by zero unless the conditions of all its
/// rows hold.
#[derive(Debug)]
pub(super) struct ManySql {
    /// `$3` the versions of the keys' first records, `$4` the values.
    pub(super) put: String,
    /// As `put`; fails if there is a record.
    pub(super) put_absent: String,
    /// As `put` for keys that have no row; fails with a violation of the primary key if one has. It costs about two
    /// thirds of `put_absent`, which looks the key up first and writes a row in two steps.
    pub(super) insert: String,
    /// As `put`, with a revision as the first field of each value: the number of the log's head less `$5`. `$6` the
    /// workspaces, each once, and `$7` the place of each record's in them.
    pub(super) put_revised: String,
    /// As `put_revised` for keys that have no row, as `insert`.
    pub(super) insert_revised: String,
    /// `$3` the versions that the records must have; locks the rows against changes.
    pub(super) check_version: String,
    /// As `check_version`; locks the rows for a write in the same transaction.
    pub(super) lock_version: String,
    /// Only for counters: `$3` the versions of the keys' first records, `$4` the addends, none of them negative, `$5`
    /// the least and `$6` the greatest number to which each may be added.
    pub(super) add: String,
    /// Only for one counter, because a negative number can be no part of an insertion: `$1` its scope, `$2` its item,
    /// `$3` the addend, `$4` the least and `$5` the greatest number to which it may be added. Returns arrays as well.
    pub(super) subtract: String,
}

impl ManySql {
    pub(super) fn new(name: &str, table: &Table, heads: &str) -> Self {
        let (s, i, scope_type) = (table.scope_column, table.item_column, table.scope_type());
        let value_type = if table.numeric { "numeric" } else { "json" };
        let keys = format!("$1::{scope_type}[], $2::text[], $3::int8[]");
        let rows = format!("unnest({keys}, $4::text[]) AS k(s, i, first, value)");
        let insert = format!("INSERT INTO {name} AS r ({s}, {i}, version, value)");
        let conflict = format!("ON CONFLICT ({s}, {i}) DO UPDATE SET version = r.version + 1, value =");
        let inserted = format!("{insert} SELECT k.s, k.i, k.first, k.value::{value_type} FROM {rows}");
        let put = format!("{inserted} {conflict} EXCLUDED.value");
        // The head of each log is read once. A record finds it by the place of its workspace in `$6`; if it found
        // another one, the statement would fail.
        let revised = format!(
            "{insert} SELECT k.s, k.i, k.first, ('{{\"revision\":' || (heads.last[k.place] - k.back) \
             / COALESCE(heads.s[k.place] = k.s, false)::int || ',' || substr(k.value, 2))::{value_type} \
             FROM (SELECT array_agg(h.s ORDER BY w.place) AS s, array_agg(h.last ORDER BY w.place) AS last \
             FROM unnest($6::uuid[]) WITH ORDINALITY AS w(s, place) CROSS JOIN LATERAL (\
             SELECT h.workspace_id AS s, h.value::int8 AS last FROM {heads} AS h \
             WHERE h.workspace_id = w.s AND h.item = '' OFFSET 0) AS h) AS heads \
             CROSS JOIN unnest({keys}, $4::text[], $5::int8[], $7::int8[]) AS k(s, i, first, value, back, place)"
        );
        let returning = format!("RETURNING r.{s} AS s, r.{i} AS i, r.version AS number");
        let all = |statement: &str| {
            format!(
                "WITH hit AS ({statement}) SELECT array_agg(s) AS scopes, array_agg(i) AS items, \
                 array_agg(number::text) AS numbers, 1 / (count(*) = cardinality($2::text[]))::int FROM hit"
            )
        };
        // The inner query has a lock, so it stays a query of one row that is found by its key, for any number of rows.
        let locked = |lock: &str| {
            format!(
                "SELECT 1 / (count(*) = cardinality($2::text[]))::int FROM \
                 unnest({keys}) AS k(s, i, version) CROSS JOIN LATERAL (\
                 SELECT 1 FROM {name} AS r WHERE r.{s} = k.s AND r.{i} = k.i AND r.version = k.version \
                 AND r.value IS NOT NULL {lock}) AS found"
            )
        };
        Self {
            put: all(&format!("{put} {returning}")),
            put_absent: all(&format!("{put} WHERE r.value IS NULL {returning}")),
            insert: all(&format!("{inserted} {returning}")),
            put_revised: all(&format!("{revised} {conflict} EXCLUDED.value {returning}")),
            insert_revised: all(&format!("{revised} {returning}")),
            check_version: locked("FOR SHARE"),
            lock_version: locked("FOR UPDATE"),
            // The rows are returned in the order of the keys, so arrays put each beside its bounds. A join would
            // compare each row with each key. If the order were another one, the keys would differ and the statement
            // fail.
            add: format!(
                "WITH hit AS ({insert} SELECT k.s, k.i, k.first, k.addend::numeric \
                 FROM unnest({keys}, $4::text[]) AS k(s, i, first, addend) \
                 {conflict} COALESCE(r.value, 0) + EXCLUDED.value RETURNING r.{s} AS s, r.{i} AS i, r.value AS number), \
                 hits AS (SELECT array_agg(s) AS s, array_agg(i) AS i, array_agg(number) AS number FROM hit) \
                 SELECT hits.s AS scopes, hits.i AS items, hits.number::text[] AS numbers, (SELECT 1 / bool_and(\
                 b.s = b.ks AND b.i = b.ki AND b.number - b.addend::numeric BETWEEN b.least::numeric AND b.greatest::numeric)::int \
                 FROM unnest(hits.s, hits.i, hits.number, $1::{scope_type}[], $2::text[], $4::text[], $5::text[], $6::text[]) \
                 AS b(s, i, number, ks, ki, addend, least, greatest)) FROM hits"
            ),
            subtract: format!(
                "WITH hit AS (UPDATE {name} AS r SET version = r.version + 1, value = r.value + $3::text::numeric \
                 WHERE r.{s} = $1 AND r.{i} = $2 AND r.value BETWEEN $4::text::numeric AND $5::text::numeric \
                 RETURNING r.{s} AS s, r.{i} AS i, r.value AS number) \
                 SELECT array_agg(s) AS scopes, array_agg(i) AS items, array_agg(number::text) AS numbers, \
                 1 / count(*) FROM hit"
            ),
        }
    }
}

/// Appends entries to logs: `$1` the workspaces, `$2` the versions of their heads' first records, `$3` how many entries
/// each gets; `$4` the workspace of each entry and `$5` its place in `$1`, `$6` how many entries of that workspace
/// follow it, `$7` the version of its first record, `$8` the entry. Returns one row of arrays: the workspaces and the
/// numbers of their last entries.
///
/// The heads are returned in the order of the workspaces, so an entry finds its head by the place, where a join would
/// compare each entry with each head. If the order were another one, the number of the entry would be NULL and the
/// statement fail.
pub(super) fn append(heads: &str, log: &str, existing: Existing) -> String {
    let conflict = match existing {
        Existing::Fails => "",
        Existing::IsReplaced => {
            "ON CONFLICT (workspace_id, number) DO UPDATE SET version = r.version + 1, value = EXCLUDED.value"
        }
    };
    format!(
        "WITH head AS (\
         INSERT INTO {heads} AS r (workspace_id, item, version, value) \
         SELECT k.s, '', k.first, k.entries FROM unnest($1::uuid[], $2::int8[], $3::int8[]) AS k(s, first, entries) \
         ON CONFLICT (workspace_id, item) DO UPDATE \
         SET version = r.version + 1, value = COALESCE(r.value, 0) + EXCLUDED.value \
         RETURNING r.workspace_id AS s, r.value::int8 AS value), \
         heads AS (SELECT array_agg(s) AS s, array_agg(value) AS last FROM head), \
         entry AS (\
         INSERT INTO {log} AS r (workspace_id, number, version, value) \
         SELECT e.s, lpad((CASE WHEN heads.s[e.place] = e.s THEN heads.last[e.place] - e.back END)::text, 20, '0'), \
         e.first, e.value::json FROM heads CROSS JOIN \
         unnest($4::uuid[], $5::int8[], $6::int8[], $7::int8[], $8::text[]) AS e(s, place, back, first, value) \
         {conflict} RETURNING 1) \
         SELECT s AS scopes, last::text[] AS numbers FROM heads"
    )
}

/// What a statement does where there is a row, be it a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It fails with a violation of the primary key, and does not look the key up before it writes.
    Fails,
    /// It gives the row the new value.
    IsReplaced,
}
