//! The past of agents: the state of each at a revision of the workspace or at a point in time.
//!
//! Versions and touches of an agent are numbered without gaps, and revision and time grow with the number. So the last
//! one before a moment is found by a binary search over the numbers, and no log is replayed: a list reads the agents'
//! records, a few versions of each agent that has changed since, and the content of one. Records are read in pages, for
//! many agents at once, so that neither memory nor the number of reads grows with the length of the history.

use std::collections::BTreeSet;

use super::access::Access;
use super::blocking::blocking_if;
use super::chunked_reads::{self, Chunks};
use super::lists::{ListWriter, list_tag};
use super::records::{self, Entity, EntityKey, Entries, Stored, StoredTouch, VersionHead};
use super::{AgentCfg, AgentList};
use crate::error::Error;
use crate::model::{
    Agent, AgentConfig, AgentFilter, AgentId, AgentState, AsOf, Cursor, StoredAgent, Tag, Tagged, Timestamp,
    WorkspaceId,
};
use crate::validate::Invalid;

impl AsOf {
    /// Whether this time is now or later; then the current state is read, also where a clock was set back.
    pub(super) fn is_present(self, now: impl FnOnce() -> Timestamp) -> bool {
        matches!(self, Self::At(moment) if moment >= now())
    }
}

/// A state of the past: what the log says up to a revision and, where a time is named, up to then. So it is of one
/// moment however many reads it takes, also where a clock is behind and a later entry has an earlier time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    last: u64,
    until: Option<Timestamp>,
}

impl Past {
    /// The state at a revision.
    pub(super) fn at_revision(last: u64) -> Self {
        Self { last, until: None }
    }

    /// The state that is named, as the log tells it up to a revision that was read.
    fn of(as_of: AsOf, read: u64) -> Self {
        match as_of {
            AsOf::Revision(last) => Self::at_revision(last),
            AsOf::At(until) => Self {
                last: read,
                until: Some(until),
            },
        }
    }

    /// Whether an event of this revision and time is part of this past.
    fn includes(self, revision: u64, at: Timestamp) -> bool {
        revision <= self.last && self.until.is_none_or(|until| at <= until)
    }
}

/// An agent as it was, with the number of its version.
pub(super) type PastAgent = (Agent, u64);

/// Agents as they were stored when the log had this many entries.
pub(super) struct ReadAgents {
    pub(super) agents: Vec<StoredAgent>,
    pub(super) revision: u64,
}

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
        let past = Past::of(as_of, revision);
        let epoch = self.epoch().await?;
        let cursor = Cursor::new(epoch, workspace, revision);
        let is_long = filter.agent_id.is_none();
        let limits = access.limits();
        let mut pages = Pages::new(workspace, filter.agent_id.as_ref(), limits.agents());
        let mut listed = Listed::new(filter.state);
        loop {
            let service = self.clone();
            let piece = async move {
                let Some(read) = pages.next(&service).await? else {
                    return Ok((listed, None));
                };
                let agents = service.in_past(workspace, past, read).await?;
                let listed = blocking_if(is_long, move || listed.add(agents)).await??;
                Ok((listed, Some(pages)))
            };
            let (with_piece, rest) = self.long_read_if(is_long, workspace, piece).await?;
            listed = with_piece;
            let Some(rest) = rest else { break };
            pages = rest;
        }
        let tag = list_tag(cursor, limits.agents().filter(|_| is_long));
        let finish = async move { blocking_if(is_long, move || listed.finish(cursor, tag)).await };
        let (list, version) = self.long_read_if(is_long, workspace, finish).await?;
        let version = version.filter(|_| filter.agent_id.is_some());
        Ok(list.with_version(version).tagged())
    }

    /// Checks that the moment exists. Returns the revision that names its list: the requested one, or for a point in
    /// time the current one.
    async fn check_moment(&self, workspace: WorkspaceId, as_of: AsOf) -> Result<u64, Error> {
        let (head, found) = self
            .read((records::revision(workspace), records::workspace(workspace)))
            .await?;
        match as_of {
            AsOf::Revision(revision) => is_there(revision, head).map(|()| revision),
            AsOf::At(moment) => match found.filter(|found| moment < found.value.created_at) {
                Some(found) => {
                    let since = found.value.created_at;
                    let rule = format_args!("must not be before the workspace existed, which is since {since}");
                    Err(Invalid::new("at", rule).into())
                }
                None => Ok(head),
            },
        }
    }

    /// The states of some agents in a past, without those that did not exist.
    pub(super) async fn in_past(
        &self,
        workspace: WorkspaceId,
        past: Past,
        read: ReadAgents,
    ) -> Result<Vec<PastAgent>, Error> {
        let mut found = Vec::with_capacity(read.agents.len());
        let mut searched = Vec::new();
        for stored in read.agents {
            let (version, agent) = (stored.version(), &stored.agent);
            // If the record has no later entry, its times say enough: nothing has changed since, or the agent was not
            // there yet.
            let is_within = |at: Timestamp| past.until.is_none_or(|until| at <= until);
            match read.revision <= past.last {
                true if is_within(agent.updated_at) => found.push((stored.agent, version)),
                true if !is_within(agent.created_at) => {}
                _ => searched.push(Searched {
                    agent: stored.agent,
                    versions: Search::new(stored.history.versions),
                    touches: Search::new(stored.history.touches),
                }),
            }
        }
        self.search(&mut searched, |searched| &mut searched.versions, past)
            .await?;
        self.search(&mut searched, |searched| &mut searched.touches, past)
            .await?;
        let mut configs = Vec::new();
        for (index, searched) in searched.iter().enumerate() {
            if let Some(number) = searched.other_version() {
                let key = records::version::<AgentConfig>(workspace, &searched.agent.agent_id, number);
                configs.push((index, key));
            }
        }
        let (indexes, keys): (Vec<usize>, Vec<_>) = configs.into_iter().unzip();
        let stored = match keys.is_empty() {
            true => Vec::new(),
            false => self.read_many(keys).await?,
        };
        let mut configs: Vec<Option<AgentConfig>> = searched.iter().map(|_| None).collect();
        for (index, stored) in indexes.into_iter().zip(stored) {
            let removed = || self.moment_is_removed(&searched[index].agent);
            configs[index] = Some(stored.ok_or_else(removed)?.value.config);
        }
        for (searched, config) in searched.into_iter().zip(configs) {
            if searched.versions.is_removed() {
                return Err(self.moment_is_removed(&searched.agent));
            }
            found.extend(searched.state(config));
        }
        Ok(found)
    }

    fn moment_is_removed(&self, agent: &Agent) -> Error {
        self.version_is_removed(format_args!("the version that the agent {:?} had then", agent.agent_id))
    }

    /// The state of one agent in a past, from its record alone; `None` if it did not exist.
    pub(super) async fn past_of(
        &self,
        workspace: WorkspaceId,
        as_of: AsOf,
        agent: StoredAgent,
    ) -> Result<Option<PastAgent>, Error> {
        // A record and its history are of one moment, whichever the revision is.
        let past = Past::of(as_of, u64::MAX);
        let read = ReadAgents {
            agents: vec![agent],
            revision: u64::MAX,
        };
        Ok(self.in_past(workspace, past, read).await?.pop())
    }

    /// Searches the versions or the touches of some agents, each step for all of them in one read.
    async fn search<T: Numbered>(
        &self,
        searched: &mut [Searched],
        part: impl Fn(&mut Searched) -> &mut Search<T>,
        past: Past,
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
                let search = part(&mut searched[index]);
                match found {
                    Some(Stored { value: record, .. }) => {
                        let (revision, at) = record.moment();
                        let is_included = past.includes(revision, at);
                        search.learn(number, Some(record), is_included);
                    }
                    // What was removed was replaced before the times that can be asked for.
                    None => search.learn(number, None, true),
                }
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
            list: ListWriter::default(),
            version: None,
        }
    }

    fn add(mut self, past: Vec<PastAgent>) -> Result<Self, Error> {
        for (agent, version) in past {
            if self.state.includes(agent.is_active) {
                self.version = Some(version);
                self.list.push_agent(&agent)?;
            }
        }
        Ok(self)
    }

    /// The list, and the version of its last agent.
    fn finish(self, cursor: Cursor, tag: Tag) -> (AgentList, Option<u64>) {
        (AgentList::new(self.list.finish(cursor, |_| tag, None)), self.version)
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

    /// Whether the record that was searched for is removed.
    fn is_removed(&self) -> bool {
        self.low > 0 && self.last.is_none()
    }

    /// Takes what was read under a number: `None` for a record that was removed.
    fn learn(&mut self, number: u64, record: Option<T>, is_included: bool) {
        if is_included {
            (self.low, self.last) = (number, record);
        } else {
            self.step = (self.step * 2).max(1);
            self.high = number;
        }
    }
}

