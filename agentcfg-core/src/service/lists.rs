//! The lists of a workspace, of its agents in each state, their current versions, their labels and what each label
//! releases, cached while the workspace's revision is current.
//!
//! A list is read and encoded once for each revision. Requests that find no current list in the cache share a
//! single-flight: one reads, and the others take its list if that is not older than the revision that they saw.

mod agent_list;
mod cache;
mod hashed_tag;
mod labels;
mod list_text;
mod list_writer;
mod released;
mod row_list;
mod versions;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use self::agent_list::AgentList;
pub(super) use self::cache::Cache;
use self::cache::{ListOf, Listed};
use self::hashed_tag::hashed;
use self::list_text::ListCache;
pub use self::list_text::ListText;
pub(super) use self::list_writer::ListWriter;
use self::list_writer::ListedAgent;
pub(super) use self::released::Pair;
pub use self::row_list::RowList;
use super::access::Access;
use super::blocking::{LONG, blocking_if};
use super::key_limits::KeyLimits;
use super::records::{self, Encoded, Entries};
use super::{AgentCfg, Caller};
use crate::error::Error;
use crate::model::{AgentFilter, AgentId, AgentState, AsOf, Cursor, Permission, StoredAgent, Tag, Tagged, WorkspaceId};

impl AgentCfg {
    /// Lists the agents of a workspace in the order of their creation: the active ones, unless
    /// [`AgentFilter::state`] chooses others.
    ///
    /// With [`AgentFilter::agent_id`] the tag is that agent's own, and [`AgentList::version`] the number of its
    /// version. With [`AgentFilter::as_of`] the list is the one that was answered at that moment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace,
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a revision that is not there yet and for a moment before
    /// the workspace existed.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentFilter, NewAgent, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
    /// let first = AgentFilter::default().limit(10);
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
        // Each field is named, so that the cached list cannot answer for a new one.
        let AgentFilter {
            agent_id,
            state,
            as_of,
            offset,
            limit,
        } = filter;
        let as_of = as_of.filter(|as_of| !as_of.is_present(|| self.now()));
        let cached = match (as_of, agent_id, access.limits().agents()) {
            (None, None, None) => self.current_list(&access, *state),
            _ => None,
        };
        let mut found = match cached {
            Some(list) => list.tagged(),
            // Less frequent. Boxed, so that the future of the fast path stays small.
            None => Box::pin(self.chosen_list((caller, &access), as_of, filter)).await?,
        };
        if *offset > 0 || limit.is_some() {
            let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
            let limit = limit.and_then(|limit| usize::try_from(limit).ok());
            found.value = found.value.page(offset, limit.unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    /// The agents that a filter selects, or the page of them that it names.
    async fn chosen_list(
        &self,
        (caller, access): (&Caller, &Access),
        as_of: Option<AsOf>,
        filter: &AgentFilter,
    ) -> Result<Tagged<AgentList>, Error> {
        if let Some(agent_id) = &filter.agent_id {
            access.limits().require_agent(agent_id)?;
        }
        // A list of the past or of the agents of a key is made for this request alone.
        let is_own = filter.agent_id.is_none() && (as_of.is_some() || access.limits().agents().is_some());
        let _begun = match is_own {
            true => Some(self.begin_answer(caller).await?),
            false => None,
        };
        match (as_of, &filter.agent_id, access.limits().agents()) {
            (Some(as_of), ..) => self.past_list(access, as_of, filter).await,
            (None, Some(agent_id), _) => self.list_one(access, agent_id, filter.state).await,
            (None, None, Some(agents)) => self.list_some(access.workspace(), agents, filter.state).await,
            (None, None, None) => Ok(self.agent_list_of(access, filter.state).await?.tagged()),
        }
    }

    /// The active agents of the workspace.
    pub(super) async fn agent_list(&self, access: &Access) -> Result<AgentList, Error> {
        self.agent_list_of(access, AgentState::Active).await
    }

    /// The agents of the workspace in this state.
    pub(super) async fn agent_list_of(&self, access: &Access, state: AgentState) -> Result<AgentList, Error> {
        let of = (access.workspace(), Listed::Agents(state));
        Ok(AgentList::new(self.current_text(access, &of).await?))
    }

    /// The cached list of agents, if its stamp says that it is current.
    fn current_list(&self, access: &Access, state: AgentState) -> Option<AgentList> {
        let of = (access.workspace(), Listed::Agents(state));
        self.inner.cache.current(&of, &self.inner.stamps).map(AgentList::new)
    }

    /// The text of the current list, of any kind.
    async fn current_text(&self, access: &Access, of: &ListOf) -> Result<ListText, Error> {
        match self.inner.cache.current(of, &self.inner.stamps) {
            Some(text) => Ok(text),
            // Boxed, so that the future of the fast path stays small.
            None => Box::pin(self.list_at_revision(access, of)).await,
        }
    }

    /// The list at the current revision of the store: the cached one, or one that is read now.
    async fn list_at_revision(&self, access: &Access, of: &ListOf) -> Result<ListText, Error> {
        let workspace = access.workspace();
        let (revision, stamp) = match access.take_revision() {
            // The revision was read before, so a stamp that is taken now could hide a change in between.
            Some(revision) => (revision, None),
            None => {
                let stamp = self.store().stamp(records::revision(workspace).raw());
                (self.revision(access).await?, stamp)
            }
        };
        let Some(list) = self.inner.cache.at_revision(of, revision) else {
            return self.shared_list(access, of, revision).await;
        };
        if stamp.is_some() {
            self.inner.cache.keep(of, &list, stamp);
        }
        Ok(list)
    }

    /// The number of the last entry in the workspace's log.
    pub(super) async fn revision(&self, access: &Access) -> Result<u64, Error> {
        match access.take_revision() {
            Some(revision) => Ok(revision),
            None => self.read(records::revision(access.workspace())).await,
        }
    }

    /// Reads the list once for all requests that wait for it.
    async fn shared_list(&self, access: &Access, of: &ListOf, seen: u64) -> Result<ListText, Error> {
        let reading = self.inner.cache.reading(of);
        let mut last = reading.lead().await;
        if let Some(list) = last.since(seen)
            && (list.revision() == seen || self.is_of_this_store(access, &list).await?)
        {
            return Ok(list);
        }
        if last.is_failing() {
            drop(last);
            return self.read_list(of, None).await;
        }
        let attempt = last.begin();
        let stamp = self.store().stamp(records::revision(access.workspace()).raw());
        let list = self
            .read_list(of, Some(Arc::clone(&reading) as Arc<dyn ListCache>))
            .await;
        last.end(attempt, list.is_ok());
        if let Ok(list) = &list {
            last.set(list);
            self.inner.cache.keep(of, list, stamp);
        }
        list
    }

    /// Whether a list is one of this store's history. Revisions only grow, unless an older state of a database is
    /// restored under a running server.
    async fn is_of_this_store(&self, access: &Access, list: &ListText) -> Result<bool, Error> {
        Ok(self.revision(access).await? >= list.revision())
    }

    /// Reads a list. One that comes with its reading may be cached and shared.
    async fn read_list(
        &self,
        (workspace, listed): &ListOf,
        reading: Option<Arc<dyn ListCache>>,
    ) -> Result<ListText, Error> {
        match listed {
            Listed::Agents(state) => self.read_agents(*workspace, *state, reading).await,
            Listed::Released(label) => self.read_released(*workspace, label, reading).await,
            Listed::Labels(label) => self.read_labels(*workspace, label.clone(), reading).await,
            Listed::Versions => self.read_versions(*workspace, &KeyLimits::default(), reading).await,
        }
    }

    async fn list_one(
        &self,
        access: &Access,
        agent_id: &AgentId,
        state: AgentState,
    ) -> Result<Tagged<AgentList>, Error> {
        let head = records::revision(access.workspace());
        let (revision, found) = self.read((head, records::agent(access.workspace(), agent_id))).await?;
        let mut list = ListWriter::default();
        let epoch = self.epoch().await?;
        let mut tag = Tag::list(epoch, revision);
        let mut version = None;
        if let Some(found) = found.filter(|found| state.includes(found.value.agent.is_active)) {
            tag = Tag::record(epoch, found.version);
            version = Some(found.value.version());
            list.push_agent(&found.value.agent)?;
        }
        let cursor = Cursor::new(epoch, access.workspace(), revision);
        let text = list.finish(cursor, |_| tag, None);
        Ok(AgentList::new(text).with_version(version).tagged())
    }

    /// The agents that an API key is limited to, those of one state.
    async fn list_some(
        &self,
        workspace: WorkspaceId,
        agents: &BTreeSet<AgentId>,
        state: AgentState,
    ) -> Result<Tagged<AgentList>, Error> {
        let keys = agents
            .iter()
            .map(|agent_id| records::agent(workspace, agent_id).encoded());
        let query = (records::revision(workspace), keys.collect::<Vec<_>>());
        let (revision, found) = self.read(query).await?;
        let cursor = Cursor::new(self.epoch().await?, workspace, revision);
        let length: usize = found.iter().flatten().map(Encoded::bytes).sum();
        let write = move || write_agents(found.into_iter().flatten(), state);
        let list = blocking_if(length >= LONG, write).await??;
        Ok(AgentList::new(list.finish(cursor, |_| list_tag(cursor, Some(agents)), None)).tagged())
    }

    /// Reads the agents of one state.
    async fn read_agents(
        &self,
        workspace: WorkspaceId,
        state: AgentState,
        reading: Option<Arc<dyn ListCache>>,
    ) -> Result<ListText, Error> {
        let epoch = self.epoch().await?;
        let entries = Entries::<StoredAgent>::in_workspace(workspace);
        let (found, revision) = self.scan_with(entries, records::revision(workspace)).await?;
        let length = found.bytes();
        let encode = move || {
            let list = write_agents(found.into_iter(), state)?;
            let cursor = Cursor::new(epoch, workspace, revision);
            Ok(list.finish(cursor, |_| list_tag(cursor, None), reading))
        };
        blocking_if(length >= LONG, encode).await?
    }
}

/// Writes the agents of one state.
fn write_agents(records: impl Iterator<Item = Encoded<StoredAgent>>, state: AgentState) -> Result<ListWriter, Error> {
    let mut list = ListWriter::default();
    for record in records {
        let agent = record.value()?.agent;
        if state.includes(agent.is_active) {
            list.push_agent(&agent)?;
        }
    }
    Ok(list)
}

/// The tag of a list of agents, which changes with each change in its workspace. One that is limited to some agents has
/// another tag than the list of all.
pub(super) fn list_tag(cursor: Cursor, agents: Option<&BTreeSet<AgentId>>) -> Tag {
    match agents {
        None => Tag::list(cursor.epoch(), cursor.revision()),
        Some(agents) => hashed(cursor.epoch(), &cursor.revision().to_be_bytes(), Some(agents)),
    }
}
