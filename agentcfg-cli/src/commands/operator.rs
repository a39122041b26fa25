//! What operators of a deployment do in all workspaces.

use agentcfg_client::model::Workspace;

use super::context::Context;
use super::keys::{end, not_the_key_itself};
use crate::args::Operator;
use crate::failure::{Code, Result};
use crate::output::{Output, minute, or_dash};
use crate::session::parse;
use crate::terminal;

pub async fn run(context: &mut Context, command: Operator) -> Result<Code> {
    let client = context.session()?.client;
    let output = &mut context.output;
    match command {
        Operator::Workspaces => {
            let workspaces = client.list_all_workspaces().await?;
            output.show(&workspaces, |output| {
                let row = |workspace: &Workspace| {
                    vec![
                        workspace.id.to_string(),
                        workspace.name.clone(),
                        workspace.plan.to_string(),
                        minute(workspace.created_at),
                    ]
                };
                output.table(
                    &["WORKSPACE_ID", "NAME", "PLAN", "CREATED"],
                    workspaces.iter().map(row).collect(),
                )
            })?;
        }
        Operator::Key { key } => {
            not_the_key_itself(&key)?;
            let key = client.find_api_key(&key).await?;
            output.show(&key, |output| {
                let row = vec![
                    key.id.to_string(),
                    key.workspace_id.to_string(),
                    key.name.clone(),
                    key.scope.to_string(),
                    or_dash(key.last_used_at.map(minute)),
                    or_dash(end(&key)),
                ];
                output.table(
                    &["KEY_ID", "WORKSPACE_ID", "NAME", "SCOPE", "LAST USED", "END"],
                    vec![row],
                )
            })?;
        }
        Operator::RevokeKey { key, yes } => {
            not_the_key_itself(&key)?;
            if !yes && terminal::is_attended() {
                terminal::confirm(&format!("Revoke the key {key}? This cannot be undone."))?;
            }
            client.revoke_any_api_key(&key).await?;
            done(output, &format!("revoked {key}"))?;
        }
        Operator::RemoveUser { user, yes } => {
            let user_id = parse("user_id", &user)?;
            if !yes && terminal::is_attended() {
                terminal::confirm(&format!("Remove the user {user} from all workspaces?"))?;
            }
            client.remove_user(&user_id).await?;
            done(output, &format!("removed {user}"))?;
        }
    }
    Ok(Code::Done)
}

fn done(output: &mut Output, what: &str) -> Result<()> {
    let success = serde_json::json!({"success": true});
    output.show(&success, |output| output.line(what))
}
