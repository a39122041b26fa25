//! The past of agents: the state of each at a revision of the workspace or at a point in time.
//!
//! Versions and touches of an agent are numbered without gaps, and revision and time grow with the number. So the last one
//! before a moment is found by a binary search over the numbers, and no log is replayed: a list reads the agents' records,
//! a few versions of each agent that has changed since, and the content of one. Records are read in pages, for many agents
//! at once, so that neither memory nor the number of reads grows with the length of the history.

use super::access::Access;
use super::blocking::blocking_if;
use super::chunked_reads::{self, Chunks};
use super::lists::ListWriter;
use super::records::{self, Entity, EntityKey, Entries, StoredTouch, VersionHead};
use super::{AgentCfg, AgentList};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Agent, AgentConfig, AgentFilter, AgentState, AsOf, Cursor, StoredAgent, Tagged, Timestamp, WorkspaceId,
};
use crate::store::StoreError;

impl AsOf {
    /// Whether this is a point in time that has not passed: it means the present, also where a clock was set back.
    pub(super) fn is_present(self, now: impl FnOnce() -> Timestamp) -> bool {
        matches!(self, Self::At(moment) if moment >= now())
    }

    /// Whether an event of this revision and time is part of this past.
    fn includes(self, revision: u64, at: Timestamp) -> bool {
        match self {
            Self::At(moment) => at <= moment,
            Self::Revision(last) => revision <= last,
        }
    }
}

/// An agent as it was, with the number of its version.
pub(super) type PastAgent = (Agent, u64);

impl AgentCfg {
    /// The list of agents at a moment in the past, with its tag.
    pub(super) async fn past_list(
        &self,
        access: &Access,
        as_of: AsOf,
        filter: &AgentFilter,
    ) -> Result<Tagged<AgentList>, Error> {
        let workspace = access.workspace();
        let revision = self.check_moment(workspace, as_of).await?;
        let epoch = self.epoch().await?;
        let cursor = Cursor::new(epoch, workspace, revision);
        let is_long = filter.agent_id.is_none();
        let mut pages = Pages::new(workspace, filter);
        let mut listed = Listed::new(filter.state);
        loop {
            let service = self.clone();
            let piece = async move {
                let Some(agents) = pages.next(&service).await? else {
                    return Ok((listed, None));
                };
                let past = service.at_moment(workspace, as_of, agents).await?;
                let listed = blocking_if(is_long, move || listed.add(past)).await??;
                Ok((listed, Some(pages)))
            };
            let (with_piece, rest) = self.long_read_if(is_long, workspace, piece).await?;
            listed = with_piece;
            let Some(rest) = rest else { break };
            pages = rest;
        }
        let finish = async move { blocking_if(is_long, move || listed.finish(cursor)).await };
        let (list, version) = self.long_read_if(is_long, workspace, finish).await?;
        let version = version.filter(|_| filter.agent_id.is_some());
        Ok(list.with_version(version).tagged())
    }

    /// Checks that the moment exists. Returns the revision that names its list: the requested one, or for a point in
    /// time the current one.
    pub(super) async fn check_moment(&self, workspace: WorkspaceId, as_of: AsOf) -> Result<u64, Error> {
        let (head, found) = self
            .read((records::revision(workspace), records::workspace(workspace)))
            .await?;
        match as_of {
            AsOf::Revision(revision) => is_there(revision, head).map(|()| revision),
            AsOf::At(moment) => match found.filter(|found| moment < found.value.created_at) {
                Some(found) => Err(Error::new(
                    ErrorKind::Invalid,
                    format!(
                        "at must not be before the workspace existed, which is since {}",
                        found.value.created_at
                    ),
                )),
                None => Ok(head),
            },
        }
    }

