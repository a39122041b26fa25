//! Versions of agents.

use agentcfg_core::model::{
    Agent, AgentDiff, AgentFilter, AgentId, AgentVersion, AgentVersionDetail, AsOf, IdRef, LabelDiff, Precondition,
    PromptValues, RenderedPrompt, Rollback, Tagged, Timestamp, VersionPage, VersionSelector, VersionedAgent,
    WorkspaceId,
};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const VERSIONS: &str = "/api/agents/versions";
const VERSION: &str = "/api/agents/version";
const DIFF: &str = "/api/agents/diff";
const PROMPT: &str = "/api/agents/prompt";
const ROLLBACK: &str = "/api/agents/rollback";

impl Client {
    /// Lists the versions of an agent, newest first, without their content.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace,
    /// [`is_not_found`](Error::is_not_found) for an unknown agent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::VersionPage;
    /// for version in client.list_versions(None, "writer", VersionPage::default()).await? {
    ///     println!("{} of {}", version.version, version.created_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_versions(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        page: VersionPage,
    ) -> Result<Vec<AgentVersion>, Error> {
        let call = Call::get(VERSIONS).agent(workspace, agent_id.into());
        let call = call.query_if("before", page.before).query_if("limit", page.limit);
        self.send(call, ApiResponse::json).await
    }

    /// Lists the current version of each active agent of a workspace, without its content, in the order of the list.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// for version in client.current_versions(None).await? {
    ///     println!("{} is at version {}", version.agent_id, version.version);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn current_versions(&self, workspace: Option<WorkspaceId>) -> Result<Vec<AgentVersion>, Error> {
        let call = Call::get(VERSIONS).query_if("workspace_id", workspace);
        self.send(call, ApiResponse::json).await
    }

    /// Reads one version of an agent with its content. [`Client::agents`] does the same in a more readable way.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace,
    /// [`is_not_found`](Error::is_not_found) for an unknown agent and where the selector finds no version,
    /// [`is_invalid`](Error::is_invalid) for a revision that is not there yet.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let released = client.get_version(None, "writer", "production").await?;
    /// let third = client.get_version(None, "writer", 3).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_version<'a>(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        selector: impl Into<VersionSelector<'a>>,
    ) -> Result<AgentVersionDetail, Error> {
        let call = Call::get(VERSION).agent(workspace, agent_id.into());
        let call = match selector.into() {
            VersionSelector::Current => call,
            VersionSelector::Version(version) => call.query("version", version),
            VersionSelector::Label(label) => call.query("label", label),
            VersionSelector::At(at) => call.query("at", at),
            VersionSelector::Revision(revision) => call.query("revision", revision),
        };
        self.send(call, ApiResponse::json).await
    }

    /// Compares two versions of an agent, each named by its number or a label.
    ///
    /// # Errors
    ///
    /// As [`Self::get_version`]. For a time or a revision, which cannot be compared, nothing is sent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let diff = client.diff_versions(None, "writer", "production", "latest").await?;
    /// print!("{}", diff.prompt_diff.unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn diff_versions<'a>(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        from: impl Into<VersionSelector<'a>>,
        to: impl Into<VersionSelector<'a>>,
    ) -> Result<AgentDiff, Error> {
        let (from, to) = (number_or_label(from.into())?, number_or_label(to.into())?);
        let call = Call::get(DIFF).agent(workspace, agent_id.into());
        self.send(call.query("from", from).query("to", to), ApiResponse::json)
            .await
    }

    /// Compares what two labels point at, for each active agent that has both. `latest` is the current
    /// version.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a text that no label can have, [`is_forbidden`](Error::is_forbidden)
    /// without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for agent in client.compare_labels(workspace, "production", "latest").await? {
    ///     println!("{} is {} versions behind", agent.agent_id, agent.versions);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn compare_labels(&self, workspace: WorkspaceId, from: &str, to: &str) -> Result<Vec<LabelDiff>, Error> {
        let call = Call::get(DIFF).query("workspace_id", workspace);
        self.send(call.query("from", from).query("to", to), ApiResponse::json)
            .await
    }

    /// Renders the prompt of an agent: what a model call with these values of variables would fill in.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for a value of a variable that the agent does not declare and for a required
    /// one without a value, [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent and where the selector finds no version. A
    /// moment is no selector here.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{PromptValues, VariableValues};
    /// let values: VariableValues = [("product".to_owned(), "Boards".to_owned())].into();
    /// let values = PromptValues::default().variables(values);
    /// let rendered = client.render_prompt(None, "writer", "production", &values).await?;
    /// println!("{}", rendered.prompt.unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn render_prompt<'a>(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        selector: impl Into<VersionSelector<'a>>,
        values: &PromptValues,
    ) -> Result<RenderedPrompt, Error> {
        let call = Call::post(PROMPT).agent(workspace, agent_id.into()).json(values);
        let call = match selector.into() {
            VersionSelector::Current => call,
            VersionSelector::Version(version) => call.query("version", version),
            selector => call.query("label", number_or_label(selector)?),
        };
        self.send(call, ApiResponse::json).await
    }

    /// Gives an agent the content of an earlier version again, as a new version. The same content already: nothing
    /// changes.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:configure`,
    /// [`is_not_found`](Error::is_not_found) for an unknown or deleted agent and for an unknown version or label,
    /// [`is_precondition_failed`](Error::is_precondition_failed) when the condition is not met.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::{Precondition, Rollback};
    /// let writer = client.roll_back_agent(None, "writer", &Rollback::to_version(3), &Precondition::None).await?;
    /// println!("version {} has the content of version 3", writer.version);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn roll_back_agent(
        &self,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        to: &Rollback,
        condition: &Precondition,
    ) -> Result<VersionedAgent, Error> {
        let call = Call::post(ROLLBACK).agent(workspace, agent_id.into());
        let call = call.message(self.message()).if_match(condition).json(to);
        self.send(call, ApiResponse::agent).await
    }

    /// Starts to read agents as they were: at a version, a label, a time or a revision.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let writer = client.agents().label("production").get("writer").await?;
    /// println!("{}", writer.config.persona_prompt.unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub fn agents(&self) -> Agents<'_> {
        Agents {
            client: self,
            workspace: None,
            as_of: None,
        }
    }
}

