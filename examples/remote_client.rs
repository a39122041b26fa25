//! The life of an agent over the REST API: created, updated, listed, deleted.
//!
//! Start a server with `agentcfg-server dev`, copy the API key that it prints, and run
//!
//! ```text
//! AGENTCFG_URL=http://127.0.0.1:7420 AGENTCFG_API_KEY=svc_… cargo run -p agentcfg-examples --example remote_client
//! ```
//!
//! `WORKSPACE_ID` names the workspace; the default is that of the API key.

use std::error::Error;

use agentcfg_client::model::{AgentPatch, NewAgent, Patch, Precondition};
use agentcfg_client::{AgentFilter, Client};
use agentcfg_examples::{setting, workspace};

const AGENT_ID: &str = "example-writer";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(setting("AGENTCFG_URL")?)
        .api_key(setting("AGENTCFG_API_KEY")?)
        .build()?;
    let workspace = workspace(&client).await?;

    // A deleted agent keeps its identifier, so a second run restores the agent of the first one.
    let new = NewAgent::new(workspace, AGENT_ID.parse()?, "Writer")
        .role("author")
        .capabilities(vec!["draft".into(), "edit".into()]);
    let agent = match client.create_agent(&new).await {
        Err(error) if error.is_conflict() => {
            println!("{error}");
            match client.get_agent(workspace, AGENT_ID).await {
                Err(error) if error.is_not_found() => {
                    client
                        .restore_agent(Some(workspace), AGENT_ID, &Precondition::None)
                        .await?
                }
                active => active?,
            }
        }
        created => created?,
    };
    println!("{} in version {}", agent.value.agent_id, agent.tag);

    // The condition (compare-and-set) prevents overwriting another writer's change.
    let unchanged = Precondition::matches(agent.tag);
    let patch = AgentPatch::default().model("gpt-5.5").role(Patch::Null);
    let changed = client
        .update_agent(Some(workspace), AGENT_ID, &patch, &unchanged)
        .await?;
    println!(
        "changed at {}, now in version {}",
        changed.value.updated_at, changed.tag
    );

    // The update changed the tag, so the same condition fails now.
    match client.update_agent(Some(workspace), AGENT_ID, &patch, &unchanged).await {
        Err(error) if error.is_precondition_failed() => println!("refused as it should be: {error}"),
        other => return Err(format!("a stale condition was met: {other:?}").into()),
    }

    for agent in client.list_agents(workspace, &AgentFilter::default()).await?.value {
        println!("{:20} {:10} {}", agent.agent_id, agent.agent_type, agent.display_name);
    }

    client
        .delete_agent(Some(workspace), AGENT_ID, &Precondition::matches(changed.tag))
        .await?;
    if let Some(rate) = client.rate_limit() {
        println!(
            "deleted; {} of {} requests left until {}",
            rate.remaining, rate.limit, rate.reset
        );
    }
    Ok(())
}