    /// The states of some agents at a moment, without those that did not exist.
    pub(super) async fn at_moment(
        &self,
        workspace: WorkspaceId,
        as_of: AsOf,
        agents: Vec<StoredAgent>,
    ) -> Result<Vec<PastAgent>, Error> {
        let mut past = Vec::with_capacity(agents.len());
        let mut searched = Vec::new();
        for stored in agents {
            let version = stored.version();
            match as_of {
                // The record's times say enough: nothing has changed since, or the agent was not there yet.
                AsOf::At(moment) if stored.agent.updated_at <= moment => past.push((stored.agent, version)),
                AsOf::At(moment) if stored.agent.created_at > moment => {}
                _ => searched.push(Searched {
                    agent: stored.agent,
                    versions: Search::new(stored.history.versions),
                    touches: Search::new(stored.history.touches),
                }),
            }
        }
        self.search(&mut searched, |searched| &mut searched.versions, as_of)
            .await?;
        self.search(&mut searched, |searched| &mut searched.touches, as_of)
            .await?;
        let mut configs = Vec::new();
        for (index, searched) in searched.iter().enumerate() {
            if let Some(number) = searched.other_version() {
                let key = records::version::<AgentConfig>(workspace, &searched.agent.agent_id, number);
                configs.push((index, key));
            }
        }
        let (indexes, keys): (Vec<usize>, Vec<_>) = configs.into_iter().unzip();
        let found = match keys.is_empty() {
            true => Vec::new(),
            false => self.read_many(keys).await?,
        };
        let mut configs: Vec<Option<AgentConfig>> = searched.iter().map(|_| None).collect();
        for (index, found) in indexes.into_iter().zip(found) {
            configs[index] = Some(found.ok_or_else(missing)?.value.config);
        }
        past.extend(
            searched
                .into_iter()
                .zip(configs)
                .filter_map(|(searched, config)| searched.state(config)),
        );
        Ok(past)
    }

    /// Searches the versions or the touches of some agents, each step for all of them in one read.
    async fn search<T: Numbered>(
        &self,
        searched: &mut [Searched],
        part: impl Fn(&mut Searched) -> &mut Search<T>,
        as_of: AsOf,
    ) -> Result<(), Error> {
        loop {
            let mut probes = Vec::new();
            for (index, searched) in searched.iter_mut().enumerate() {
                if let Some(number) = part(searched).next() {
                    let key = T::key(searched.agent.workspace_id, &searched.agent.agent_id, number);
                    probes.push((index, number, key));
                }
            }
            if probes.is_empty() {
                return Ok(());
            }
            let keys: Vec<_> = probes.iter().map(|(.., key)| key.clone()).collect();
            for ((index, number, _), found) in probes.into_iter().zip(self.read_many(keys).await?) {
                let record = found.ok_or_else(missing)?.value;
                let (revision, at) = record.moment();
                part(&mut searched[index]).learn(number, record, as_of.includes(revision, at));
            }
        }
    }
}

/// The writer of a list of the past.
struct Listed {
    state: AgentState,
    list: ListWriter,
    /// The version of the last agent.
    version: Option<u64>,
}

impl Listed {
    fn new(state: AgentState) -> Self {
        Self {
            state,
            list: ListWriter::new(0),
            version: None,
        }
    }

    fn add(mut self, past: Vec<PastAgent>) -> Result<Self, Error> {
        for (agent, version) in past {
            if self.state.includes(agent.is_active) {
                self.version = Some(version);
                self.list.push(agent)?;
            }
        }
        Ok(self)
    }

    /// The list, and the version of its last agent.
    fn finish(self, cursor: Cursor) -> (AgentList, Option<u64>) {
        (self.list.finish(cursor, None), self.version)
    }
}

/// An agent whose state at a moment is being searched for.
struct Searched {
    /// The current state.
    agent: Agent,
    versions: Search<VersionHead>,
    touches: Search<StoredTouch>,
}

impl Searched {
    /// The version whose content must be read, because it is not the current one.
    fn other_version(&self) -> Option<u64> {
        let version = self.versions.last.as_ref()?.version;
        (version != self.versions.count).then_some(version)
    }

    /// The state, with the content of [`Self::other_version`]. None if the agent did not exist.
    fn state(self, config: Option<AgentConfig>) -> Option<PastAgent> {
        let version = self.versions.last?;
        let agent = match config {
            Some(config) => self.agent.with_config(config),
            None => self.agent,
        };
        let touch = self.touches.last;
        let agent = Agent {
            is_active: touch.is_none_or(|touch| touch.is_active),
            updated_at: touch.map_or(version.created_at, |touch| touch.created_at.max(version.created_at)),
            ..agent
        };
        Some((agent, version.version))
    }
}

/// A kind of record that is numbered 1, 2, 3, … for each agent.
trait Numbered: Entity + Send {
    fn key(workspace: WorkspaceId, agent_id: &str, number: u64) -> EntityKey<Self>
    where
        Self: Sized;

