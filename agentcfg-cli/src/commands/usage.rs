//! The usage of model calls.

use agentcfg_client::model::{Patch, UsageColumn, UsageFilter, UsageRow};

use super::context::Context;
use crate::args::Usage;
use crate::failure::{Code, Result};
use crate::output::{minute, or_dash};
use crate::session::parse;

pub async fn list(context: &mut Context, usage: Usage) -> Result<Code> {
    let by = usage.by.iter().filter(|word| !word.is_empty());
    let by: Vec<UsageColumn> = by.map(|word| parse("by", word)).collect::<Result<_>>()?;
    let filter = UsageFilter::default()
        .from(usage.from.map(|at| parse("from", &at)).transpose()?)
        .to(usage.to.map(|at| parse("to", &at)).transpose()?)
        .by(by.clone())
        .agent_id(usage.agent)
        .model(usage.model)
        .provider(usage.provider)
        .key(usage.key)
        .label(usage.label)
        .top(usage.top);
    let session = context.session()?;
    let rows = session.client.usage(session.workspace().await?, &filter).await?;
    context.output.show(&rows, |output| {
        let mut header: Vec<String> = by.iter().map(|column| column.as_str().to_uppercase()).collect();
        header.extend(["CALLS", "ERRORS", "INPUT", "OUTPUT", "USD", "P50 MS", "P95 MS"].map(str::to_owned));
        // Calls without a price or without a report of the provider make the cost too low or inexact.
        let (has_unpriced, has_estimated) = (
            rows.iter().any(|row| row.unpriced_calls > 0),
            rows.iter().any(|row| row.estimated_calls > 0),
        );
        let further = [(has_unpriced, "NO PRICE"), (has_estimated, "ESTIMATED")];
        header.extend(
            further
                .iter()
                .filter(|(is_shown, _)| *is_shown)
                .map(|(_, name)| (*name).to_owned()),
        );
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let cells = |row: &UsageRow| {
            let numbers = [row.calls, row.errors, row.input_tokens, row.output_tokens];
            let mut cells: Vec<String> = by.iter().map(|column| value(row, *column)).collect();
            cells.extend(numbers.map(|number| number.to_string()));
            cells.push(row.cost_usd.to_string());
            cells.extend([row.p50_ms, row.p95_ms].map(|number| number.to_string()));
            let further = [(has_unpriced, row.unpriced_calls), (has_estimated, row.estimated_calls)];
            cells.extend(
                further
                    .iter()
                    .filter(|(is_shown, _)| *is_shown)
                    .map(|(_, calls)| calls.to_string()),
            );
            cells
        };
        output.table(&header, rows.iter().map(cells).collect())
    })?;
    Ok(Code::Done)
}

/// A value that the row is grouped by. Where it stands for several, it is `(others)`.
fn value(row: &UsageRow, column: UsageColumn) -> String {
    fn shown<T: ToString>(value: &Patch<T>, is_other: bool) -> String {
        match value.value() {
            None if is_other => "(others)".to_owned(),
            value => or_dash(value.map(ToString::to_string)),
        }
    }
    let is_other = row.other == Some(true);
    match column {
        UsageColumn::Hour => row.hour.value().map_or_else(String::new, |hour| minute(*hour)),
        UsageColumn::Day => shown(&row.day, false),
        UsageColumn::Agent => shown(&row.agent, is_other),
        UsageColumn::Version => shown(&row.version, is_other),
        UsageColumn::Label => shown(&row.label, is_other),
        UsageColumn::Model => shown(&row.model, is_other),
        UsageColumn::Provider => shown(&row.provider, is_other),
        UsageColumn::Key => shown(&row.key, is_other),
        UsageColumn::User => shown(&row.user, is_other),
        UsageColumn::Credential => shown(&row.credential, is_other),
        UsageColumn::Status => shown(&row.status, is_other),
        _ => String::new(),
    }
}
