//! States of one moment, for answers and decisions on many records.
//!
//! One call of the store is one snapshot. A long read is several, and others commit between them. So it brings its
//! pieces to the revision at which it began: the history of each agent and the log tell what was then. A decision
//! carries the checks which let its commit fail once anything that it was made on has changed.

use std::collections::HashMap;

use super::AgentCfg;
use super::agent_labels::Labels;
use super::chunked_reads::{self, Chunks};
use super::log_since::LogSince;
use super::past::{Past, PastAgent};
use super::records::{self, Counted, Encoded, Entries, Query, StoredLabels};
use crate::error::Error;
use crate::model::{StoredAgent, WorkspaceId};
use crate::store::Check;

/// A state of one moment to decide on. Only reads that are of one moment make it, and only
/// [`Change::decided_on`](super::change::Change::decided_on) takes the state out, so that the checks are in the commit.
pub(super) struct OneMoment<T> {
    state: T,
    checks: Vec<Check>,
}

impl<T> OneMoment<T> {
    /// The state, and the checks that it is still the present one.
    pub(super) fn into_parts(self) -> (T, Vec<Check>) {
        (self.state, self.checks)
    }
}

impl AgentCfg {
    /// Reads the records of a query to decide on them: the commit checks each of them.
    pub(super) async fn read_moment<Q: Query>(&self, query: Q) -> Result<OneMoment<Q::Found>, Error> {
        let (state, checks) = self.read_checked(query).await?;
        Ok(OneMoment { state, checks })
    }

    /// Reads the number of the last entry of the log to decide on all entries up to it: the commit checks that there is
    /// no later one.
    pub(super) async fn read_head(&self, workspace: WorkspaceId) -> Result<OneMoment<u64>, Error> {
        let Counted { number, unchanged } = self.read(records::revision(workspace).guarded()).await?;
        Ok(OneMoment {
            state: number,
            checks: vec![unchanged],
        })
    }

    /// Reads what `choose` keeps of each agent to decide on it: the commit checks that the log has no later entry, so
    /// no record that a change could have written.
    pub(super) async fn choose_agents<R>(
        &self,
        workspace: WorkspaceId,
        mut choose: impl FnMut(PastAgent, Labels) -> Option<R>,
    ) -> Result<OneMoment<Vec<R>>, Error> {
        let mut agents = self.labelled_agents(workspace, false).await?;
        let mut state = Vec::new();
        while let Some(piece) = agents.next().await? {
            state.extend(piece.into_iter().filter_map(|(agent, labels)| choose(agent, labels)));
        }
        let checks = vec![agents.unchanged];
        Ok(OneMoment { state, checks })
    }

    /// The agents of a workspace with their labels, all of the present revision. The pieces of a long read share the
    /// cores with those of others.
    pub(super) async fn labelled_agents(&self, workspace: WorkspaceId, is_long: bool) -> Result<LabelledAgents, Error> {
        let Counted { number, unchanged } = self.read(records::revision(workspace).guarded()).await?;
        Ok(LabelledAgents {
            labels: self.labels_at(workspace, number, is_long).await?,
            service: self.clone(),
            workspace,
            revision: number,
            unchanged,
            is_long,
            pieces: Some(Chunks::of(Entries::in_workspace(workspace))),
        })
    }

    /// The labels of all agents at a revision, by agent.
    async fn labels_at(
        &self,
        workspace: WorkspaceId,
        revision: u64,
        is_long: bool,
    ) -> Result<HashMap<String, Labels>, Error> {
        let mut labels = HashMap::new();
        let mut rest = (
            Chunks::of(Entries::<StoredLabels>::in_workspace(workspace)),
            LogSince::new(workspace, revision),
        );
        loop {
            let service = self.clone();
            let piece = async move {
                let (mut pieces, mut since) = rest;
                let next = pieces.next_with(&service, records::revision(workspace)).await?;
                let Some((piece, last)) = next else {
                    return Ok((Vec::new(), since, None));
                };
                since.read_to(&service, last).await?;
                let piece = chunked_reads::decoded(piece, Encoded::decode).await?;
                Ok((piece, since, Some(pieces)))
            };
            let (piece, since, pieces) = self.long_read_if(is_long, workspace, piece).await?;
            for found in piece {
                labels.insert(found.key.item().to_owned(), Labels::of(found.key.clone(), Some(found)));
            }
            let Some(pieces) = pieces else {
                for (agent_id, moved) in since.into_moved_labels() {
                    // Labels that were removed since may have left no record.
                    let none = || Labels::of(records::labels(workspace, &agent_id), None);
                    labels.entry(agent_id.clone()).or_insert_with(none).take_back(moved)?;
                }
                return Ok(labels);
            };
            rest = (pieces, since);
        }
    }
}

/// The agents of a workspace with their labels at one revision, in pieces.
pub(super) struct LabelledAgents {
    service: AgentCfg,
    workspace: WorkspaceId,
    revision: u64,
    /// The check that the log has no entry after the revision.
    unchanged: Check,
    labels: HashMap<String, Labels>,
    is_long: bool,
    /// The agents that were not read yet.
    pieces: Option<Chunks<StoredAgent>>,
}

impl LabelledAgents {
    /// The revision that they are of.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The next agents, deactivated ones too; `None` after the last ones.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<(PastAgent, Labels)>>, Error> {
        let (service, workspace, past) = (self.service.clone(), self.workspace, Past::at_revision(self.revision));
        let Some(mut pieces) = self.pieces.take() else {
            return Ok(None);
        };
        let piece = async move {
            let Some(read) = pieces.next_agents(&service, workspace).await? else {
                return Ok(None);
            };
            Ok(Some((service.in_past(workspace, past, read).await?, pieces)))
        };
        let Some((agents, pieces)) = self.service.long_read_if(self.is_long, workspace, piece).await? else {
            return Ok(None);
        };
        self.pieces = Some(pieces);
        let labelled = agents.into_iter().map(|(agent, version)| {
            let none = || Labels::of(records::labels(workspace, &agent.agent_id), None);
            let labels = self.labels.remove(&*agent.agent_id).unwrap_or_else(none);
            ((agent, version), labels)
        });
        Ok(Some(labelled.collect()))
    }
}
