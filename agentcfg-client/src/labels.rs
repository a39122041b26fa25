//! Labels of versions.

use agentcfg_core::model::{
    AgentId, AgentLabel, IdRef, Label, LabelFilter, LabelTarget, PromotedLabel, Promotion, WorkspaceId,
};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const LABELS: &str = "/api/agents/labels";
const PROMOTE: &str = "/api/agents/labels/promote";

impl Client {
    /// Lists the labels of a workspace, by agent and label.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::LabelFilter;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let released = LabelFilter::default().label("production");
    /// for label in client.list_labels(workspace, released).await? {
    ///     println!("{} is at version {}", label.agent_id, label.version);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_labels(&self, workspace: WorkspaceId, filter: LabelFilter<'_>) -> Result<Vec<AgentLabel>, Error> {
        let call = Call::get(LABELS).query("workspace_id", workspace);
        let call = call
            .query_if("agent_id", filter.agent_id)
            .query_if("label", filter.label);
        self.send(call, ApiResponse::json).await
    }

    /// Makes a label of an agent point at a version, and makes the label if there is none.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for `latest`, [`is_forbidden`](Error::is_forbidden) without `agents:release`,
    /// [`is_not_found`](Error::is_not_found) for an unknown agent or version,
    /// [`is_precondition_failed`](Error::is_precondition_failed) when the label does not point at
    /// [`LabelTarget::expected_version`], [`is_plan_limit`](Error::is_plan_limit) when the agent has 20 labels already.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{LabelTarget, Patch};
    /// let target = LabelTarget::new(3).expected_version(2);
    /// match client.set_label(None, "writer", &"production".parse()?, &target).await {
    ///     Ok(label) => println!("released version {}", label.version),
    ///     Err(error) if error.is_precondition_failed() => println!("another release was faster"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_label(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        label: &Label,
        target: &LabelTarget,
    ) -> Result<AgentLabel, Error> {
        let call = Call::put(LABELS)
            .agent(workspace, agent_id.into())
            .query("label", label);
        self.send(call.message(self.message()).json(target), ApiResponse::json)
            .await
    }

    /// Removes a label of an agent. The version that it points at stays.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:release`,
    /// [`is_not_found`](Error::is_not_found) for an unknown agent and for a label that it does not have.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.remove_label(None, "writer", &"staging".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_label(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        label: &Label,
    ) -> Result<(), Error> {
        let call = Call::delete(LABELS)
            .agent(workspace, agent_id.into())
            .query("label", label);
        self.send(call.message(self.message()), ApiResponse::success).await
    }

    /// Moves a label to the version that another label points at, for several agents in one commit: all of them or
    /// none.
    ///
    /// With `dry_run` the answer is the same, and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for labels that are the same and for `latest` as the one to move,
    /// [`is_forbidden`](Error::is_forbidden) without `agents:release`, [`is_not_found`](Error::is_not_found) when an
    /// agent that is named lacks the label, [`is_plan_limit`](Error::is_plan_limit) for more than 1,000 agents.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::Promotion;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let release = Promotion::new("staging".parse()?, "production".parse()?);
    /// for label in client.promote_labels(workspace, &release, true).await? {
    ///     println!("{} would move from {:?} to {}", label.agent_id, label.previous_version, label.version);
    /// }
    /// println!("{} agents were released", client.promote_labels(workspace, &release, false).await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn promote_labels(
        &self,
        workspace: WorkspaceId,
        promotion: &Promotion,
        dry_run: bool,
    ) -> Result<Vec<PromotedLabel>, Error> {
        let call = Call::post(PROMOTE)
            .query("workspace_id", workspace)
            .message(self.message());
        let call = call.dry_run(dry_run).json(promotion);
        self.send(call, ApiResponse::json).await
    }
}
