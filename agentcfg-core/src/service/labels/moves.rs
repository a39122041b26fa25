//! The moves of labels, as the entries of a workspace's log tell them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::super::AgentCfg;
use super::super::base::base_is_removed;
use super::super::chunked_reads::{self, Chunks};
use super::super::key_limits::KeyLimits;
use super::super::records::{self, Encoded, Entity, Entries};
use crate::error::{Error, ErrorKind};
use crate::model::change_path::{self, MovedVersions};
use crate::model::{Actor, AgentConfig, AgentId, Cursor, Label, LabelMove, Message, Target, Timestamp, WorkspaceId};
use crate::store::Kind;

/// The part of a log entry that tells which labels it moved.
#[derive(Deserialize)]
pub(super) struct LoggedMoves {
    pub(super) created_at: Timestamp,
    pub(super) actor: Actor,
    #[serde(default)]
    pub(super) message: Option<Message>,
    target: Target,
    changes: LoggedChanges,
}

impl Entity for LoggedMoves {
    const KIND: Kind = Kind::LogEntry;
}

/// The changes of an entry, of which only the moves have their values.
#[derive(Default)]
struct LoggedChanges {
    moves: Vec<(String, MovedVersions)>,
    /// The names of changed fields of agents, or of other records.
    fields: Vec<String>,
}

impl<'de> Deserialize<'de> for LoggedChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChangesVisitor)
    }
}

struct ChangesVisitor;