/// The text of a selector in a call that takes no time and no revision.
fn number_or_label(selector: VersionSelector<'_>) -> Result<String, Error> {
    match selector {
        VersionSelector::Current => Ok("latest".to_owned()),
        VersionSelector::Version(version) => Ok(version.to_string()),
        VersionSelector::Label(label) => Ok(label.to_owned()),
        VersionSelector::At(_) | VersionSelector::Revision(_) => Err(Error::input(
            "this call takes a version by its number or a label, not by a time or a revision",
        )),
    }
}

/// The agents of a workspace as they are or were; see [`Client::agents`]. The last selector counts.
///
/// A label or a version selects one version of an agent, so that what follows is a [`SelectedVersion`], which reads one
/// agent and lists none.
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let agents = client.agents().in_workspace(workspace);
/// let released = agents.label("production").get("writer").await?;
/// let yesterday = agents.at("2026-11-19T18:00:00Z".parse()?).list().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    client: &'a Client,
    workspace: Option<WorkspaceId>,
    as_of: Option<AsOf>,
}

impl<'a> Agents<'a> {
    /// Selects the workspace. It may be left out where the credential belongs to exactly one, except for
    /// [`Self::list`].
    #[must_use]
    pub fn in_workspace(self, workspace: WorkspaceId) -> Self {
        Self {
            workspace: Some(workspace),
            ..self
        }
    }

    /// Selects the version that a label points at. For an agent without the label the error is
    /// [`is_not_found`](Error::is_not_found): there is no fallback. What a label releases of all agents is in
    /// [`Client::released`].
    pub fn label(self, label: &'a str) -> SelectedVersion<'a> {
        self.selected(VersionSelector::Label(label))
    }

    /// Selects the version with this number.
    pub fn version(self, version: u64) -> SelectedVersion<'a> {
        self.selected(VersionSelector::Version(version))
    }

    /// Selects the state at this time, the time included.
    #[must_use]
    pub fn at(self, at: Timestamp) -> Self {
        Self {
            as_of: Some(AsOf::At(at)),
            ..self
        }
    }

    /// Selects the state at this revision of the workspace.
    #[must_use]
    pub fn revision(self, revision: u64) -> Self {
        Self {
            as_of: Some(AsOf::Revision(revision)),
            ..self
        }
    }

    fn selected(self, selector: VersionSelector<'a>) -> SelectedVersion<'a> {
        SelectedVersion {
            client: self.client,
            workspace: self.workspace,
            selector,
        }
    }

    /// Reads an agent's version with its content.
    ///
    /// # Errors
    ///
    /// As [`Client::get_version`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let model = client.agents().revision(118).get("writer").await?.config.model;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self, agent_id: impl Into<IdRef<'_, AgentId>>) -> Result<AgentVersionDetail, Error> {
        let selector = match self.as_of {
            None => VersionSelector::Current,
            Some(AsOf::At(at)) => VersionSelector::At(at),
            Some(AsOf::Revision(revision)) => VersionSelector::Revision(revision),
        };
        self.selected(selector).get(agent_id).await
    }

    /// Lists the active agents as they are, or as they were at a time or a revision.
    ///
    /// # Errors
    ///
    /// As [`Client::list_agents`]. Without a workspace nothing is sent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let before = client.agents().in_workspace(workspace).revision(118).list().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(&self) -> Result<Tagged<Vec<Agent>>, Error> {
        let Some(workspace) = self.workspace else {
            return Err(Error::input("a list needs a workspace"));
        };
        let filter = AgentFilter::default().as_of(self.as_of);
        self.client.list_agents(workspace, &filter).await
    }
}

/// One version of each agent, by its number or a label; see [`Agents::label`].
///
/// A version is of one agent, so that there is no list of them:
///
/// ```compile_fail,E0599
/// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
/// client.agents().label("production").list().await?;
/// # Ok(())
/// # }
/// ```
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), agentcfg_client::Error> {
/// let released = client.agents().label("production");
/// println!("{:?}", released.get("writer").await?.config.model);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "it sends nothing until an agent is read"]
pub struct SelectedVersion<'a> {
    client: &'a Client,
    workspace: Option<WorkspaceId>,
    selector: VersionSelector<'a>,
}

impl SelectedVersion<'_> {
    /// Selects the workspace. It may be left out where the credential belongs to exactly one.
    pub fn in_workspace(self, workspace: WorkspaceId) -> Self {
        Self {
            workspace: Some(workspace),
            ..self
        }
    }

    /// Reads this version of an agent with its content.
    ///
    /// # Errors
    ///
    /// As [`Client::get_version`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let model = client.agents().label("production").get("writer").await?.config.model;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self, agent_id: impl Into<IdRef<'_, AgentId>>) -> Result<AgentVersionDetail, Error> {
        self.client.get_version(self.workspace, agent_id, self.selector).await
    }
}
