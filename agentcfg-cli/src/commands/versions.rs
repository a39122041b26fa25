//! Versions of agents: history, comparison, and the way back.

use agentcfg_client::model::{AgentVersion, Precondition, Rollback, VersionPage, VersionSelector};

use super::actors::ActorNames;
use super::context::Context;
use super::plan;
use crate::args::Reason;
use crate::failure::{Code, Result};
use crate::output::{minute, or_dash};
use crate::session::parse;

pub async fn list(context: &mut Context, agent_id: &str, limit: Option<u32>, before: Option<u64>) -> Result<Code> {
    let session = context.session()?;
    let page = VersionPage::default().before(before).limit(limit);
    let versions = session.client.list_versions(session.named, agent_id, page).await?;
    let names = ActorNames::read(&session, session.workspace().await?, &context.output).await;
    context.output.show(&versions, |output| {
        let row = |version: &AgentVersion| {
            let labels: Vec<_> = version.labels.iter().map(|label| label.as_str()).collect();
            vec![
                version.version.to_string(),
                labels.join(" "),
                minute(version.created_at),
                or_dash(version.actor.as_ref().map(|actor| names.shown(actor))),
                message(version),
            ]
        };
        output.table(
            &["VERSION", "LABELS", "CREATED", "ACTOR", "MESSAGE"],
            versions.iter().map(row).collect(),
        )
    })?;
    context.output.note_of_page(versions.len(), limit);
    Ok(Code::Done)
}

fn message(version: &AgentVersion) -> String {
    let from = version.restored_from.map(|from| format!("(from version {from})"));
    let said = version.message.as_ref().map(ToString::to_string);
    let parts: Vec<_> = said.into_iter().chain(from).collect();
    parts.join(" ")
}

pub async fn diff(context: &mut Context, agent_id: &str, from: &str, to: &str) -> Result<Code> {
    let session = context.session()?;
    let diff = session
        .client
        .diff_versions(
            session.named,
            agent_id,
            VersionSelector::from_text(from),
            VersionSelector::from_text(to),
        )
        .await?;
    context
        .output
        .show(&diff, |output| plan::changes(output, &diff.changes))?;
    if diff.changes.is_empty() && !context.output.is_json() {
        context.output.note(format_args!(
            "Versions {} and {} have the same content.",
            diff.from, diff.to
        ));
    }
    Ok(Code::Done)
}

pub async fn roll_back(context: &mut Context, agent_id: &str, to: &str, reason: &Reason) -> Result<Code> {
    let target = match VersionSelector::from_text(to) {
        VersionSelector::Version(version) => Rollback::to_version(version),
        _ => Rollback::to_label(parse("label", to)?),
    };
    let session = context.session()?;
    let client = session.because(reason)?;
    // Compared with the version after the rollback, it shows whether a new one was recorded. Why it cannot be read is
    // in the failure of the rollback.
    let before = client.get_version(session.named, agent_id, VersionSelector::Current);
    let before = match before.await {
        Ok(before) => Some(before.version),
        Err(error) if error.is_connect() || error.is_timeout() => return Err(error.into()),
        Err(_) => None,
    };
    let agent = client
        .roll_back_agent(session.named, agent_id, &target, &Precondition::None)
        .await?;
    context
        .output
        .show(&agent.value, |output| match before == Some(agent.version) {
            true => output.line(format_args!(
                "{agent_id} has the content of {to} already, as version {}; nothing was changed",
                agent.version
            )),
            false => output.line(format_args!(
                "{agent_id} has the content of {to} again, as version {}",
                agent.version
            )),
        })?;
    Ok(Code::Done)
}
