//! Sums of usage, grouped.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use super::selection::{Selection, require_audit};
use crate::clock::{DAY, HOUR};
use crate::error::{Error, ErrorKind};
use crate::model::{Patch, Permission, Timestamp, UsageColumn, UsageFilter, UsageRow, WorkspaceId};
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, CallBlock, CallGroup, StoredCall, StoredSum, SumTime, Sums};
use crate::service::{AgentCfg, Caller};
use crate::validate::Invalid;

/// The most columns of a grouping.
const COLUMNS: usize = 4;
/// The most rows of an answer.
const ROWS: usize = 10_000;
/// The most groups that are added up for an answer with `top`.
const GROUPS: usize = 200_000;
/// The greatest `top`.
const TOP: u32 = 50;

/// A value that sums are grouped by. The order is that of the rows: no value first, and all others last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    None,
    Number(u64),
    Text(String),
    Other,
}

/// The sums of each group, which is named by one value for each column.
type Groups = HashMap<Vec<Value>, Sums>;

impl AgentCfg {
    /// Sums over the model calls of a workspace, in the order of what they are grouped by.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `analytics:read`, and for what shows who called without `audit_log:read`;
    /// [`ErrorKind::Invalid`] for more than 4 columns, one that is named twice, a `top` without a column for it, a time
    /// that ends before it begins, and where there would be more than 10,000 rows.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// use agentcfg_core::model::{UsageColumn, UsageFilter};
    /// let by_agent = UsageFilter::default().by(vec![UsageColumn::Agent]);
    /// assert!(service.usage(&ada, studio, &by_agent).await?.is_empty());
    /// # Ok(()) }) }
    /// ```
    pub async fn usage(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, Error> {
        check(filter)?;
        let access = self.access(caller, workspace, Permission::AnalyticsRead).await?;
        for column in &filter.by {
            if matches!(column, UsageColumn::Key | UsageColumn::User) {
                require_audit(&access, column.as_str())?;
            }
        }
        let selection = Selection::of(&access, filter, self.now())?;
        let by = filter.by.clone();
        let most = if filter.top.is_some() { GROUPS } else { ROWS };
        let mut groups = Groups::new();
        let by_hour = by.contains(&UsageColumn::Hour);
        self.each_sum(access.workspace(), &selection, by_hour, |time, sum| {
            let values = by.iter().map(|column| value(*column, time, &sum.group)).collect();
            groups.entry(values).or_default().add(&sum.sums);
            match groups.len() <= most {
                true => Ok(()),
                false => Err(too_many()),
            }
        })
        .await?;
        if let Some(top) = filter.top
            && let Some(place) = by.iter().position(|column| !is_time(*column))
        {
            groups = only_top(groups, place, top as usize);
        }
        if groups.len() > ROWS {
            return Err(too_many());
        }
        let mut rows: Vec<_> = groups.into_iter().collect();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        let row = |(values, sums): (Vec<Value>, Sums)| row(&by, values, &sums);
        Ok(rows.into_iter().map(row).collect())
    }

    /// Calls `add` for the sums of the selected time and groups: those of whole days, unless hours are asked for, and
    /// those of hours before and after.
    async fn each_sum(
        &self,
        workspace: WorkspaceId,
        selection: &Selection,
        by_hour: bool,
        mut add: impl FnMut(SumTime, StoredSum) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Selection { from, to, .. } = *selection;
        let (first, end) = (
            from.div_euclid(24) + i64::from(from.rem_euclid(24) > 0),
            to.div_euclid(24),
        );
        let hours = |from, to| (SumTime::Hour(from), SumTime::Hour(to));
        let spans = match by_hour || first >= end {
            true => vec![hours(from, to)],
            false => vec![
                hours(from, first * 24),
                (SumTime::Day(first), SumTime::Day(end)),
                hours(end * 24, to),
            ],
        };
        for (from, to) in spans.into_iter().filter(|(from, to)| from != to) {
            self.each_sum_of(workspace, (from, to), |time, sum| {
                match selection.calls.has(&sum.group) {
                    true => add(time, sum),
                    false => Ok(()),
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Calls `visit` for the sums of one unit of time, from the first one on and before the second one.
    pub(in crate::service) async fn each_sum_of(
        &self,
        workspace: WorkspaceId,
        (from, to): (SumTime, SumTime),
        mut visit: impl FnMut(SumTime, StoredSum) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_before = |time| match (time, to) {
            (SumTime::Day(time), SumTime::Day(end)) | (SumTime::Hour(time), SumTime::Hour(end)) => time < end,
            _ => false,
        };
        let mut pieces = Chunks::of(records::usage_sums_from(workspace, from));
        while let Some(piece) = pieces.next(self).await? {
            for (time, sum) in
                chunked_reads::decoded(piece, |record| Ok((record.key().time()?, record.value()?))).await?
            {
                if !is_before(time) {
                    return Ok(());
                }
                visit(time, sum)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` for the calls that ended from this moment on, roughly in the order of their ends, until it breaks.
    pub(in crate::service) async fn each_call_from(
        &self,
        workspace: WorkspaceId,
        from: i64,
        mut visit: impl FnMut(StoredCall) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut pieces = Chunks::of(records::calls_from(workspace, from));
        while let Some(piece) = pieces.next(self).await? {
            let blocks = chunked_reads::values::<CallBlock>(piece).await?;
            for (_, call) in blocks.into_iter().flat_map(CallBlock::into_calls) {
                if visit(call).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn is_time(column: UsageColumn) -> bool {
    matches!(column, UsageColumn::Hour | UsageColumn::Day)
}

fn check(filter: &UsageFilter) -> Result<(), Error> {
    if filter.by.len() > COLUMNS {
        return Err(Invalid::new("by", format!("must name at most {COLUMNS} columns")).into());
    }
    let distinct: BTreeSet<_> = filter.by.iter().collect();
    if distinct.len() < filter.by.len() {
        return Err(Invalid::new("by", "must name each column once").into());
    }
    let Some(top) = filter.top else { return Ok(()) };
    if !(1..=TOP).contains(&top) {
        return Err(Invalid::new("top", format!("must be from 1 to {TOP}")).into());
    }
    if filter.by.iter().all(|column| is_time(*column)) {
        return Err(Invalid::new("top", "needs a column in by that is neither hour nor day").into());
    }
    Ok(())
}

fn too_many() -> Error {
    let message =
        format!("the answer would have more than {ROWS} rows: choose less time, fewer columns in by, or filters");
    Error::new(ErrorKind::Invalid, message)
}

fn value(column: UsageColumn, time: SumTime, group: &CallGroup) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let optional = |found: &Option<String>| found.as_deref().map_or(Value::None, text);
    match column {
        UsageColumn::Hour => match time {
            SumTime::Hour(hour) => Value::Number(hour.unsigned_abs()),
            SumTime::Day(_) => Value::None,
        },
        UsageColumn::Day => match time {
            SumTime::Hour(hour) => Value::Number(hour.div_euclid(24).unsigned_abs()),
            SumTime::Day(day) => Value::Number(day.unsigned_abs()),
        },
        UsageColumn::Agent => text(&group.agent_id),
        UsageColumn::Version => Value::Number(group.version),
        UsageColumn::Label => optional(&group.label),
        UsageColumn::Model => optional(&group.model),
        UsageColumn::Provider => text(group.provider.as_str()),
        UsageColumn::Key => optional(&group.key),
        UsageColumn::User => optional(&group.user),
        UsageColumn::Credential => text(group.credential.as_str()),
        UsageColumn::Status => Value::Number(group.status.into()),
    }
}

/// Adds up the groups whose value at this place is not one of the first by cost.
fn only_top(groups: Groups, place: usize, top: usize) -> Groups {
    let mut by_value: HashMap<&Value, Sums> = HashMap::new();
    for (values, sums) in &groups {
        by_value.entry(&values[place]).or_default().add(sums);
    }
    let mut ranked: Vec<_> = by_value.into_iter().collect();
    // Of values that cost the same, that with more calls comes first, and then the one that rows have first.
    ranked.sort_by(|(a, x), (b, y)| (y.cost, y.calls).cmp(&(x.cost, x.calls)).then_with(|| a.cmp(b)));
    let first: BTreeSet<Value> = ranked.into_iter().take(top).map(|(value, _)| value.clone()).collect();
    let mut folded = Groups::new();
    for (mut values, sums) in groups {
        if !first.contains(&values[place]) {
            values[place] = Value::Other;
        }
        folded.entry(values).or_default().add(&sums);
    }
    folded
}

/// Day of the Unix epoch as `2026-11-20`.
pub(super) fn day_text(day: i64) -> String {
    let at = Timestamp::from_unix_millis(day.saturating_mul(DAY));
    at.to_string()[..10].to_owned()
}

fn row(by: &[UsageColumn], values: Vec<Value>, sums: &Sums) -> UsageRow {
    let mut row = sums.row();
    for (column, value) in by.iter().zip(values) {
        if value == Value::Other {
            row.other = Some(true);
        }
        let number = match value {
            Value::Number(number) => Some(number),
            _ => None,
        };
        let text = match value {
            Value::Text(text) => Some(text),
            _ => None,
        };
        let time = number.and_then(|number| i64::try_from(number).ok());
        match column {
            UsageColumn::Hour => {
                let hour = time.map(|hour| Timestamp::from_unix_millis(hour.saturating_mul(HOUR)));
                row.hour = hour.into();
            }
            UsageColumn::Day => row.day = time.map(day_text).into(),
            UsageColumn::Agent => row.agent = text.into(),
            UsageColumn::Version => row.version = number.into(),
            UsageColumn::Label => row.label = text.into(),
            UsageColumn::Model => row.model = text.into(),
            UsageColumn::Provider => row.provider = word(text),
            UsageColumn::Key => row.key = text.into(),
            UsageColumn::User => row.user = text.into(),
            UsageColumn::Credential => row.credential = word(text),
            UsageColumn::Status => row.status = number.and_then(|number| u32::try_from(number).ok()).into(),
        }
    }
    row
}

fn word<T: std::str::FromStr>(text: Option<String>) -> Patch<T> {
    text.and_then(|text| text.parse().ok()).into()
}
