//! Reading agent configurations: the list, and one agent.

use super::access::Access;
use super::agents::versioned;
use super::lists::Writer;
use super::{AgentCfg, AgentList, Caller, records};
use crate::error::Error;
use crate::model::{
    AgentFilter, AgentId, AgentState, Cursor, IdRef, Permission, Tag, Tagged, VersionedAgent, WorkspaceId,
};

impl AgentCfg {
    /// Lists the agents of a workspace in the order of their creation: the active ones, unless
    /// [`AgentFilter::state`] chooses others.
    ///
    /// With [`AgentFilter::agent_id`] the tag is that agent's own, and [`AgentList::version`] the number of its version. With
    /// [`AgentFilter::as_of`] the list is the one that was answered at that moment. (Interface specification, *List agents*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace,
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a revision that is not there yet and for a moment before the
    /// workspace existed.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentFilter, NewAgent, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
    /// service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
    /// let first = AgentFilter { limit: Some(10), ..AgentFilter::default() };
    /// let list = service.list_agents(&ada, studio.id, &first).await?;
    /// assert_eq!(list.value.agents()?[0].display_name, "Writer");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn list_agents(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        filter: &AgentFilter,
    ) -> Result<Tagged<AgentList>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let as_of = filter.as_of.filter(|as_of| !as_of.is_present(|| self.now()));
        let (list, tag) = match (as_of, &filter.agent_id, filter.state) {
            (Some(as_of), ..) => Box::pin(self.past_list(&access, as_of, filter)).await?,
            (None, Some(agent_id), state) => self.list_one(&access, agent_id, state).await?,
            (None, None, state) => {
                let list = self.agent_list_of(&access, state).await?;
                let tag = Tag::list(self.epoch().await?, list.revision());
                (list, tag)
            }
        };
        let offset = usize::try_from(filter.offset).unwrap_or(usize::MAX);
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok());
        Ok(Tagged {
            value: list.page(offset, limit.unwrap_or(usize::MAX)),
            tag,
        })
    }

    async fn list_one(
        &self,
        access: &Access,
        agent_id: &AgentId,
        state: AgentState,
    ) -> Result<(AgentList, Tag), Error> {
        let head = records::revision(access.workspace());
        let (revision, found) = self.read((head, records::agent(access.workspace(), agent_id))).await?;
        let mut list = Writer::new(0);
        let epoch = self.epoch().await?;
        let mut tag = Tag::list(epoch, revision);
        let mut version = None;
        if let Some(found) = found.filter(|found| state.includes(found.value.agent.is_active)) {
            tag = Tag::record(epoch, found.version);
            version = Some(found.value.version());
            list.push(found.value.agent)?;
        }
        let cursor = Cursor::new(epoch, access.workspace(), revision);
        Ok((list.finish(cursor, None).with_version(version), tag))
    }

    /// Reads one active agent with the tag of its record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace, [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown or
    /// deleted agent.
    ///
    /// ```
    /// use agentcfg_core::model::{NewAgent, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, ErrorKind, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
    /// let created = service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
    /// assert_eq!(service.get_agent(&ada, studio.id, &created.value.agent_id).await?, created);
    /// let unknown = service.get_agent(&ada, studio.id, "editor").await.unwrap_err();
    /// assert_eq!(unknown.kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn get_agent(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        agent_id: impl Into<IdRef<'_, AgentId>>,
    ) -> Result<VersionedAgent, Error> {
        let agent_id = agent_id.into();
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let found = self.active_agent(&access, agent_id).await?;
        let tag = Tag::record(self.epoch().await?, found.version);
        Ok(versioned(found.value, tag))
    }
}
