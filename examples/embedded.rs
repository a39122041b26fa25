//! The whole service inside your own program: no server, no network, one file.
//!
//! ```text
//! cargo run -p agentcfg-examples --example embedded
//! ```

use std::error::Error;

use agentcfg_core::AgentCfg;
use agentcfg_core::model::AgentFilter;
use agentcfg_core::model::{NewAgent, NewWorkspace};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // Your app uses a permanent path.
    let store = RedbStore::open(dir.path().join("agents.redb"), RedbOptions::default())?;
    let service = AgentCfg::builder(store).build();

    // Your app authenticates its users; the service knows what they may do.
    let ada = service.trusted_user("ada")?;
    let name = "Studio".to_owned();
    let studio = service.create_workspace(&ada, NewWorkspace::new(name)).await?;
    service
        .create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer"))
        .await?;
    let agents = service.list_agents(&ada, studio.id, &AgentFilter::default()).await?;
    for agent in agents.value.agents()? {
        println!("{} since {}", agent.agent_id, agent.created_at);
    }

    // A graceful shutdown: the app takes no more requests, waits for those in flight, and then writes the last uses of
    // API keys, which are otherwise written twice a minute. Every change was durable when its method returned.
    service.shutdown().await?;
    Ok(())
}
