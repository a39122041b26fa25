//! Agent configurations.

use agentcfg_core::model::{Agent, AgentPatch, NewAgent, Precondition, WorkspaceId};

use crate::request::Call;
use crate::response::Answer;
use crate::{Client, Error, Etag, Tagged};

const CONFIGS: &str = "/api/agents/configs";
const RESTORE: &str = "/api/agents/configs/restore";

/// Which agents to list. The default lists all active agents.
///
/// ```
/// use agentcfg_client::AgentFilter;
/// let second_page = AgentFilter { offset: 100, limit: Some(100), ..AgentFilter::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFilter {
    /// Only the agent with this identifier: the list then has one element or none.
    pub agent_id: Option<String>,
    /// The number of agents to skip.
    pub offset: u64,
    /// The maximum number of agents, 1–1000; `None` for no maximum.
    pub limit: Option<u32>,
}

impl Client {
    /// Lists the active agents of a workspace in the order of their creation.
    ///
    /// With [`AgentFilter::agent_id`] the entity tag is that of the agent. (Interface specification, *List agents*.)
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
        self.send(list(workspace, filter), Answer::tagged).await
    }

    /// Lists as [`Self::list_agents`], or returns `None` when the list still has this entity tag.
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
    /// if let Some(fresh) = client.list_agents_if_changed(workspace, &filter, &known.etag).await? {
    ///     known = fresh;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_agents_if_changed(
        &self,
        workspace: WorkspaceId,
        filter: &AgentFilter,
        known: &Etag,
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

    /// Reads one active agent with its entity tag; `None` when the workspace has no such active agent.
    ///
    /// # Errors
    ///
    /// As [`Self::list_agents`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// if let Some(writer) = client.get_agent(workspace, "writer").await? {
    ///     println!("{} has the tag {}", writer.value.display_name, writer.etag);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_agent(&self, workspace: WorkspaceId, agent_id: &str) -> Result<Option<Tagged<Agent>>, Error> {
        let filter = AgentFilter {
            agent_id: Some(agent_id.to_owned()),
            ..AgentFilter::default()
        };
        let found = self.list_agents(workspace, &filter).await?;
        Ok(found.value.into_iter().next().map(|value| Tagged {
            value,
            etag: found.etag,
        }))
    }

    /// Creates an agent. (Interface specification, *Create agent*.)
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
    /// let new = NewAgent { model: Some("gpt-5".into()), ..NewAgent::new(workspace, "writer", "Writer") };
    /// let writer = client.create_agent(&new).await?;
    /// println!("created at {}", writer.value.created_at);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_agent(&self, new: &NewAgent) -> Result<Tagged<Agent>, Error> {
        self.send(Call::post(CONFIGS).json(new), Answer::tagged).await
    }

    /// Changes the named fields of an agent. (Interface specification, *Update agent*.)
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
    /// let patch = AgentPatch { model: Patch::Set("gpt-5".into()), role: Patch::Null, ..AgentPatch::default() };
    /// let agent = client.update_agent(None, "writer", &patch, &Precondition::None).await?;
    /// assert_eq!(agent.value.role, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_agent(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: &str,
        patch: &AgentPatch,
        condition: &Precondition,
    ) -> Result<Tagged<Agent>, Error> {
        let call = Call::patch(CONFIGS).agent(workspace, agent_id);
        self.send(call.if_match(condition).json(patch), Answer::tagged).await
    }

    /// Deletes an agent: its record is kept as inactive, and its identifier stays reserved.
    /// (Interface specification, *Delete agent*.)
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
        agent_id: &str,
        condition: &Precondition,
    ) -> Result<(), Error> {
        let call = Call::delete(CONFIGS).agent(workspace, agent_id);
        self.send(call.if_match(condition), Answer::success).await
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
        agent_id: &str,
        condition: &Precondition,
    ) -> Result<Tagged<Agent>, Error> {
        let call = Call::post(RESTORE).agent(workspace, agent_id);
        self.send(call.if_match(condition), Answer::tagged).await
    }
}

fn list(workspace: WorkspaceId, filter: &AgentFilter) -> Call {
    Call::get(CONFIGS)
        .query("workspace_id", workspace)
        .query_if("agent_id", filter.agent_id.as_deref())
        .page(filter.offset, filter.limit)
}
