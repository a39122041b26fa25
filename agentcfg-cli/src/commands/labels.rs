//! Labels: which version is released.

use std::collections::BTreeSet;

use agentcfg_client::model::{AgentLabel, LabelFilter, LabelTarget, Patch, PromotedLabel, Promotion};
use agentcfg_core::validate::nearest;

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
                Some(version) => Patch::Set(parse("expected", version)?),
            };
            // No label consists of digits alone.
            let target = match version.bytes().all(|byte| byte.is_ascii_digit()) {
                true => LabelTarget::new(parse("version", &version)?),
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
            let labels = session.client.list_labels(session.workspace().await?, filter).await?;
            output.show(&labels, |output| {
                let row = |label: &AgentLabel| {
                    vec![
                        label.agent_id.to_string(),
                        label.label.to_string(),
                        label.version.to_string(),
                        minute(label.updated_at),
                        label.actor.id.clone(),
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
            reason,
            dry_run,
        } => {
            let ids = agents
                .iter()
                .map(|agent| parse("agent_id", agent))
                .collect::<Result<Vec<_>>>()?;
            let promotion = Promotion::new(parse("label", &from)?, parse("label", &to)?)
                .agent_ids((!ids.is_empty()).then_some(ids));
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
                return Err(nothing_to_promote(&session, &from).await?);
            }
            if dry_run && !output.is_json() {
                output.note("This is a dry run: no label was moved.");
            }
        }
    }
    Ok(Code::Done)
}

/// Why a promotion moved nothing, with the label that was probably meant.
async fn nothing_to_promote(session: &Session, from: &str) -> Result<CommandFailure> {
    let labels = session
        .client
        .list_labels(session.workspace().await?, LabelFilter::default())
        .await?;
    let names: BTreeSet<&str> = labels.iter().map(|label| label.label.as_str()).collect();
    let failure = CommandFailure::error(format_args!("no active agent has the label {from}"));
    let names: Vec<&str> = names.into_iter().collect();
    Ok(match nearest(from, &names) {
        Some(meant) if meant != from => failure.hint(format_args!("Did you mean {meant}?")),
        _ => failure,
    })
}
