//! The agents of a workspace as one list, kept ready while the workspace's revision stands.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;

use super::AgentCfg;
use super::access::Access;
use super::schema;
use crate::error::{Error, ErrorKind};
use crate::model::{Agent, WorkspaceId};
use crate::store::{Key, Kind, Partition, Scan, Stamp};

/// The active agents of a workspace at one revision, in the order of the list, with their JSON text.
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct AgentList {
    whole: Arc<Whole>,
    /// Which of the agents this list shows.
    range: Range<usize>,
}

#[derive(Debug)]
struct Whole {
    revision: u64,
    agents: Vec<Agent>,
    /// The JSON array of all the agents.
    json: Bytes,
    /// Where each agent's text ends in it; each starts one byte behind the end before.
    ends: Vec<usize>,
}

impl AgentList {
    /// The agents.
    pub fn agents(&self) -> &[Agent] {
        &self.whole.agents[self.range.clone()]
    }

    /// The agents as a JSON array; for a whole list nothing is copied.
    pub fn json(&self) -> Bytes {
        if self.range.len() == self.whole.agents.len() {
            return self.whole.json.clone();
        }
        if self.range.is_empty() {
            return Bytes::from_static(b"[]");
        }
        let start = if self.range.start == 0 {
            1
        } else {
            self.whole.ends[self.range.start - 1] + 1
        };
        let end = self.whole.ends[self.range.end - 1];
        Bytes::from([b"[", &self.whole.json[start..end], b"]"].concat())
    }

    /// The workspace's revision at which the list was read.
    pub(super) fn revision(&self) -> u64 {
        self.whole.revision
    }

    /// A part of this list.
    pub(super) fn page(mut self, offset: usize, limit: usize) -> Self {
        let len = self.whole.agents.len();
        let start = offset.min(len);
        self.range = start..start.saturating_add(limit).min(len);
        self
    }

    /// The list of these agents, in this order.
    pub(super) fn of(agents: Vec<Agent>, revision: u64) -> Result<Self, Error> {
        let mut json = vec![b'['];
        let mut ends = Vec::with_capacity(agents.len());
        for agent in &agents {
            if json.len() > 1 {
                json.push(b',');
            }
            serde_json::to_writer(&mut json, agent)
                .map_err(|error| Error::new(ErrorKind::Internal, "the list could not be written").because(error))?;
            ends.push(json.len());
        }
        json.push(b']');
        let range = 0..agents.len();
        Ok(Self {
            whole: Arc::new(Whole {
                revision,
                agents,
                json: json.into(),
                ends,
            }),
            range,
        })
    }
}

/// Lists that are kept ready, bounded by their size. A list is used only while its revision is the
/// one in the store.
pub(super) struct Lists {
    cache: quick_cache::sync::Cache<WorkspaceId, Ready, BySize>,
}

/// A list, and how to know without a read that its revision is still the one in the store.
#[derive(Clone)]
struct Ready {
    list: AgentList,
    stamp: Option<Stamp>,
}

/// What the table has room for at first; it grows with what comes.
const FIRST_LISTS: usize = 64;

#[derive(Clone)]
struct BySize;

impl Weighter<WorkspaceId, Ready> for BySize {
    fn weight(&self, _: &WorkspaceId, ready: &Ready) -> u64 {
        // The decoded records take about twice the room of their text.
        3 * ready.list.whole.json.len() as u64 + 512
    }
}

impl Lists {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            cache: quick_cache::sync::Cache::with_weighter(FIRST_LISTS, bytes, BySize),
        }
    }
}

impl AgentCfg {
    /// All active agents of the workspace.
    pub(super) async fn agent_list(&self, access: &Access) -> Result<AgentList, Error> {
        let workspace = access.workspace();
        let ready = self.inner.lists.cache.get(&workspace);
        if let Some(ready) = &ready
            && ready.stamp.is_some_and(|stamp| self.store().is_current(stamp))
        {
            return Ok(ready.list.clone());
        }
        // The rest is rarer, and a future that holds it too would be moved about on every request.
        Box::pin(self.agent_list_anew(access, ready.map(|ready| ready.list))).await
    }

    /// The list at the revision that the store says is the current one: what was kept, or read anew.
    async fn agent_list_anew(&self, access: &Access, kept: Option<AgentList>) -> Result<AgentList, Error> {
        let workspace = access.workspace();
        let head = Key::log_head(workspace);
        let stamp = self.store().stamp(&head);
        let revision = self.revision(access, &head).await?;
        let kept = kept.filter(|list| list.revision() == revision);
        if let Some(list) = kept.clone().filter(|_| stamp.is_none()) {
            return Ok(list);
        }
        let list = match kept {
            Some(list) => list,
            None => self.read_list(workspace, head).await?,
        };
        let ready = Ready {
            list: list.clone(),
            stamp,
        };
        self.inner.lists.cache.insert(workspace, ready);
        Ok(list)
    }

    /// The number of the last entry in the workspace's log.
    pub(super) async fn revision(&self, access: &Access, head: &Key) -> Result<u64, Error> {
        let record = match access.take_ahead() {
            Some(ahead) => ahead.head,
            None => self.store().get(std::slice::from_ref(head)).await?.pop().flatten(),
        };
        schema::number(head, record.as_ref())
    }

    async fn read_list(&self, workspace: WorkspaceId, head: Key) -> Result<AgentList, Error> {
        let scan = Scan::all(Partition::Workspace(workspace), Kind::Agent).with([head.clone()]);
        let scanned = self.store().scan(&scan).await?;
        let revision = schema::number(&head, scanned.with.first().and_then(Option::as_ref))?;
        let mut agents = Vec::with_capacity(scanned.entries.len());
        for (key, record) in &scanned.entries {
            let agent: Agent = schema::decode(key, record)?;
            if agent.is_active {
                agents.push(agent);
            }
        }
        agents.sort_unstable_by_key(|agent| (agent.created_at, agent.id));
        AgentList::of(agents, revision)
    }
}
