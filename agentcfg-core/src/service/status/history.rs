//! The changes of live statuses in the last 24 hours, as this server saw them. They are in memory alone.
//!
//! An agent's report that counts no longer is a change to `offline`, noted when the agent reports again or when the
//! history is read, at the time at which the report ended. So is a report that was removed because its agent was
//! deactivated: at that time if this server did it, and else when this server sees that there is none.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use super::super::{AgentCfg, Caller};
use crate::clock::{DAY, SECOND};
use crate::error::Error;
use crate::model::{AgentId, LiveStatus, Permission, StatusChange, StatusEvent, Timestamp, WorkspaceId};
use crate::sync::lock;

/// How far back changes are kept, in milliseconds.
const KEPT: i64 = DAY;

/// For how long, in milliseconds, a list of statuses may lack a report that this server has taken.
const ON_ITS_WAY: i64 = SECOND;

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
        let (reports, unreported) = match &statuses.current(self, &access).await?.table {
            Some(table) => (table.reports(), table.unreported()),
            None => Default::default(),
        };
        let (now, ttl) = (self.now(), self.status_ttl());
        let is_asked = |agent: &AgentId| agent_id.is_none_or(|asked| agent == asked) && limits.includes(agent);
        let mut histories = lock(&self.inner.status_history.0);
        for report in reports {
            histories.note(workspace, report, now, ttl);
        }
        for agent_id in unreported {
            histories.note_absent(workspace, &agent_id, now, ttl);
        }
        Ok(histories.read(workspace, is_asked, since, now, ttl))
    }

    /// Notes the statuses that a reader of a table found.
    pub(in crate::service) fn note_statuses(&self, workspace: WorkspaceId, events: &[StatusEvent]) {
        let (now, ttl) = (self.now(), self.status_ttl());
        let mut histories = lock(&self.inner.status_history.0);
        for event in events {
            if event.reported_at.is_none() {
                histories.note_absent(workspace, &event.agent_id, now, ttl);
            }
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

    /// Notes that this server has removed the reports of these agents.
    pub(in crate::service) fn note_removed_reports(&self, workspace: WorkspaceId, agents: &[AgentId], at: Timestamp) {
        if agents.is_empty() {
            return;
        }
        let ttl = self.status_ttl();
        let mut histories = lock(&self.inner.status_history.0);
        for agent_id in agents {
            histories.end_report(workspace, agent_id, at, ttl, |_| true);
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
        let shows_the_same = match agent.changes.back() {
            Some(last) => is_same(last, &change),
            // Before any report an agent is offline.
            None => change.status == LiveStatus::Offline,
        };
        if !shows_the_same {
            agent.changes.push_back(change);
        }
        agent.forget(now);
        self.changes = (self.changes + agent.changes.len()).saturating_sub(before);
        if self.changes > OF_ALL {
            self.drop_old(workspace, now);
        }
    }

    /// Notes that an agent has no report, so that the last one, if it still counts, was removed.
    fn note_absent(&mut self, workspace: WorkspaceId, agent_id: &AgentId, now: Timestamp, ttl: i64) {
        let is_taken = |last: Timestamp| last.plus_millis(ON_ITS_WAY) < now;
        self.end_report(workspace, agent_id, now, ttl, is_taken);
    }

    /// Ends the last report of an agent, if its time is of these.
    fn end_report(
        &mut self,
        workspace: WorkspaceId,
        agent_id: &AgentId,
        now: Timestamp,
        ttl: i64,
        is_of: impl FnOnce(Timestamp) -> bool,
    ) {
        let history = self.workspaces.get_mut(&workspace);
        let Some(agent) = history.and_then(|history| history.agents.get_mut(agent_id)) else {
            return;
        };
        if agent.reported_at.is_some_and(is_of) {
            let before = agent.changes.len();
            agent.end(now, ttl);
            agent.go_offline(now);
            self.changes += agent.changes.len() - before;
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
        if let Some(end) = self
            .reported_at
            .map(|reported| reported.plus_millis(ttl))
            .filter(|end| *end <= now)
        {
            self.go_offline(end);
        }
    }

    /// Adds the change to offline at this time, unless the agent is offline.
    fn go_offline(&mut self, at: Timestamp) {
        let last = self.changes.back().filter(|last| last.status != LiveStatus::Offline);
        if let Some(agent_id) = last.map(|last| last.agent_id.clone()) {
            self.changes.push_back(StatusChange {
                agent_id,
                at,
                status: LiveStatus::Offline,
                current_task_id: None,
                current_task_title: None,
            });
        }
    }

    /// Drops what is too old, and the oldest of too many. The last of the old changes tells what the agent was when the
    /// 24 hours began, so it is kept; where there is none, the agent was offline.
    fn forget(&mut self, now: Timestamp) {
        let oldest = now.plus_millis(-KEPT);
        let is_old = |change: Option<&StatusChange>| change.is_some_and(|change| change.at < oldest);
        while self.changes.len() > OF_AGENT || is_old(self.changes.get(1)) {
            self.changes.pop_front();
        }
        let first = self.changes.front();
        if is_old(first) && first.is_some_and(|first| first.status == LiveStatus::Offline) {
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
    fn a_status_that_lasts_longer_than_a_day_is_known() {
        let (mut histories, workspace) = histories();
        let (day, hour) = (24 * 3600, 3600);
        for second in (0..day + hour).step_by(60) {
            histories.note(workspace, change("a", second, LiveStatus::Idle, None), at(second), TTL);
        }
        let now = at(day + hour - 1);
        assert_eq!(shown(&histories.read(workspace, |_| true, None, now, TTL)), [""; 0]);
        // The same report again is no change, and its end is one.
        histories.note(
            workspace,
            change("a", day + hour, LiveStatus::Idle, None),
            at(day + hour),
            TTL,
        );
        let all = histories.read(workspace, |_| true, None, at(day + 2 * hour), TTL);
        assert_eq!(shown(&all), [format!("a {} offline -", day + hour + 120)]);
        histories.read(workspace, |_| true, None, at(3 * day), TTL);
        assert_eq!(histories.changes, 0);
    }

    #[test]
    fn a_first_report_of_offline_is_no_change() {
        let (mut histories, workspace) = histories();
        for (second, status) in [(1, LiveStatus::Offline), (2, LiveStatus::Idle)] {
            histories.note(workspace, change("a", second, status, None), at(second), TTL);
        }
        let all = histories.read(workspace, |_| true, None, at(3), TTL);
        assert_eq!(shown(&all), ["a 2 idle -"]);
    }

    #[test]
    fn a_report_that_was_removed_is_a_change_to_offline() {
        let (mut histories, workspace) = histories();
        let agent: AgentId = "a".parse().unwrap();
        histories.note_absent(workspace, &agent, at(1), TTL);
        histories.note(workspace, change("a", 10, LiveStatus::Idle, None), at(10), TTL);
        // The list may have been read before the report.
        histories.note_absent(workspace, &agent, at(11), TTL);
        histories.note_absent(workspace, &agent, at(12), TTL);
        histories.note_absent(workspace, &agent, at(13), TTL);
        histories.note(workspace, change("a", 20, LiveStatus::Idle, None), at(20), TTL);
        let all = histories.read(workspace, |_| true, None, at(21), TTL);
        assert_eq!(shown(&all), ["a 10 idle -", "a 12 offline -", "a 20 idle -"]);
        // A report that has ended before ended at its own time.
        histories.note_absent(workspace, &agent, at(500), TTL);
        let later = histories.read(workspace, |_| true, Some(at(21)), at(500), TTL);
        assert_eq!(shown(&later), ["a 140 offline -"]);
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
