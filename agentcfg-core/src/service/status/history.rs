//! The changes of live statuses in the last 24 hours, as this server saw them. They are in memory alone.
//!
//! An agent's report that counts no longer is a change to `offline`, noted when the agent reports again or when the
//! history is read, at the time at which the report ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use super::super::{AgentCfg, Caller};
use crate::clock::{DAY, SECOND};
use crate::error::Error;
use crate::model::{AgentId, LiveStatus, Permission, StatusChange, StatusEvent, Timestamp, WorkspaceId};
use crate::sync::lock;

/// How far back changes are kept, in milliseconds.
const KEPT: i64 = DAY;

/// The greatest number of changes of one agent.
const OF_AGENT: usize = 288;

/// The greatest number of changes of all agents of all workspaces: about 64 MiB.
const OF_ALL: usize = 400_000;

/// The history of the statuses of each workspace.
#[derive(Default)]
pub(in crate::service) struct StatusHistory(Mutex<Histories>);

#[derive(Default)]
struct Histories {
    workspaces: HashMap<WorkspaceId, History>,
    /// When this server began to see changes.
    begun: Option<Timestamp>,
    /// How many changes there are.
    changes: usize,
}

/// The history of one workspace.
#[derive(Default)]
struct History {
    agents: HashMap<AgentId, AgentHistory>,
    /// The last change that was dropped because there were too many.
    dropped: Option<Timestamp>,
}

#[derive(Default)]
struct AgentHistory {
    changes: VecDeque<StatusChange>,
    /// The last report.
    reported_at: Option<Timestamp>,
}

/// The changes that a reader asked for, and since when this server has them.
///
/// ```
/// use agentcfg_core::service::StatusChanges;
/// fn title(changes: &StatusChanges) -> String {
///     format!("{} changes since {}", changes.changes.len(), changes.since)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusChanges {
    /// The changes, oldest first.
    pub changes: Vec<StatusChange>,
    /// Changes before this moment are not known.
    pub since: Timestamp,
}

impl AgentCfg {
    /// The changes of the live status of a workspace's agents in the last 24 hours, as this process saw them, oldest
    /// first. A report that counts no longer is a change too. At most 288 changes of an agent are kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.report_status(&ada, Some(studio), "writer", StatusReport::idle()).await?;
    /// let history = service.status_history(&ada, studio, Some("writer"), None).await?;
    /// assert_eq!(history.changes[0].status, LiveStatus::Idle);
    /// # Ok(()) }) }
    /// ```
    pub async fn status_history(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        agent_id: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<StatusChanges, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let limits = access.limits();
        if let Some(agent_id) = agent_id {
            limits.require_agent(agent_id)?;
        }
        // Other servers take reports too, and so did this one before its last start.
        let statuses = self.statuses(&access);
        let reports = match &statuses.current(self, &access).await?.table {
            Some(table) => table.reports(),
            None => Vec::new(),
        };
        let (now, ttl) = (self.now(), self.status_ttl());
        let is_asked = |agent: &AgentId| agent_id.is_none_or(|asked| agent == asked) && limits.includes(agent);
        let mut histories = lock(&self.inner.status_history.0);
        for report in reports {
            histories.note(workspace, report, now, ttl);
        }
        Ok(histories.read(workspace, is_asked, since, now, ttl))
    }

    /// Notes the statuses that a reader of a table found.
    pub(in crate::service) fn note_statuses(&self, workspace: WorkspaceId, events: &[StatusEvent]) {
        let (now, ttl) = (self.now(), self.status_ttl());
        let mut histories = lock(&self.inner.status_history.0);
        for event in events {
            // An entry that is offline has no report that counts: the end of the last one follows from it.
            if let (Some(at), true) = (event.reported_at, event.status != LiveStatus::Offline) {
                let change = StatusChange {
                    agent_id: event.agent_id.clone(),
                    at,
                    status: event.status,
                    current_task_id: event.current_task_id.clone(),
                    current_task_title: event.current_task_title.clone(),
                };
                histories.note(workspace, change, now, ttl);
            }
        }
    }

    /// Notes a report that this server took.
    pub(super) fn note_report(&self, workspace: WorkspaceId, change: StatusChange) {
        let (now, ttl) = (self.now(), self.status_ttl());
        lock(&self.inner.status_history.0).note(workspace, change, now, ttl);
    }

