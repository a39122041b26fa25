//! What an apply changes, as text.

use agentcfg_client::model::{AppliedAgent, AppliedAgents, ApplyAction, Change, Changes};
use anstyle::Style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::failure::Result;
use crate::output::{ADDED, BOLD, CHANGED, DIM, Output, REMOVED, printable};

/// The longest value that is shown in one line.
const MAX_SHOWN: usize = 100;
/// How many equal characters are shown before the first ones that differ.
const MAX_BEFORE: usize = 30;

/// Whether an apply changes anything.
pub fn has_changes(applied: &AppliedAgents) -> bool {
    applied.results.iter().any(|agent| agent.action != ApplyAction::Keep)
}

/// Whether an apply deactivates the agent.
pub fn is_deactivated(agent: &AppliedAgent) -> bool {
    agent.action == ApplyAction::Deactivate
}

/// Prints each agent that changes, and its changes.
pub fn show(output: &mut Output, applied: &AppliedAgents) -> Result<()> {
    for agent in applied.results.iter().filter(|agent| agent.action != ApplyAction::Keep) {
        let (sign, style) = sign(agent.action);
        output.line(format_args!(
            "{style}{sign} {}{style:#} {BOLD}{}{BOLD:#}",
            agent.action, agent.agent_id
        ))?;
        if !is_deactivated(agent) {
            changes(output, &agent.changes)?;
        }
    }
    Ok(())
}

fn sign(action: ApplyAction) -> (char, Style) {
    match action {
        ApplyAction::Create | ApplyAction::Restore => ('+', ADDED),
        ApplyAction::Deactivate => ('-', REMOVED),
        _ => ('~', CHANGED),
    }
}

/// One line about all agents, such as `1 to create, 2 to deactivate, 5 unchanged`.
pub fn summary(applied: &AppliedAgents, is_done: bool) -> String {
    let number = |action: ApplyAction| applied.results.iter().filter(|agent| agent.action == action).count();
    let actions = [
        (ApplyAction::Create, "to create", "created"),
        (ApplyAction::Update, "to update", "updated"),
        (ApplyAction::Restore, "to restore", "restored"),
        (ApplyAction::Deactivate, "to deactivate", "deactivated"),
        (ApplyAction::Keep, "unchanged", "unchanged"),
    ];
    let parts = actions.map(|(action, before, after)| (number(action), if is_done { after } else { before }));
    let parts: Vec<_> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    match parts.is_empty() {
        true => "no agents".to_owned(),
        false => parts.join(", "),
    }
}

/// Prints the changes of an agent's fields. Texts of several lines are compared line by line.
pub fn changes(output: &mut Output, changes: &Changes) -> Result<()> {
    for (name, change) in changes.iter().filter(|(name, change)| is_shown(name, change)) {
        let name = printable(name);
        match lines(change) {
            Some((from, to)) => {
                output.line(format_args!("    {name}:"))?;
                difference(output, from, to)?;
            }
            None if change.from.is_null() => {
                output.line(format_args!("    {name}: {ADDED}{}{ADDED:#}", shown(&change.to)))?
            }
            None => {
                let [from, to] = both_shown(&change.from, &change.to);
                output.line(format_args!(
                    "    {name}: {REMOVED}{from}{REMOVED:#} -> {ADDED}{to}{ADDED:#}"
                ))?
            }
        }
    }
    Ok(())
}

/// Whether a change is worth a line beside its action: a new agent is active, and has no entries in its empty lists.
fn is_shown(name: &str, change: &Change) -> bool {
    let is_empty = match &change.to {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    };
    name != "is_active" && !(change.from.is_null() && is_empty)
}

/// The two sides of a change of which one has several lines.
fn lines(change: &Change) -> Option<(&str, &str)> {
    let (from, to) = match (&change.from, &change.to) {
        (Value::String(from), Value::String(to)) => (from.as_str(), to.as_str()),
        (Value::Null, Value::String(to)) => ("", to.as_str()),
        (Value::String(from), Value::Null) => (from.as_str(), ""),
        _ => return None,
    };
    (from.contains('\n') || to.contains('\n')).then_some((from, to))
}

/// The changed lines of a text with the lines around them.
fn difference(output: &mut Output, from: &str, to: &str) -> Result<()> {
    let end = end_of_text(from, to);
    // The last line ends like the others, as in the file: else it would differ where lines are added after it.
    let [from, to] = [from, to].map(|text| {
        if text.is_empty() {
            String::new()
        } else {
            format!("{text}\n")
        }
    });
    let diff = TextDiff::from_lines(&*from, &*to);
    for (i, group) in diff.grouped_ops(2).iter().enumerate() {
        if i > 0 {
            output.line(format_args!("      {DIM}...{DIM:#}"))?;
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', REMOVED),
                ChangeTag::Insert => ('+', ADDED),
                ChangeTag::Equal => (' ', DIM),
            };
            let line = printable(change.value().trim_end_matches('\n'));
            let line = format!("{sign} {line}");
            output.line(format_args!("      {style}{}{style:#}", line.trim_end()))?;
        }
    }
    match end {
        Some(end) => output.line(format_args!("      {DIM}({end}){DIM:#}")),
        None => Ok(()),
    }
}

/// What became of the line feed at the end of a text, which is hardly seen in its lines.
fn end_of_text(from: &str, to: &str) -> Option<&'static str> {
    match (from.ends_with('\n'), to.ends_with('\n')) {
        _ if from.is_empty() || to.is_empty() => None,
        (true, false) => Some("no newline at end any more"),
        (false, true) => Some("a newline at end, where none was"),
        _ => None,
    }
}

/// A value in one line.
fn shown(value: &Value) -> String {
    cut(&printable(&value.to_string()), 0)
}

/// Two values, each in one line, with the place where they begin to differ.
fn both_shown(from: &Value, to: &Value) -> [String; 2] {
    let texts = [from, to].map(|value| printable(&value.to_string()));
    let [one, other] = &texts;
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    // What fits is shown from its beginning.
    let is_short = texts.iter().all(|text| text.chars().count() <= MAX_SHOWN);
    let start = if is_short { 0 } else { same.saturating_sub(MAX_BEFORE) };
    texts.map(|text| cut(&text, start))
}

/// So much of a text as is shown, after so many characters.
fn cut(text: &str, start: usize) -> String {
    let mut rest = text.chars().skip(start);
    let shown: String = rest.by_ref().take(MAX_SHOWN).collect();
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if rest.next().is_some() { "…" } else { "" },
    );
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_where_they_differ() {
        let same = "é".repeat(290);
        let [from, to] = both_shown(&json!(format!("{same}Always")), &json!(format!("{same}Never")));
        let before = "é".repeat(MAX_BEFORE);
        assert_eq!((from, to), (format!("…{before}Always\""), format!("…{before}Never\"")));
        let long = json!("x".repeat(300));
        let [from, to] = both_shown(&json!("short"), &long);
        assert_eq!(from, "\"short\"");
        assert_eq!(to, format!("\"{}…", "x".repeat(99)));
        assert_eq!(shown(&long), to);
    }

    #[test]
    fn a_line_feed_at_the_end_is_told() {
        let gone = Some("no newline at end any more");
        assert_eq!(end_of_text("You write.\n", "You write."), gone);
        assert_eq!(end_of_text("a", "a\n"), Some("a newline at end, where none was"));
        assert_eq!(end_of_text("a\n", "b\n"), None);
        assert_eq!(end_of_text("", "a\nb\n"), None);
    }
}
