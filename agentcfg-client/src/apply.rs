//! Apply: many agents in one change.

use agentcfg_core::model::{AppliedAgents, ApplyAgents, WorkspaceId};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

impl Client {
    /// Brings agents to the state that the body names, all in one change or none.
    ///
    /// With `dry_run` the answer is the same, and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for the body, [`is_forbidden`](Error::is_forbidden) without
    /// `agents:configure`, [`is_precondition_failed`](Error::is_precondition_failed) when an agent has changed since
    /// [`ApplyAgents::base`], [`is_conflict`](Error::is_conflict) for an agent of another set,
    /// [`is_plan_limit`](Error::is_plan_limit) when the plan allows fewer active agents.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// use agentcfg_client::model::{AgentSpec, ApplyAgents};
    /// let writer = AgentSpec::new("writer".parse()?, "Writer").model("gpt-5.5");
    /// let docs = ApplyAgents::of(vec![writer]).set(Some("docs".parse()?)).prune(true);
    /// let plan = client.apply_agents(workspace, &docs, true).await?;
    /// // Apply what was shown, unless another client has changed one of the agents meanwhile.
    /// let docs = docs.base(plan.cursor);
    /// for agent in client.apply_agents(workspace, &docs, false).await?.results {
    ///     println!("{} {}", agent.action, agent.agent_id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply_agents(
        &self,
        workspace: WorkspaceId,
        body: &ApplyAgents,
        dry_run: bool,
    ) -> Result<AppliedAgents, Error> {
        let call = Call::post("/api/agents/apply")
            .query("workspace_id", workspace)
            .message(self.message());
        self.send(call.dry_run(dry_run).json(body), ApiResponse::json).await
    }
}
