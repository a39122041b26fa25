//! The audit log.

use agentcfg_client::model::{AuditEntry, AuditFilter};

use super::actors::ActorNames;
use super::context::Context;
use crate::args::Audit;
use crate::failure::{Code, Result};
use crate::output::{changed, minute, or_dash};
use crate::session::parse;

pub async fn list(context: &mut Context, filter: Audit) -> Result<Code> {
    let limit = filter.limit;
    let filter = AuditFilter::default()
        .actor(filter.actor)
        .action(filter.action)
        .target_type(filter.target_type)
        .target_id(filter.target_id)
        .since(filter.since.map(|at| parse("since", &at)).transpose()?)
        .until(filter.until.map(|at| parse("until", &at)).transpose()?)
        .before(filter.before)
        .offset(0)
        .limit(filter.limit);
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let entries = session.client.search_audit_log(workspace, &filter).await?;
    let names = ActorNames::read(&session, workspace, &context.output).await;
    context.output.show(&entries, |output| {
        let row = |entry: &AuditEntry| {
            vec![
                entry.revision.to_string(),
                minute(entry.created_at),
                names.shown(&entry.actor),
                entry.action.to_string(),
                entry.target.id.clone(),
                or_dash(entry.message.as_ref()),
                changed(&entry.changes),
            ]
        };
        let header = ["REVISION", "TIME", "ACTOR", "ACTION", "TARGET", "MESSAGE", "CHANGED"];
        output.table(&header, entries.iter().map(row).collect())
    })?;
    context.output.note_of_page(entries.len(), limit);
    Ok(Code::Done)
}
