//! `dev`: a workspace, credentials and a running server, for a first try.

use std::net::SocketAddr;
use std::process::ExitCode;

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::model::{AgentFilter, AgentState, Environment, NewApiKey, NewWorkspace, Scope, Workspace};
use agentcfg_core::session::SESSION_SECONDS;
use zeroize::Zeroizing;

use super::error::CommandError;
use super::preconditions::require_local_provider;
use super::program::program;
use super::runtime::runtime;
use super::serve::announce;
use super::stdout::{note, print};
use crate::process::cli::DevArgs;
use crate::process::config::{Config, Flags};
use crate::process::server::{self, Server};
use crate::process::{signals, telemetry};

/// The user of the printed session token.
const USER: &str = "dev";

pub(super) fn run(args: &DevArgs) -> Result<ExitCode, CommandError> {
    let mut config = Config::load(Flags::from(args), std::env::vars_os())?;
    require_local_provider(&config, "dev")?;
    // The user may try out changes of plans too.
    config.operators.push(USER.to_owned());
    telemetry::init(&config)?;
    runtime()?.block_on(async {
        let listener = server::bind(config.listen, "--listen").await?;
        let shutdown = signals::shutdown()?;
        let server = Server::open(config).await?;
        let sessions = server.sessions().ok_or("this server issues no session tokens")?;
        let token = sessions.issue(USER, SESSION_SECONDS, SystemClock.now())?;
        let (workspace, key) = workspace(server.service()).await?;
        let agent = free_name(server.service(), &workspace).await?;
        let login = login(&server).await?;
        let config = server.config().clone();
        let dir = server.dir().map(|dir| dir.path().to_owned());
        let ready = move |address: SocketAddr| {
            let data = dir.map(|dir| std::fs::canonicalize(&dir).unwrap_or(dir).display().to_string());
            let base = format!("{}://{address}", config.scheme());
            let link = login.map(|code| config.login_link(address, &code));
            let text = welcome(
                &base,
                (&workspace, &agent),
                key.as_deref(),
                &token,
                link.as_deref(),
                data.as_deref(),
            );
            if let Err(error) = print(&text) {
                let lost = match key {
                    Some(_) => "; the API key is lost, and the next `dev` prints a session token that can make another",
                    None => "",
                };
                note!("note: {error}{lost}");
            }
            announce(&format!("{}://{address}", config.scheme()));
        };
        server.run(listener, ready, shutdown).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The workspace to try out: the one of an earlier run, or a new one with an API key.
async fn workspace(service: &AgentCfg) -> Result<(Workspace, Option<String>), CommandError> {
    let caller = service.trusted_user(USER)?;
    if let Some(view) = service.list_workspaces(&caller).await?.into_iter().next() {
        return Ok((view.workspace, None));
    }
    let workspace = service
        .create_workspace(&caller, NewWorkspace::new("Playground"))
        .await?;
    let new = NewApiKey::new(workspace.id, "dev", Environment::Development, Scope::Admin).rate_limit(10_000);
    let created = service.create_api_key(&caller, new).await?;
    Ok((workspace, Some(created.key)))
}

/// An `agent_id` for the agent that the printed lines create, which no agent of the workspace has.
async fn free_name(service: &AgentCfg, workspace: &Workspace) -> Result<String, CommandError> {
    let caller = service.trusted_user(USER)?;
    let mut name = "writer".to_owned();
    for number in 2_u64.. {
        let filter = AgentFilter::default()
            .agent_id(Some(name.parse()?))
            .state(AgentState::All);
        if service
            .list_agents(&caller, workspace.id, &filter)
            .await?
            .value
            .is_empty()
        {
            break;
        }
        name = format!("writer-{number}");
    }
    Ok(name)
}

/// The code of the login link, if there is a dashboard.
async fn login(server: &Server) -> Result<Option<Zeroizing<String>>, CommandError> {
    if !server.config().dashboard {
        return Ok(None);
    }
    let user = USER.parse()?;
    Ok(Some(server.service().make_login_code(&user).await?.code))
}

fn welcome(
    base: &str,
    (workspace, agent): (&Workspace, &str),
    key: Option<&str>,
    token: &str,
    link: Option<&str>,
    data: Option<&str>,
) -> String {
    // With a database, the settings name it for the other commands too.
    let of_data = data.map_or_else(String::new, |data| format!(" --data {data}"));
    let data = data.unwrap_or("the database");
    let dashboard = link.map_or_else(String::new, |link| {
        format!("Dashboard        {link}\n                 the link signs {USER} in once, within 5 minutes\n")
    });
    let (id, name, plan) = (workspace.id, &workspace.name, workspace.plan);
    let credential = key.unwrap_or(token);
    let key = key.map_or_else(
        || "was shown when the workspace was made; the lines below use the session token".to_owned(),
        |key| format!("{key}\n                 admin; shown this once, only a hash of it is stored"),
    );
    let program = program();
    let configs = format!("{base}/api/agents/configs");
    let auth = format!("-H 'Authorization: Bearer {credential}'");
    let json = "-H 'Content-Type: application/json'";
    format!(
        r#"agentcfg for trying out. Everything is kept in {data}

Workspace        {id} ({name}, plan {plan})
API key          {key}
Session token    {token}
                 user {USER}, good for one hour; the next with: {program} token --user {USER}{of_data}
{dashboard}
# list the agents
curl '{configs}?workspace_id={id}' {auth}

# create one
curl -X POST '{configs}' {auth} {json} -d '{{"workspace_id":"{id}","agent_id":"{agent}","display_name":"Writer","parameters":{{"warmth":70}}}}'

# change it
curl -X PATCH '{configs}?workspace_id={id}&agent_id={agent}' {auth} {json} -d '{{"persona_prompt":"You write short sentences."}}'

# delete it
curl -X DELETE '{configs}?workspace_id={id}&agent_id={agent}' {auth}

# make another API key
curl -X POST '{base}/api/api-keys' -H 'Authorization: Bearer {token}' {json} -d '{{"workspace_id":"{id}","name":"another","environment":"development","scope":"write"}}'

Everything else: {base}/docs
Stop: Ctrl-C. Start over: remove {data}

"#
    )
}
