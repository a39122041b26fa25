//! The states of the agents by the log, and what contradicts them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use agentcfg_core::model::{Action, AuditEntry, Changes, TargetType};
use serde_json::Value;

use super::{NAMED, agent};

/// What a question was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The current versions of the active agents, with the labels that point at them.
    Versions,
    /// All labels.
    Labels,
    /// All agents, active or not, with their role.
    Agents,
    /// Where the label `next` of the active agents points.
    Planned,
    /// The content there.
    Released,
}

impl Form {
    const ALL: [Self; 5] = [
        Self::Versions,
        Self::Labels,
        Self::Agents,
        Self::Planned,
        Self::Released,
    ];
}

/// An agent in a list: its identifier, whether it is active, and its role.
pub type Listed = (String, bool, Option<String>);

/// An answer, and the revisions of which it may be.
#[derive(Debug)]
pub struct Answer {
    pub form: Form,
    pub hash: u64,
    pub first: u64,
    pub last: u64,
}

/// The hash of rows in any order: the sum of theirs.
pub fn listed<R: Hash>(rows: impl Iterator<Item = R>) -> u64 {
    let hash = |row: R| {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        hasher.finish()
    };
    rows.map(hash).fold(0, u64::wrapping_add)
}

#[derive(Debug, Default)]
struct AgentThen {
    is_active: bool,
    /// The role of each version: the only content that the clients change.
    roles: Vec<Option<String>>,
    labels: BTreeMap<String, u64>,
}

impl AgentThen {
    fn version(&self) -> u64 {
        self.roles.len() as u64
    }

    /// The hash of the agent's rows in an answer.
    fn rows(&self, id: &str, form: Form) -> u64 {
        let id = id.to_owned();
        let version = self.version();
        let active = self.is_active.then_some(());
        match form {
            Form::Versions => listed(active.into_iter().map(|()| {
                let labels = self.labels.iter().filter(|(_, at)| **at == version);
                let labels: Vec<_> = labels.map(|(label, _)| label.clone()).collect();
                (id.clone(), version, labels)
            })),
            Form::Labels => listed(self.labels.iter().map(|(label, at)| (id.clone(), label.clone(), *at))),
            Form::Agents => listed(std::iter::once::<Listed>((
                id,
                self.is_active,
                self.roles.last().cloned().flatten(),
            ))),
            Form::Planned => listed(active.and_then(|()| Some((id, self.points("next")?))).into_iter()),
            Form::Released => listed(
                active
                    .and_then(|()| {
                        let version = self.points("next")?;
                        Some((id, version, self.roles[version as usize - 1].clone()))
                    })
                    .into_iter(),
            ),
        }
    }

    fn points(&self, label: &str) -> Option<u64> {
        match label {
            "latest" => Some(self.version()),
            label => self.labels.get(label).copied(),
        }
    }
}

/// The history of a workspace by its log, entry after entry.
#[derive(Debug, Default)]
pub struct History {
    agents: BTreeMap<String, AgentThen>,
    /// The agents that the set has: those that the last apply has named.
    set: BTreeSet<String>,
    /// By agent: the moves of the label `next`, each with its revision.
    next: BTreeMap<String, Vec<(u64, Option<u64>)>>,
    /// By form: the hash of the present answer, and that of each revision.
    sums: HashMap<Form, u64>,
    answers: HashMap<Form, Vec<u64>>,
    pub violations: Vec<String>,
}

impl History {
    /// Judges the decision of an entry on the state before it, and takes it into the state.
    pub fn take(&mut self, entry: &AuditEntry) {
        match entry.action {
            Action::LabelPromoted => self.judge_promotion(entry),
            Action::AgentRolledBack => self.judge_rollback(entry),
            Action::LabelRestored => self.judge_restore(entry),
            _ => {}
        }
        let changes = entry.changes.iter().filter_map(|(path, change)| {
            let of_several = path.strip_prefix("agents/").and_then(|path| path.split_once('/'));
            let of_target = || (entry.target.kind == TargetType::Agent).then_some((&*entry.target.id, &**path));
            let (agent, field) = of_several.or_else(of_target)?;
            Some((agent, field, &change.to))
        });
        let changed: BTreeSet<&str> = changes.clone().map(|(agent, ..)| agent).collect();
        self.sum(&changed, u64::wrapping_sub);
        for (agent, field, to) in changes {
            let then = self.agents.entry(agent.to_owned()).or_default();
            match (field, field.strip_prefix("labels/")) {
                ("role", _) => then.roles.push(to.as_str().map(str::to_owned)),
                ("is_active", _) => then.is_active = *to == Value::Bool(true),
                (_, Some(label)) => {
                    if label == "next" {
                        let moves = self.next.entry(agent.to_owned()).or_default();
                        moves.push((entry.revision, to.as_u64()));
                    }
                    match to.as_u64() {
                        Some(version) => drop(then.labels.insert(label.to_owned(), version)),
                        None => drop(then.labels.remove(label)),
                    }
                }
                _ => {}
            }
        }
        self.sum(&changed, u64::wrapping_add);
        if entry.action == Action::AgentsApplied {
            self.judge_apply(entry);
        }
        for form in Form::ALL {
            let hash = self.sums.get(&form).copied().unwrap_or_default();
            self.answers.entry(form).or_default().push(hash);
        }
    }

