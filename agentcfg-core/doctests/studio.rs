// The set-up that the examples of the service share. They include it in hidden lines.

use agentcfg_core::model::*;
use agentcfg_core::store::MemoryStore;
use agentcfg_core::{AgentCfg, Caller};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs an example on a service in memory, with the user `ada` and her workspace, which has the agent `writer`.
fn run(example: impl AsyncFnOnce(AgentCfg, Caller, WorkspaceId) -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada")?;
        let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
        service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
        example(service, ada, studio.id).await
    })
}