    /// The revision and the time of the record. Both grow with the number.
    fn moment(&self) -> (u64, Timestamp);
}

impl Numbered for VersionHead {
    fn key(workspace: WorkspaceId, agent_id: &str, number: u64) -> EntityKey<Self> {
        records::version(workspace, agent_id, number)
    }

    fn moment(&self) -> (u64, Timestamp) {
        (self.revision, self.created_at)
    }
}

impl Numbered for StoredTouch {
    fn key(workspace: WorkspaceId, agent_id: &str, number: u64) -> EntityKey<Self> {
        records::touch(workspace, agent_id, number)
    }

    fn moment(&self) -> (u64, Timestamp) {
        (self.revision, self.created_at)
    }
}

/// The search for the last of the records 1, 2, …, `count` that belongs to a past. It starts at the end and doubles its
/// steps, because the recent past is asked for most.
struct Search<T> {
    count: u64,
    /// The greatest number that is known to belong to it; 0 for none.
    low: u64,
    /// The smallest number that is known not to belong to it.
    high: u64,
    step: u64,
    /// The record `low`.
    last: Option<T>,
}

impl<T> Search<T> {
    fn new(count: u64) -> Self {
        Self {
            count,
            low: 0,
            high: count + 1,
            step: 0,
            last: None,
        }
    }

    /// The number to read next; None when the search is over.
    fn next(&self) -> Option<u64> {
        match self.high - self.low {
            0 | 1 => None,
            _ if self.low == 0 => Some(self.high.saturating_sub(self.step.max(1)).max(1)),
            distance => Some(self.low + distance / 2),
        }
    }

    fn learn(&mut self, number: u64, record: T, is_included: bool) {
        if is_included {
            (self.low, self.last) = (number, Some(record));
        } else {
            self.step = (self.step * 2).max(1);
            self.high = number;
        }
    }
}

/// The stored agents of a workspace in pieces, or the single agent that a filter names.
struct Pages {
    /// The agent that a filter names, until it is read.
    one: Option<Option<EntityKey<StoredAgent>>>,
    pieces: Chunks<StoredAgent>,
}

impl Pages {
    fn new(workspace: WorkspaceId, filter: &AgentFilter) -> Self {
        Self {
            one: filter
                .agent_id
                .as_ref()
                .map(|agent_id| Some(records::agent(workspace, agent_id))),
            pieces: Chunks::of(Entries::in_workspace(workspace)),
        }
    }

    async fn next(&mut self, service: &AgentCfg) -> Result<Option<Vec<StoredAgent>>, Error> {
        if let Some(one) = &mut self.one {
            let found = match one.take() {
                Some(one) => service.read(one).await?,
                None => None,
            };
            return Ok(found.map(|found| vec![found.value]));
        }
        match self.pieces.next(service).await? {
            Some(piece) => chunked_reads::values(piece).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Checks that a workspace has reached a revision.
pub(super) fn is_there(revision: u64, head: u64) -> Result<(), Error> {
    if (1..=head).contains(&revision) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Invalid,
        format!("revision must be 1 to {head}, which is the workspace's present revision, got {revision}"),
    ))
}

/// The error of a version or a touch that its agent's record counts and that is not stored.
pub(super) fn missing() -> Error {
    StoreError::Corrupt("a part of the history of an agent is missing".into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last of `count` records up to `last`, and the number of records that the search read.
    fn found(count: u64, last: u64) -> (Option<u64>, u32) {
        let (mut search, mut reads) = (Search::new(count), 0);
        while let Some(number) = search.next() {
            search.learn(number, number, number <= last);
            reads += 1;
        }
        (search.last, reads)
    }

    #[test]
    fn a_search_finds_the_last_record_of_a_past() {
        for count in 0..40 {
            for last in 0..=count {
                assert_eq!(found(count, last).0, (last > 0).then_some(last), "{last} of {count}");
            }
        }
    }

    #[test]
    fn a_search_reads_few_records() {
        assert_eq!(found(10_000, 10_000).1, 1, "the present");
        assert_eq!(found(10_000, 9_999).1, 2, "the recent past");
        for last in [0, 1, 2, 17, 5_000, 9_000] {
            assert!(found(10_000, last).1 <= 28, "{last}");
        }
    }
}