    /// Takes the rows of these agents out of the present answers, or puts them in.
    fn sum(&mut self, changed: &BTreeSet<&str>, sum: fn(u64, u64) -> u64) {
        for id in changed {
            let Some(then) = self.agents.get(*id) else { continue };
            for form in Form::ALL {
                let present = self.sums.entry(form).or_default();
                *present = sum(*present, then.rows(id, form));
            }
        }
    }

    /// A promotion moves the label of exactly those that bore the other one, to where that pointed.
    fn judge_promotion(&mut self, entry: &AuditEntry) {
        let label = entry.changes.keys().next().and_then(|path| path.rsplit('/').next());
        let to = label.unwrap_or_default().to_owned();
        let from = match &*to {
            "stable" => "next",
            _ => "latest",
        };
        let named: Vec<String> = (0..NAMED).map(|number| agent(number).to_string()).collect();
        let is_chosen = |id: &String| to != "pinned" || named.contains(id);
        let mut expected = BTreeMap::new();
        for (id, then) in self.agents.iter().filter(|(id, _)| is_chosen(id)) {
            match then.points(from).filter(|_| then.is_active) {
                Some(version) if then.points(&to) != Some(version) => {
                    expected.insert(id.clone(), (then.points(&to), version));
                }
                Some(_) => {}
                None if to == "pinned" => self.violations.push(format!("{}: {id} was not active", entry.revision)),
                None => {}
            }
        }
        let found = moves(&entry.changes);
        for id in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            if expected.get(id) != found.get(id) {
                self.violations.push(format!(
                    "{}: the promotion to {to} moved {id} as {:?}, and the log says {:?}",
                    entry.revision,
                    found.get(id),
                    expected.get(id)
                ));
            }
        }
    }

    /// A restoration moves the label `next` of exactly those for which it was elsewhere at the revision that its
    /// message names.
    fn judge_restore(&mut self, entry: &AuditEntry) {
        let message = entry.message.as_ref().map(|message| message.as_str());
        let revision: u64 = message.and_then(|text| text.parse().ok()).unwrap_or_default();
        let mut expected = BTreeMap::new();
        for (id, moves) in &self.next {
            let then = moves.iter().rev().find(|(at, _)| *at <= revision);
            let (now, then) = (moves.last().and_then(|(_, to)| *to), then.and_then(|(_, to)| *to));
            if now != then {
                expected.insert(id.clone(), (now, then));
            }
        }
        let found: BTreeMap<String, (Option<u64>, Option<u64>)> = entry
            .changes
            .iter()
            .filter_map(|(path, change)| {
                let (agent, _) = path.strip_prefix("agents/")?.split_once('/')?;
                Some((agent.to_owned(), (change.from.as_u64(), change.to.as_u64())))
            })
            .collect();
        if found != expected {
            let text = format!("{}: restored {found:?} and not {expected:?}", entry.revision);
            self.violations.push(text);
        }
    }

    /// A rollback by label takes the content of the version where the label was.
    fn judge_rollback(&mut self, entry: &AuditEntry) {
        let then = self.agents.get(&entry.target.id);
        let expected = then.and_then(|then| {
            let version = then.points("next").filter(|_| then.is_active)?;
            then.roles.get(version as usize - 1)?.clone()
        });
        let found = entry.changes.get("role").and_then(|change| change.to.as_str());
        if found != expected.as_deref() {
            let text = format!("{}: rolled back to {found:?} and not {expected:?}", entry.revision);
            self.violations.push(text);
        }
    }

    /// An apply gives each agent that it names a role of its own. The others of the set are not active after it.
    fn judge_apply(&mut self, entry: &AuditEntry) {
        let named = entry
            .changes
            .keys()
            .filter_map(|path| path.strip_prefix("agents/")?.strip_suffix("/role"));
        let named: BTreeSet<String> = named.map(str::to_owned).collect();
        for (id, then) in &self.agents {
            let is_left = self.set.contains(id) && !named.contains(id);
            if is_left && then.is_active || named.contains(id) && !then.is_active {
                let text = format!("{}: {id} is active or not after an apply, against it", entry.revision);
                self.violations.push(text);
            }
        }
        self.set = named;
    }

    /// Judges what readers were answered.
    pub fn judge(&mut self, answers: &[Answer]) {
        for answer in answers {
            let hashes = self.answers.get(&answer.form).map_or(&[][..], Vec::as_slice);
            let range = answer.first as usize - 1..answer.last as usize;
            if !hashes.get(range).is_some_and(|hashes| hashes.contains(&answer.hash)) {
                self.violations
                    .push(format!("an answer is the state of no revision: {answer:?}"));
            }
        }
    }
}

/// The labels that a promotion has moved, by agent: from where, and where to.
fn moves(changes: &Changes) -> BTreeMap<String, (Option<u64>, u64)> {
    let moves = changes.iter().filter_map(|(path, change)| {
        let (agent, _) = path.strip_prefix("agents/")?.split_once('/')?;
        Some((agent.to_owned(), (change.from.as_u64(), change.to.as_u64()?)))
    });
    moves.collect()
}
