//! What the agents are doing.

use agentcfg_client::model::AgentStatus;

use super::context::Context;
use crate::failure::{Code, Result};
use crate::output::or_dash;

pub async fn list(context: &mut Context) -> Result<Code> {
    let session = context.session()?;
    let status = session.client.agent_status(session.workspace().await?).await?;
    context.output.show(&status, |output| {
        let row = |status: &AgentStatus| {
            vec![
                status.agent_id.to_string(),
                status.display_name.clone(),
                status.status.to_string(),
                or_dash(status.current_task_id.as_ref()),
                or_dash(status.current_task_title.as_ref()),
            ]
        };
        output.table(
            &["AGENT", "NAME", "STATUS", "TASK", "TITLE"],
            status.iter().map(row).collect(),
        )
    })?;
    Ok(Code::Done)
}
