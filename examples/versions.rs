//! Versions over the REST API: an agent is changed, compared, and given its earlier content again.
//!
//! Start a server with `agentcfg-server dev`, copy the API key that it prints, and run
//!
//! ```text
//! AGENTCFG_URL=http://127.0.0.1:7420 AGENTCFG_API_KEY=svc_… cargo run -p agentcfg-examples --example versions
//! ```

use std::error::Error;

use agentcfg_client::Client;
use agentcfg_client::model::{AgentPatch, NewAgent, Precondition, Rollback, VersionPage};
use agentcfg_examples::{setting, workspace};

const AGENT_ID: &str = "example-editor";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(setting("AGENTCFG_URL")?)
        .api_key(setting("AGENTCFG_API_KEY")?)
        .build()?;
    let workspace = workspace(&client).await?;
    let new = NewAgent::new(workspace, AGENT_ID.parse()?, "Editor")
        .persona_prompt("You edit texts.\nKeep the author's voice.\n");
    let first = match client.create_agent(&new).await {
        // A deleted agent keeps its identifier, so a second run restores the agent of the first one.
        Err(error) if error.is_conflict() => client.restore_agent(None, AGENT_ID, &Precondition::None).await?,
        created => created?,
    };
    println!("{} is at version {}", first.value.agent_id, first.version);

    // A message is kept with the version and in the audit log.
    let why = client.with_message("Readers asked for shorter texts".parse()?);
    let patch = AgentPatch::default().persona_prompt("You edit texts.\nCut every second sentence.\n");
    let second = why
        .update_agent(None, AGENT_ID, &patch, &Precondition::matches(first.tag))
        .await?;

    let diff = client
        .diff_versions(None, AGENT_ID, first.version, second.version)
        .await?;
    print!("{}", diff.prompt_diff.unwrap_or_default());

    let back = client
        .roll_back_agent(
            None,
            AGENT_ID,
            &Rollback::to_version(first.version),
            &Precondition::matches(second.tag),
        )
        .await?;
    println!("version {} has the content of version {}", back.version, first.version);

    // What the agent was just before the rollback, and everything that it ever was.
    let bad = client.agents().at(second.value.updated_at).get(AGENT_ID).await?;
    println!("before that it was version {}", bad.version);
    for version in client.list_versions(None, AGENT_ID, VersionPage::default()).await? {
        let why = version.message.as_ref().map_or("", |message| message.as_str());
        println!("{:>4}  {}  {why}", version.version, version.created_at);
    }
    client.delete_agent(None, AGENT_ID, &Precondition::None).await?;
    Ok(())
}