    /// How long a reported status is shown, in milliseconds.
    pub(super) fn status_ttl(&self) -> i64 {
        i64::from(self.settings().status_ttl_seconds) * SECOND
    }
}

impl StatusHistory {
    /// A history that begins now.
    pub(in crate::service) fn since(now: Timestamp) -> Self {
        Self(Mutex::new(Histories {
            begun: Some(now),
            ..Histories::default()
        }))
    }
}

impl Histories {
    /// Notes what a report says, if it is newer than the last one and says something else.
    fn note(&mut self, workspace: WorkspaceId, change: StatusChange, now: Timestamp, ttl: i64) {
        let history = self.workspaces.entry(workspace).or_default();
        let agent = history.agents.entry(change.agent_id.clone()).or_default();
        if agent.reported_at.is_some_and(|last| change.at <= last) {
            return;
        }
        let before = agent.changes.len();
        agent.end(change.at, ttl);
        agent.reported_at = Some(change.at);
        let shows_the_same = agent.changes.back().is_some_and(|last| is_same(last, &change));
        if !shows_the_same {
            agent.changes.push_back(change);
        }
        agent.forget(now);
        self.changes = (self.changes + agent.changes.len()).saturating_sub(before);
        if self.changes > OF_ALL {
            self.drop_old(workspace, now);
        }
    }

    /// Makes room: histories that ended long ago go, and of this workspace the older half.
    fn drop_old(&mut self, workspace: WorkspaceId, now: Timestamp) {
        for history in self.workspaces.values_mut() {
            history.agents.values_mut().for_each(|agent| agent.forget(now));
            history.agents.retain(|_, agent| !agent.changes.is_empty());
        }
        self.workspaces.retain(|_, history| !history.agents.is_empty());
        if let Some(history) = self.workspaces.get_mut(&workspace) {
            for agent in history.agents.values_mut() {
                let dropped = agent.changes.drain(..agent.changes.len() / 2).next_back();
                history.dropped = history.dropped.max(dropped.map(|change| change.at));
            }
        }
        let agents = self.workspaces.values().flat_map(|history| history.agents.values());
        self.changes = agents.map(|agent| agent.changes.len()).sum();
    }

    fn read(
        &mut self,
        workspace: WorkspaceId,
        is_asked: impl Fn(&AgentId) -> bool,
        since: Option<Timestamp>,
        now: Timestamp,
        ttl: i64,
    ) -> StatusChanges {
        let mut known = self.begun.unwrap_or(now).max(now.plus_millis(-KEPT));
        let mut changes = Vec::new();
        if let Some(history) = self.workspaces.get_mut(&workspace) {
            known = known.max(history.dropped.unwrap_or(known));
            for (agent_id, agent) in &mut history.agents {
                let before = agent.changes.len();
                agent.end(now, ttl);
                agent.forget(now);
                self.changes = (self.changes + agent.changes.len()).saturating_sub(before);
                if is_asked(agent_id) {
                    let asked = agent
                        .changes
                        .iter()
                        .filter(|change| change.at >= known && since.is_none_or(|since| change.at >= since));
                    changes.extend(asked.cloned());
                }
            }
        }
        changes.sort_by(|a, b| (a.at, &a.agent_id).cmp(&(b.at, &b.agent_id)));
        StatusChanges { changes, since: known }
    }
}

impl AgentHistory {
    /// Notes that the last report counts no longer, if that is so at this time.
    fn end(&mut self, now: Timestamp, ttl: i64) {
        let (Some(reported), Some(last)) = (self.reported_at, self.changes.back()) else {
            return;
        };
        let end = reported.plus_millis(ttl);
        if end <= now && last.status != LiveStatus::Offline {
            self.changes.push_back(StatusChange {
                agent_id: last.agent_id.clone(),
                at: end,
                status: LiveStatus::Offline,
                current_task_id: None,
                current_task_title: None,
            });
        }
    }

    /// Drops what is too old, and the oldest of too many.
    fn forget(&mut self, now: Timestamp) {
        let oldest = now.plus_millis(-KEPT);
        while self.changes.len() > OF_AGENT || self.changes.front().is_some_and(|change| change.at < oldest) {
            self.changes.pop_front();
        }
    }
}

