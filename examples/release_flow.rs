//! A release with labels: edit, try as `staging`, release as `production`, and take the release back.
//!
//! Start a server with `agentcfg-server dev`, copy the API key that it prints (moving labels needs one of scope
//! `admin`), and run
//!
//! ```text
//! AGENTCFG_URL=http://127.0.0.1:7420 AGENTCFG_API_KEY=svc_… cargo run -p agentcfg-examples --example release_flow
//! ```

use std::error::Error;

use agentcfg_client::Client;
use agentcfg_client::model::{AgentPatch, LabelTarget, NewAgent, Precondition, Promotion};
use agentcfg_examples::{setting, workspace};

const AGENT_ID: &str = "example-support";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(setting("AGENTCFG_URL")?)
        .api_key(setting("AGENTCFG_API_KEY")?)
        .build()?;
    let workspace = workspace(&client).await?;
    let (staging, production) = ("staging".parse()?, "production".parse()?);

    let new = NewAgent::new(workspace, AGENT_ID.parse()?, "Support").model("gpt-5.5");
    let good = match client.create_agent(&new).await {
        // A deleted agent keeps its identifier and its labels, so a second run restores the agent of the first one.
        Err(error) if error.is_conflict() => client.restore_agent(None, AGENT_ID, &Precondition::None).await?,
        created => created?,
    };
    client
        .set_label(None, AGENT_ID, &production, &LabelTarget::new(good.version))
        .await?;

    // An edit makes a version and releases nothing.
    let patch = AgentPatch::default().model(format!("experimental-{}", good.version));
    let edited = client.update_agent(None, AGENT_ID, &patch, &Precondition::None).await?;
    let released = client.agents().label("production").get(AGENT_ID).await?;
    println!("current version {}, in production {}", edited.version, released.version);

    // What was tried is what is released, whatever has been edited since.
    client
        .set_label(None, AGENT_ID, &staging, &LabelTarget::new(edited.version))
        .await?;
    let release = Promotion::new(staging, production.clone()).agent_ids(Some(vec![AGENT_ID.parse()?]));
    for label in client.promote_labels(workspace, &release, false).await? {
        println!("released version {} of {}", label.version, label.agent_id);
    }

    // Back, but only if no other release came in between (compare-and-set).
    let back = LabelTarget::new(good.version).expected_version(edited.version);
    let why = client.with_message("Too many wrong answers".parse()?);
    why.set_label(None, AGENT_ID, &production, &back).await?;
    match why.set_label(None, AGENT_ID, &production, &back).await {
        Err(error) if error.is_precondition_failed() => println!("refused as it should be: {error}"),
        other => return Err(format!("a stale expectation was met: {other:?}").into()),
    }
    let released = client.agents().label("production").get(AGENT_ID).await?;
    println!("in production again: version {}", released.version);
    client.delete_agent(None, AGENT_ID, &Precondition::None).await?;
    Ok(())
}
