//! Compares each workspace's counter of active agents with its agents.

use serde::Deserialize;

use super::super::plan::number;
use super::super::{ACTIVE_AGENTS, Key, Kind, Partition, Record};

/// Counts the active agents of each workspace, from records in key order.
#[derive(Debug, Default)]
pub(super) struct Tally {
    workspace: Option<Workspace>,
}

#[derive(Debug)]
struct Workspace {
    partition: Partition,
    counter: u64,
    active: u64,
}

/// The part of an agent's record that is needed here.
#[derive(Deserialize)]
struct Agent {
    #[serde(default)]
    is_active: bool,
}

impl Tally {
    /// Counts the next record; returns a mismatch of the workspace before it, if it begins another one.
    pub(super) fn record(&mut self, key: &Key, record: &Record) -> Option<(Partition, String)> {
        let ended = match &self.workspace {
            Some(workspace) if workspace.partition == *key.partition() => None,
            _ => self.end(),
        };
        if !matches!(key.partition(), Partition::Workspace(_)) {
            return ended;
        }
        let workspace = self.workspace.get_or_insert_with(|| Workspace {
            partition: key.partition().clone(),
            counter: 0,
            active: 0,
        });
        match key.kind() {
            Kind::Counter if key.item() == ACTIVE_AGENTS => workspace.counter = number(&[], record).unwrap_or_default(),
            Kind::Agent => {
                let active = serde_json::from_slice(&record.value).is_ok_and(|agent: Agent| agent.is_active);
                workspace.active += u64::from(active);
            }
            _ => {}
        }
        ended
    }

    /// Ends the last workspace; returns its mismatch.
    pub(super) fn end(&mut self) -> Option<(Partition, String)> {
        let Workspace {
            partition,
            counter,
            active,
        } = self.workspace.take()?;
        let key = Key::new(partition.clone(), Kind::Counter, ACTIVE_AGENTS);
        let why = || format!("{key:?} is {counter}, but the workspace has {active} active agents");
        (counter != active).then(|| (partition, why()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkspaceId;

    fn record(value: &str) -> Record {
        Record {
            version: 1,
            value: value.as_bytes().into(),
        }
    }

    #[test]
    fn a_counter_that_differs_from_the_agents_is_reported() {
        for (counter, expected) in [("2", None), ("3", Some("is 3, but the workspace has 2 active agents"))] {
            let mut tally = Tally::default();
            let workspace = WorkspaceId::new(uuid::Uuid::from_u128(1));
            let key = |kind, item: &str| Key::in_workspace(workspace, kind, item);
            assert_eq!(tally.record(&key(Kind::Counter, ACTIVE_AGENTS), &record(counter)), None);
            for (item, value) in [
                ("a", r#"{"is_active":true}"#),
                ("b", r#"{"is_active":false}"#),
                ("c", r#"{"name":"c","is_active":true}"#),
            ] {
                assert_eq!(tally.record(&key(Kind::Agent, item), &record(value)), None);
            }
            let next = Key::global("user", Kind::Membership, "");
            let found = tally.record(&next, &record("{}"));
            assert_eq!(found.is_some(), expected.is_some());
            assert!(expected.is_none_or(|text| found.is_some_and(|(_, found)| found.contains(text))));
            assert_eq!(tally.end(), None);
        }
    }
}