/// Whether two changes show the same.
fn is_same(a: &StatusChange, b: &StatusChange) -> bool {
    a.status == b.status && a.current_task_id == b.current_task_id && a.current_task_title == b.current_task_title
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: i64 = 120_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + seconds * 1000)
    }

    fn change(agent_id: &str, seconds: i64, status: LiveStatus, task: Option<&str>) -> StatusChange {
        StatusChange {
            agent_id: agent_id.parse().unwrap(),
            at: at(seconds),
            status,
            current_task_id: task.map(str::to_owned),
            current_task_title: task.map(str::to_owned),
        }
    }

    fn histories() -> (Histories, WorkspaceId) {
        let histories = Histories {
            begun: Some(at(0)),
            ..Histories::default()
        };
        (histories, "018f2d7c-0000-7000-8000-000000000001".parse().unwrap())
    }

    fn shown(read: &StatusChanges) -> Vec<String> {
        let second = |change: &StatusChange| (change.at.unix_millis() - at(0).unix_millis()) / 1000;
        let line = |change: &StatusChange| {
            let task = change.current_task_id.as_deref().unwrap_or("-");
            format!("{} {} {} {task}", change.agent_id, second(change), change.status)
        };
        read.changes.iter().map(line).collect()
    }

    #[test]
    fn reports_that_say_something_else_and_their_ends_are_changes() {
        use LiveStatus::{Idle, Offline, Working};
        let (mut histories, workspace) = histories();
        for (agent, second, status, task) in [
            ("a", 10, Working, Some("T1")),
            ("a", 20, Working, Some("T1")),
            ("b", 30, Idle, None),
            ("a", 40, Working, Some("T2")),
            ("a", 35, Idle, None),
            ("a", 400, Idle, None),
            ("b", 60, Offline, None),
        ] {
            histories.note(workspace, change(agent, second, status, task), at(400), TTL);
        }
        let all = histories.read(workspace, |_| true, None, at(450), TTL);
        assert_eq!(all.since, at(0));
        assert_eq!(
            shown(&all),
            [
                "a 10 working T1",
                "b 30 idle -",
                "a 40 working T2",
                "b 60 offline -",
                "a 160 offline -",
                "a 400 idle -",
            ]
        );
        let later = histories.read(workspace, |agent| agent == "a", Some(at(160)), at(600), TTL);
        assert_eq!(shown(&later), ["a 160 offline -", "a 400 idle -", "a 520 offline -"]);
    }

    #[test]
    fn a_report_from_before_the_history_ends_within_it() {
        let (mut histories, workspace) = histories();
        let report = change("a", -60, LiveStatus::Working, Some("T1"));
        histories.note(workspace, report, at(5), TTL);
        assert_eq!(shown(&histories.read(workspace, |_| true, None, at(5), TTL)), [""; 0]);
        let later = histories.read(workspace, |_| true, None, at(70), TTL);
        assert_eq!(shown(&later), ["a 60 offline -"]);
    }

    #[test]
    fn the_history_is_bounded_in_time_and_number() {
        let (mut histories, workspace) = histories();
        for second in 0..1000 {
            let task = second.to_string();
            let change = change("a", second, LiveStatus::Working, Some(&task));
            histories.note(workspace, change, at(second), TTL);
        }
        let all = histories.read(workspace, |_| true, None, at(1000), TTL);
        assert_eq!((all.changes.len(), histories.changes), (OF_AGENT, OF_AGENT));
        let day = 24 * 60 * 60;
        let next = histories.read(workspace, |_| true, None, at(day + 990), TTL);
        assert_eq!(shown(&next).last().map(String::as_str), Some("a 1119 offline -"));
        assert_eq!((next.since, next.changes[0].at), (at(990), at(990)));
        for agent in 0..OF_ALL / 2 {
            for (second, status) in [(0, LiveStatus::Idle), (1, LiveStatus::Working)] {
                let change = change(&format!("x{agent}"), day + second, status, Some("T"));
                histories.note(workspace, change, at(day + 1), TTL);
            }
        }
        assert!(histories.changes <= OF_ALL, "{}", histories.changes);
        let dropped = histories.read(workspace, |_| true, None, at(day + 2), TTL);
        assert!(dropped.since >= at(day), "{}", dropped.since);
    }
}
