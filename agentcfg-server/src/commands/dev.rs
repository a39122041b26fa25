//! `dev`: everything in one go, for trying out.

use std::net::SocketAddr;
use std::process::ExitCode;

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Scope, Workspace};
use agentcfg_core::session::SESSION_SECONDS;

use super::CommandError;
use super::serve::{announce, runtime};
use crate::cli::DevArgs;
use crate::config::{Config, Flags};
use crate::server::{self, Server};
use crate::{signals, telemetry};

/// The user that the token speaks for.
const USER: &str = "dev";

pub(super) fn run(args: &DevArgs) -> Result<ExitCode, CommandError> {
    let mut config = Config::load(Flags::from(args), std::env::vars_os())?;
    // Whoever tries things out may try the plans too.
    config.operators.push(USER.to_owned());
    telemetry::init(&config.log, config.log_format)?;
    runtime()?.block_on(async {
        let listener = server::bind(config.listen, "--listen").await?;
        let shutdown = signals::shutdown()?;
        let server = Server::open(config)?;
        let token = server.sessions().issue(USER, SESSION_SECONDS, SystemClock.now())?;
        let (workspace, key) = workspace(server.service()).await?;
        let data = server.dir().path().to_owned();
        let ready = move |address: SocketAddr| {
            let data = std::fs::canonicalize(&data).unwrap_or(data).display().to_string();
            print!("{}", welcome(address, &workspace, key.as_deref(), &token, &data));
            announce(address);
        };
        let drained = server.run(listener, ready, shutdown).await?;
        Ok(if drained.is_complete() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

/// The workspace to play in: the one of an earlier run, or a new one with an API key.
async fn workspace(service: &AgentCfg) -> Result<(Workspace, Option<String>), CommandError> {
    let caller = service.trusted_user(USER)?;
    if let Some(view) = service.list_workspaces(&caller).await?.into_iter().next() {
        return Ok((view.workspace, None));
    }
    let workspace = service
        .create_workspace(
            &caller,
            NewWorkspace {
                name: "Playground".to_owned(),
            },
        )
        .await?;
    let new = NewApiKey {
        workspace_id: workspace.id,
        name: "dev".to_owned(),
        environment: Environment::Development,
        scope: Scope::Admin,
        expires_at: None,
        rate_limit: Some(10_000),
    };
    let created = service.create_api_key(&caller, new).await?;
    Ok((workspace, Some(created.key)))
}

fn welcome(address: SocketAddr, workspace: &Workspace, key: Option<&str>, token: &str, data: &str) -> String {
    let id = workspace.id;
    let (credential, key_line) = match key {
        Some(key) => (
            key,
            format!("API key (admin)  {key}\n                 shown this once; only a hash of it is stored"),
        ),
        None => (
            token,
            format!(
                "API key          was shown when this workspace was made; make another with\n                 \
                 curl -X POST $URL/api/api-keys -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \
                 -d '{{\"workspace_id\":\"{id}\",\"name\":\"another\",\"environment\":\"development\",\"scope\":\"admin\"}}'"
            ),
        ),
    };
    format!(
        r#"agentcfg for trying out. Everything is kept in {data}

Workspace        {id} ({name}, plan {plan})
{key_line}
Session token    {token}
                 user {USER}, good for one hour; the next with: agentcfg-server token --user {USER} --data {data}

Set these, and copy the lines below:

URL=http://{address}
KEY={credential}
TOKEN={token}

# list the agents
curl "$URL/api/agents/configs?workspace_id={id}" -H "Authorization: Bearer $KEY"

# create one
curl -X POST "$URL/api/agents/configs" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{{"workspace_id":"{id}","agent_id":"writer","display_name":"Writer","parameters":{{"warmth":70}}}}'

# change it
curl -X PATCH "$URL/api/agents/configs?agent_id=writer" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{{"persona_prompt":"You write short sentences."}}'

# delete it
curl -X DELETE "$URL/api/agents/configs?agent_id=writer" -H "Authorization: Bearer $KEY"

Everything else: $URL/openapi.json        Stop: Ctrl-C        Start over: remove {data}

"#,
        name = workspace.name,
        plan = workspace.plan,
    )
}