impl<'de> Visitor<'de> for ChangesVisitor {
    type Value = LoggedChanges;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the changes of a log entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LoggedChanges, A::Error> {
        let mut changes = LoggedChanges::default();
        while let Some(path) = map.next_key::<String>()? {
            let name = change_path::agent_and_name(&path).map_or(&*path, |(_, name)| name);
            if change_path::label(name).is_some() {
                changes.moves.push((path, map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
                changes.fields.push(path);
            }
        }
        Ok(changes)
    }
}

impl LoggedMoves {
    /// The moves of a label, by agent.
    pub(super) fn of(&self, label: &Label) -> Result<Vec<LabelMove>, Error> {
        let moves = self.changes.moves.iter().filter_map(|(path, versions)| {
            let (agent_id, name) = change_path::subject(&self.target, path)?;
            let is_moved = change_path::label(name) == Some(label);
            is_moved.then_some((agent_id, versions))
        });
        let mut moves: Vec<LabelMove> = moves
            .map(|(agent_id, versions)| {
                Ok(LabelMove {
                    agent_id: AgentId::try_from(agent_id)?,
                    from: versions.from,
                    to: versions.to,
                })
            })
            .collect::<Result<_, Error>>()?;
        moves.sort_unstable_by(|a, b| a.agent_id.cmp(&b.agent_id));
        Ok(moves)
    }

    /// The versions that all its moves name, each with its agent.
    fn named_versions(&self) -> Vec<(String, u64)> {
        let moves = self.changes.moves.iter().filter_map(|(path, versions)| {
            let (agent_id, _) = change_path::subject(&self.target, path)?;
            Some((agent_id, versions))
        });
        let named = moves.flat_map(|(agent_id, moved)| {
            let versions = [moved.from, moved.to].into_iter().flatten();
            versions.map(|version| (agent_id.to_owned(), version))
        });
        named.collect()
    }

    /// Whether the entry moves a label of any agent.
    fn has_moved(&self, label: &Label, limits: &KeyLimits) -> Result<bool, Error> {
        Ok(match label.is_latest() {
            // A change of an agent's content moves the reserved label.
            true => self.changes.fields.iter().any(|path| {
                change_path::subject(&self.target, path)
                    .is_some_and(|(agent_id, name)| AgentConfig::FIELDS.contains(&name) && limits.includes(agent_id))
            }),
            false => self.of(label)?.iter().any(|moved| limits.includes(&moved.agent_id)),
        })
    }
}

/// Where a label of each agent pointed at a revision, as far as it has moved since.
pub(super) struct MovesSince {
    workspace: WorkspaceId,
    label: Label,
    /// The number of the last entry that was read.
    read: u64,
    /// By agent: the version at the revision.
    versions: BTreeMap<AgentId, Option<u64>>,
}

impl MovesSince {
    /// The moves since a revision, before any entry was read.
    pub(super) fn new(workspace: WorkspaceId, label: Label, revision: u64) -> Self {
        Self {
            workspace,
            label,
            read: revision,
            versions: BTreeMap::new(),
        }
    }

    /// Reads the entries up to this one at least.
    pub(super) async fn read_to(&mut self, service: &AgentCfg, last: u64) -> Result<(), Error> {
        let mut moves = Vec::new();
        let label = self.label.clone();
        let note = |entry: LoggedMoves| moves.push(entry.of(&label));
        self.read = service.log_between(self.workspace, self.read, last, note).await?;
        for moved in moves {
            for LabelMove { agent_id, from, .. } in moved? {
                // The first move since the revision tells where the label was.
                self.versions.entry(agent_id).or_insert(from);
            }
        }
        Ok(())
    }

    /// The number of the last entry that was read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// For each agent whose label has moved, the version at the revision; `None` where it did not have the label.
    pub(super) fn versions(&self) -> &BTreeMap<AgentId, Option<u64>> {
        &self.versions
    }
}

/// The versions that moves of labels name in the log as it is: a label can be put back to each of them.
pub(in crate::service) struct ReleasedVersions {
    workspace: WorkspaceId,
    /// The number of the last entry that was read.
    read: u64,
    versions: HashSet<(String, u64)>,
}

impl ReleasedVersions {
    /// Those of a workspace, before any entry was read.
    pub(in crate::service) fn of(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            read: 0,
            versions: HashSet::new(),
        }
    }

    /// Reads the entries that were appended since the last time.
    pub(in crate::service) async fn read_on(&mut self, service: &AgentCfg) -> Result<(), Error> {
        let after = records::audit_entry(self.workspace, self.read);
        let mut pieces = Chunks::of(Entries::<LoggedMoves>::in_workspace(self.workspace).after(&after));
        while let Some(piece) = pieces.next(service).await? {
            let named =
                |entry: Encoded<LoggedMoves>| Ok((entry.key().entry_number()?, entry.value()?.named_versions()));
            for (number, named) in chunked_reads::decoded(piece, named).await? {
                self.read = number;
                self.versions.extend(named);
            }
        }
        Ok(())
    }

    /// Whether one of these versions of an agent is among them.
    pub(in crate::service) fn have_any_of(&self, agent_id: &str, numbers: &RangeInclusive<u64>) -> bool {
        let named = |number| self.versions.contains(&(agent_id.to_owned(), number));
        numbers.clone().any(named)
    }
}

impl AgentCfg {
    /// Refuses a change when one of these labels has moved after its base, of whichever agent. `last` is the last entry
    /// of the log.
    pub(super) async fn require_unmoved(
        &self,
        base: Cursor,
        workspace: WorkspaceId,
        last: u64,
        labels: &[&Label],
        limits: &KeyLimits,
    ) -> Result<(), Error> {
        let since = self.base_revision(base, workspace, last).await?;
        let (mut revision, mut newer) = (since, Ok(None));
        let note = |entry: LoggedMoves| {
            revision += 1;
            if revision > last || !matches!(newer, Ok(None)) {
                return;
            }
            for label in labels {
                match entry.has_moved(label, limits) {
                    Ok(true) => newer = Ok(Some(((*label).clone(), revision))),
                    Ok(false) => {}
                    Err(error) => newer = Err(error),
                }
            }
        };
        self.log_between(workspace, since, last, note)
            .await
            .map_err(base_is_removed)?;
        match newer? {
            None => Ok(()),
            Some((label, revision)) => Err(Error::new(
                ErrorKind::Precondition,
                format!("the label {label:?} has moved since base, at revision {revision}"),
            )),
        }
    }
}
