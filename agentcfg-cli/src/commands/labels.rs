//! Labels: which version is released.

use std::collections::BTreeSet;

use agentcfg_client::model::{
    AgentFilter, AgentLabel, LabelFilter, LabelHistoryFilter, LabelMove, LabelMoves, LabelRestore, LabelTarget, Patch,
    PromotedLabel, Promotion, RestoredLabel,
};
use agentcfg_core::validate::nearest;

use super::actors::ActorNames;
use super::context::Context;
use crate::args::Label;
use crate::failure::{Code, CommandFailure, Result};
use crate::output::{minute, or_dash};
use crate::session::{Session, parse};

pub async fn run(context: &mut Context, command: Label) -> Result<Code> {
    let session = context.session()?;
    let output = &mut context.output;
    match command {
        Label::Set {
            agent,
            label,
            version,
            expected,
            reason,
        } => {
            let expected_version = match expected.as_deref() {
                None => Patch::Absent,
                Some("none") => Patch::Null,
                Some(version) => Patch::Set(version_number("expected", version)?),
            };
            // No label consists of digits alone.
            let target = match version.bytes().all(|byte| byte.is_ascii_digit()) {
                true => LabelTarget::new(version_number("version", &version)?),
                false => LabelTarget::of_label(parse("label", &version)?),
            };
            let target = target.expected_version(expected_version);
            let client = session.because(&reason)?;
            let label = client
                .set_label(session.named, &agent.agent, &parse("label", &label)?, &target)
                .await?;
            output.show(&label, |output| {
                output.line(format_args!(
                    "{} of {} is version {}",
                    label.label, label.agent_id, label.version
                ))
            })?;
        }
        Label::Remove { agent, label, reason } => {
            let client = session.because(&reason)?;
            client
                .remove_label(session.named, &agent.agent, &parse("label", &label)?)
                .await?;
            let done = serde_json::json!({"success": true});
            output.show(&done, |output| {
                output.line(format_args!("removed {label} of {}", agent.agent))
            })?;
        }
        Label::List { agent, label } => {
            let filter = LabelFilter::default()
                .agent_id(agent.as_deref())
                .label(label.as_deref());
            let workspace = session.workspace().await?;
            let labels = session.client.list_labels(workspace, filter).await?;
            let names = ActorNames::read(&session, workspace, output).await;
            output.show(&labels, |output| {
                let row = |label: &AgentLabel| {
                    vec![
                        label.agent_id.to_string(),
                        label.label.to_string(),
                        label.version.to_string(),
                        minute(label.updated_at),
                        names.shown(&label.actor),
                    ]
                };
                output.table(
                    &["AGENT", "LABEL", "VERSION", "UPDATED", "ACTOR"],
                    labels.iter().map(row).collect(),
                )
            })?;
        }
        Label::Promote {
            from,
            to,
            agents,
            set,
            base,
            reason,
            dry_run,
        } => {
            let ids = agents
                .iter()
                .map(|agent| parse("agent_id", agent))
                .collect::<Result<Vec<_>>>()?;
            let promotion = Promotion::new(parse("label", &from)?, parse("label", &to)?)
                .agent_ids((!ids.is_empty()).then_some(ids))
                .set(set.map(|set| parse("set", &set)).transpose()?)
                .base(base.map(|base| parse("base", &base)).transpose()?);
            let client = session.because(&reason)?;
            let workspace = session.workspace().await?;
            let promoted = client.promote_labels(workspace, &promotion, dry_run).await?;
            output.show(&promoted, |output| {
                let row = |label: &PromotedLabel| {
                    let (agent, now) = (label.agent_id.to_string(), label.version.to_string());
                    vec![agent, label.label.to_string(), or_dash(label.previous_version), now]
                };
                let after = if dry_run { "AFTER" } else { "NOW" };
                output.table(&["AGENT", "LABEL", "BEFORE", after], promoted.iter().map(row).collect())
            })?;
            if promoted.is_empty() {
                return Err(nothing_to_promote(&session, &from, promotion.set.as_deref()).await);
            }
            if dry_run && !output.is_json() {
                output.note(NOTHING_MOVED);
            }
        }
        Label::History {
            label,
            agent,
            limit,
            before,
        } => {
            let filter = LabelHistoryFilter::default()
                .agent_id(agent.as_deref())
                .limit(limit)
                .before(before);
            let workspace = session.workspace().await?;
            let rows = session
                .client
                .label_history(workspace, &parse("label", &label)?, filter)
                .await?;
            let names = ActorNames::read(&session, workspace, output).await;
            output.show(&rows, |output| {
                let row = |row: &LabelMoves| {
                    vec![
                        row.revision.to_string(),
                        minute(row.created_at),
                        names.shown(&row.actor),
                        moves(&row.moves),
                        or_dash(row.message.as_ref()),
                    ]
                };
                output.table(
                    &["REVISION", "TIME", "ACTOR", "MOVES", "MESSAGE"],
                    rows.iter().map(row).collect(),
                )
            })?;
            if rows.is_empty() && !output.is_json() {
                let of = agent.map_or(String::new(), |agent| format!(" of the agent {agent}"));
                let earlier = before.map_or(String::new(), |before| format!(" before revision {before}"));
                output.note(format_args!("The label {label}{of} was never moved{earlier}."));
            }
        }
        Label::Restore {
            label,
            revision,
            base,
            reason,
            dry_run,
        } => {
            let restore = LabelRestore::new(parse("label", &label)?, revision)
                .base(base.map(|base| parse("base", &base)).transpose()?);
            let client = session.because(&reason)?;
            let workspace = session.workspace().await?;
            let restored = client.restore_label(workspace, &restore, dry_run).await?;
            output.show(&restored, |output| {
                let row = |label: &RestoredLabel| {
                    let (agent, name) = (label.agent_id.to_string(), label.label.to_string());
                    vec![agent, name, or_dash(label.previous_version), or_dash(label.version)]
                };
                let after = if dry_run { "AFTER" } else { "NOW" };
                output.table(&["AGENT", "LABEL", "BEFORE", after], restored.iter().map(row).collect())
            })?;
            if !output.is_json() {
                match (restored.is_empty(), dry_run) {
                    (true, _) => output.note(format_args!(
                        "The label {label} is where it was at revision {revision}."
                    )),
                    (false, true) => output.note(NOTHING_MOVED),
                    (false, false) => {}
                }
            }
        }
    }
    Ok(Code::Done)
}

