//! Agent configurations.

use agentcfg_core::model::{
    Agent, AgentFilter, AgentId, AgentPatch, AgentState, AsOf, Cursor, IdRef, NewAgent, Precondition, Tag, Tagged,
    VersionedAgent, WorkspaceId,
};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const CONFIGS: &str = "/api/agents/configs";
const RESTORE: &str = "/api/agents/configs/restore";

impl Client {
    /// Lists the agents of a workspace in the order of their creation: the active ones, unless
    /// [`AgentFilter::state`] chooses others.
    ///
    /// With [`AgentFilter::agent_id`] the tag is that of the agent. With [`AgentFilter::as_of`] the list is the one
    /// that was answered at that moment; see also [`Client::agents`].
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::AgentFilter;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for agent in client.list_agents(workspace, &AgentFilter::default()).await?.value {
    ///     println!("{}: {}", agent.agent_id, agent.display_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_agents(&self, workspace: WorkspaceId, filter: &AgentFilter) -> Result<Tagged<Vec<Agent>>, Error> {
        self.send(list(workspace, filter), ApiResponse::tagged).await
    }

    /// Lists agents as [`Self::list_agents`], with the position in the change feed at which the list was read: the
    /// [changes](Self::changes) after it lead from this list to the one now.
    ///
    /// # Errors
    ///
    /// As [`Self::list_agents`].
    ///
    /// ```no_run
    /// # use agentcfg_client::model::WorkspaceId;
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
    /// let (agents, cursor) = client.list_agents_with_cursor(workspace, &Default::default()).await?;
    /// let mut changes = client.changes(workspace, cursor);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_agents_with_cursor(
        &self,
        workspace: WorkspaceId,
        filter: &AgentFilter,
    ) -> Result<(Vec<Agent>, Cursor), Error> {
        let read = |answer: &ApiResponse| Ok((answer.json()?, answer.cursor()?));
        self.send(list(workspace, filter), read).await
    }

    /// Lists as [`Self::list_agents`], or returns `None` when the list still has this tag.
    ///
    /// # Errors
    ///
    /// As [`Self::list_agents`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # let filter = agentcfg_client::AgentFilter::default();
    /// let mut known = client.list_agents(workspace, &filter).await?;
    /// if let Some(fresh) = client.list_agents_if_changed(workspace, &filter, known.tag).await? {
    ///     known = fresh;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_agents_if_changed(
        &self,
        workspace: WorkspaceId,
        filter: &AgentFilter,
        known: Tag,
    ) -> Result<Option<Tagged<Vec<Agent>>>, Error> {
        let call = list(workspace, filter).if_none_match(known);
        self.send(call, |answer| {
            if answer.is_not_modified() {
                return Ok(None);
            }
            answer.tagged().map(Some)
        })
        .await
    }

    /// Reads one active agent with the tag of its record.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// match client.get_agent(workspace, "writer").await {
    ///     Ok(writer) => println!("{} has the tag {}", writer.value.display_name, writer.tag),
    ///     Err(error) if error.is_not_found() => println!("there is no writer"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_agent(
        &self,
        workspace: WorkspaceId,
        agent_id: impl Into<IdRef<'_, AgentId>>,
    ) -> Result<VersionedAgent, Error> {
        let agent_id = agent_id.into();
        let call = Call::get(CONFIGS).agent(Some(workspace), agent_id);
        self.send(call, |answer| {
            let Tagged { value, tag } = answer.tagged::<Vec<Agent>>()?;
            // The list has no element if the agent does not exist.
            let value = value.into_iter().next();
            let value = value.ok_or_else(|| answer.absent(format!("agent {:?} not found", agent_id.as_str())))?;
            Ok(answer.versioned(Tagged { value, tag }))
        })
        .await
    }

    /// Creates an agent.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a field out of its bounds,
    /// [`is_forbidden`](Error::is_forbidden) without `agents:configure`,
    /// [`is_conflict`](Error::is_conflict) when an active or deleted agent has the identifier,
    /// [`is_plan_limit`](Error::is_plan_limit) when the plan allows no more active agents.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// use agentcfg_client::model::NewAgent;
    /// let new = NewAgent::new(workspace, "writer".parse()?, "Writer").model("gpt-5.5");
    /// let writer = client.create_agent(&new).await?;
    /// println!("created at {}", writer.value.created_at);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_agent(&self, new: &NewAgent) -> Result<VersionedAgent, Error> {
        let call = Call::post(CONFIGS).message(self.message()).json(new);
        self.send(call, ApiResponse::agent).await
    }

    /// Changes the named fields of an agent.
    ///
    /// `workspace` may be `None` when the credential belongs to exactly one workspace.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a field out of its bounds,
    /// [`is_forbidden`](Error::is_forbidden) without `agents:configure`,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent,
    /// [`is_precondition_failed`](Error::is_precondition_failed) when the condition is not met.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
    /// use agentcfg_client::model::{AgentPatch, Patch, Precondition};
    /// let patch = AgentPatch::default().model("gpt-5.5").role(Patch::Null);
    /// let agent = client.update_agent(None, "writer", &patch, &Precondition::None).await?;
    /// assert_eq!(agent.value.role, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_agent(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        patch: &AgentPatch,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let call = Call::patch(CONFIGS).agent(workspace, agent_id.into());
        let call = call.message(self.message()).if_match(condition).json(patch);
        self.send(call, ApiResponse::agent).await
    }

    /// Deletes an agent: its record is kept as inactive, and its identifier stays reserved.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:configure`,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent,
    /// [`is_precondition_failed`](Error::is_precondition_failed) when the condition is not met.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::Precondition;
    /// client.delete_agent(None, "writer", &Precondition::None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_agent(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        condition: &Precondition,
    ) -> Result<(), Error> {
        let call = Call::delete(CONFIGS).agent(workspace, agent_id.into());
        let call = call.message(self.message()).if_match(condition);
        self.send(call, ApiResponse::success).await
    }

    /// Makes a deleted agent active again.
    ///
    /// # Errors
    ///
    /// As [`Self::delete_agent`], but [`is_not_found`](Error::is_not_found) only for an unknown
    /// agent; [`is_conflict`](Error::is_conflict) when the agent is active,
    /// [`is_plan_limit`](Error::is_plan_limit) when the plan allows no more active agents.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::Precondition;
    /// let writer = client.restore_agent(None, "writer", &Precondition::None).await?;
    /// assert!(writer.value.is_active);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore_agent(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let call = Call::post(RESTORE).agent(workspace, agent_id.into());
        let call = call.message(self.message()).if_match(condition);
        self.send(call, ApiResponse::agent).await
    }
}

fn list(workspace: WorkspaceId, filter: &AgentFilter) -> Call {
    let (at, revision) = match filter.as_of {
        Some(AsOf::At(at)) => (Some(at), None),
        Some(AsOf::Revision(revision)) => (None, Some(revision)),
        None => (None, None),
    };
    Call::get(CONFIGS)
        .query("workspace_id", workspace)
        .query_if("agent_id", filter.agent_id.as_deref())
        .query_if("state", (filter.state != AgentState::Active).then_some(filter.state))
        .query_if("at", at)
        .query_if("revision", revision)
        .page(filter.offset, filter.limit)
}