/// The stored agents of a workspace in pieces, or those that a filter and the caller's limits choose.
struct Pages {
    workspace: WorkspaceId,
    /// The chosen agents, until they are read.
    chosen: Option<Vec<EntityKey<StoredAgent>>>,
    pieces: Option<Chunks<StoredAgent>>,
}

impl Pages {
    fn new(workspace: WorkspaceId, one: Option<&AgentId>, some: Option<&BTreeSet<AgentId>>) -> Self {
        let key = |agent_id: &AgentId| records::agent(workspace, agent_id);
        let chosen = match (one, some) {
            (Some(one), _) => Some(vec![key(one)]),
            (None, Some(some)) => Some(some.iter().map(key).collect()),
            (None, None) => None,
        };
        Self {
            workspace,
            pieces: chosen.is_none().then(|| Chunks::of(Entries::in_workspace(workspace))),
            chosen,
        }
    }

    async fn next(&mut self, service: &AgentCfg) -> Result<Option<ReadAgents>, Error> {
        if let Some(pieces) = &mut self.pieces {
            return pieces.next_agents(service, self.workspace).await;
        }
        let Some(chosen) = self.chosen.take() else {
            return Ok(None);
        };
        let (revision, found) = service.read((records::revision(self.workspace), chosen)).await?;
        let agents = found.into_iter().flatten().map(|found| found.value).collect();
        Ok(Some(ReadAgents { agents, revision }))
    }
}

impl Chunks<StoredAgent> {
    /// The next agents of the workspace, with the revision of their snapshot.
    pub(super) async fn next_agents(
        &mut self,
        service: &AgentCfg,
        workspace: WorkspaceId,
    ) -> Result<Option<ReadAgents>, Error> {
        let Some((piece, revision)) = self.next_with(service, records::revision(workspace)).await? else {
            return Ok(None);
        };
        let agents = chunked_reads::values(piece).await?;
        Ok(Some(ReadAgents { agents, revision }))
    }
}

/// Checks that a workspace has reached a revision.
pub(super) fn is_there(revision: u64, head: u64) -> Result<(), Error> {
    if (1..=head).contains(&revision) {
        return Ok(());
    }
    let rule = format_args!("must be 1 to {head}, which is the workspace's present revision, got {revision}");
    Err(Invalid::new("revision", rule).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last of `count` records up to `last`, and the number of records that the search read.
    fn found(count: u64, last: u64) -> (Option<u64>, u32) {
        let (mut search, mut reads) = (Search::new(count), 0);
        while let Some(number) = search.next() {
            search.learn(number, Some(number), number <= last);
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