const NOTHING_MOVED: &str = "This is a dry run: no label was moved.";

/// The most moves that a row names.
const SHOWN: usize = 3;

/// The moves of a commit in one line.
fn moves(moves: &[LabelMove]) -> String {
    let one = |moved: &LabelMove| format!("{} {}→{}", moved.agent_id, or_dash(moved.from), or_dash(moved.to));
    let mut line = moves.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    if moves.len() > SHOWN {
        line += &format!(" and {} more", moves.len() - SHOWN);
    }
    line
}

/// Why a promotion moved nothing, with the label that was probably meant.
async fn nothing_to_promote(session: &Session, from: &str, set: Option<&str>) -> CommandFailure {
    // The credential may be one that lists nothing.
    let names = labels_in_use(session).await.unwrap_or_default();
    let of_set = set.map(|set| format!(" of the set {set}")).unwrap_or_default();
    let failure = CommandFailure::error(format_args!("no active agent{of_set} has the label {from}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(from, &names) {
        Some(meant) if meant != from => failure.hint(format_args!("Did you mean {meant}?")),
        _ => failure,
    }
}

/// The labels of active agents.
async fn labels_in_use(session: &Session) -> Result<BTreeSet<String>> {
    let workspace = session.workspace().await?;
    let agents = session.client.list_agents(workspace, &AgentFilter::default()).await?;
    let agents: BTreeSet<&str> = agents.value.iter().map(|agent| agent.agent_id.as_str()).collect();
    let labels = session.client.list_labels(workspace, LabelFilter::default()).await?;
    let labels = labels.iter().filter(|label| agents.contains(label.agent_id.as_str()));
    // The list of labels has no row of `latest`, which each agent has.
    let latest = (!agents.is_empty()).then(|| "latest".to_owned());
    Ok(labels.map(|label| label.label.to_string()).chain(latest).collect())
}

/// A version on the command line.
fn version_number(name: &str, text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        let rule = format!("{name} must be the number of a version, got {text:?}");
        CommandFailure::error(rule)
    })
}
