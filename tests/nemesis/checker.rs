//! Checks a history against what the service promises.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::history::{Action, Entry, History, Op, Outcome, Stored};

/// Everything in a history that the service promises not to happen.
pub fn violations(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    answers(history, &mut found);
    log(&history.open, "open", &mut found);
    log(&history.limited, "limited", &mut found);
    creations(history, &mut found);
    limit(history, &mut found);
    keys(history, &mut found);
    let registers: BTreeSet<&str> = history.ops.iter().filter_map(register).collect();
    for name in registers {
        Register::new(history, name).check(&mut found);
    }
    found
}

/// No answer has a status that its request cannot have, and each request is answered.
fn answers(history: &History, found: &mut Vec<String>) {
    for op in &history.ops {
        let expected: &[u16] = match &op.action {
            Action::Create { .. } => &[409, 503],
            Action::Claim { .. } => &[409, 422, 503],
            Action::Release { .. } => &[404, 503],
            Action::Write { .. } => &[412, 503],
            Action::Use { .. } => &[401, 503],
            Action::Revoke { .. } => &[404, 503],
            Action::Count | Action::Read { .. } => &[503],
        };
        match op.outcome {
            Outcome::Refused(status) if !expected.contains(&status) => {
                found.push(format!("unexpected status {status}: {op:?}"));
            }
            Outcome::Hung => found.push(format!("no answer within a minute: {op:?}")),
            _ => {}
        }
    }
}

/// The log has no gap, and the counter and each server's list agree with it.
fn log(stored: &Stored, name: &str, found: &mut Vec<String>) {
    for (i, entry) in stored.log.iter().enumerate() {
        if entry.revision != i as u64 + 1 {
            found.push(format!("{name}: a gap in the log before {entry:?}"));
            break;
        }
    }
    if stored.log.last().map_or(0, |entry| entry.revision) != stored.head {
        found.push(format!("{name}: the log does not end at its head {}", stored.head));
    }
    let mut active = BTreeSet::new();
    for entry in &stored.log {
        let fits = match &*entry.action {
            "agent.created" | "agent.restored" => active.insert(entry.target.clone()),
            "agent.deactivated" => active.remove(&entry.target),
            "agent.updated" => active.contains(&entry.target),
            _ => true,
        };
        if !fits {
            found.push(format!("{name}: {entry:?} does not follow from the entries before it"));
        }
    }
    for (server, listed) in stored.listed.iter().enumerate() {
        if *listed != active {
            let difference: Vec<_> = listed.symmetric_difference(&active).collect();
            found.push(format!(
                "{name}: the list of server {server} and the log differ in {difference:?}"
            ));
        }
    }
    if stored.counted != active.len() {
        let (counted, active) = (stored.counted, active.len());
        found.push(format!("{name}: {counted} agents are counted and {active} are there"));
    }
}

fn created<'a>(stored: &'a Stored, agent: &str) -> impl Iterator<Item = &'a Entry> {
    let agent = agent.to_owned();
    let is_created = move |entry: &&Entry| entry.action == "agent.created" && entry.target == agent;
    stored.log.iter().filter(is_created)
}

/// An agent whose creation was answered exists, once; one whose creation was refused does not exist.
fn creations(history: &History, found: &mut Vec<String>) {
    let mut agents: BTreeMap<(&str, bool), Vec<&Op>> = BTreeMap::new();
    for op in &history.ops {
        match &op.action {
            Action::Create { agent } => agents.entry((agent, false)).or_default().push(op),
            Action::Claim { agent } => agents.entry((agent, true)).or_default().push(op),
            _ => {}
        }
    }
    for ((agent, is_limited), ops) in &agents {
        let stored = if *is_limited { &history.limited } else { &history.open };
        let entries = created(stored, agent).count();
        let done = ops.iter().filter(|op| matches!(op.outcome, Outcome::Done(_))).count();
        let unknown = ops.iter().filter(|op| op.outcome == Outcome::Unknown).count();
        if entries < done {
            found.push(format!("the creation of {agent} was answered, and is not in the log"));
        }
        if done > 1 || entries > 1 {
            found.push(format!(
                "{agent} was created {entries} times, and answered {done} times"
            ));
        }
        if entries > done + unknown {
            found.push(format!("the creation of {agent} was refused, and is in the log"));
        }
        // A client alone creates each of these, one attempt after another.
        let mut may_exist = false;
        for op in ops {
            if op.outcome == Outcome::Refused(409) && !may_exist {
                found.push(format!("{agent} was taken before it was created: {op:?}"));
            }
            may_exist |= matches!(op.outcome, Outcome::Done(_) | Outcome::Unknown);
        }
    }
    let known: BTreeSet<&str> = agents.keys().map(|(agent, _)| *agent).collect();
    for entry in history.open.log.iter().chain(&history.limited.log) {
        if entry.action == "agent.created" && !known.contains(&*entry.target) && !entry.target.starts_with("register") {
            found.push(format!("no client has asked for {entry:?}"));
        }
    }
}

/// The limit of the plan is kept at each revision and in each list, and a deletion that was answered stays.
fn limit(history: &History, found: &mut Vec<String>) {
    let mut active = 0_usize;
    for entry in &history.limited.log {
        match &*entry.action {
            "agent.created" => active += 1,
            "agent.deactivated" => active = active.saturating_sub(1),
            _ => {}
        }
        if active > history.limit {
            found.push(format!("{active} agents with a limit of {}: {entry:?}", history.limit));
        }
    }
    for op in &history.ops {
        match (&op.action, &op.outcome) {
            (Action::Count, Outcome::Done(seen)) if seen.count > history.limit => {
                found.push(format!("more agents than the limit {}: {op:?}", history.limit));
            }
            (Action::Release { agent }, outcome) => {
                let is_deleted = |entry: &&Entry| entry.action == "agent.deactivated" && entry.target == *agent;
                let entries = history.limited.log.iter().filter(is_deleted).count();
                if matches!(outcome, Outcome::Done(_)) && entries != 1 {
                    found.push(format!("{entries} deletions in the log: {op:?}"));
                }
            }
            _ => {}
        }
    }
}

/// A key works until its revocation begins, and not after its revocation was answered.
fn keys(history: &History, found: &mut Vec<String>) {
    // For each key: when its revocation began, and when it was answered.
    let mut revoked: HashMap<&str, (u64, u64)> = HashMap::new();
    for op in &history.ops {
        if let Action::Revoke { key } = &op.action {
            let times = revoked.entry(key).or_insert((u64::MAX, u64::MAX));
            times.0 = times.0.min(op.begin);
            // A revocation that was made before, by an attempt whose outcome is not known, is answered with 404.
            if matches!(op.outcome, Outcome::Done(_) | Outcome::Refused(404)) {
                times.1 = times.1.min(op.end);
            }
        }
    }
    for op in &history.ops {
        let Action::Use { key } = &op.action else { continue };
        let (begun, answered) = revoked.get(&**key).copied().unwrap_or((u64::MAX, u64::MAX));
        match op.outcome {
            Outcome::Done(_) if op.begin > answered => {
                found.push(format!("accepted after the revocation was answered: {op:?}"));
            }
            Outcome::Refused(401) if op.end < begun => {
                found.push(format!("refused before the revocation began: {op:?}"));
            }
            _ => {}
        }
    }
}

fn register(op: &Op) -> Option<&str> {
    match &op.action {
        Action::Write { register, .. } | Action::Read { register } => Some(register),
        _ => None,
    }
}

/// One agent as a register. Its versions in the log give the order of the writes, so that linearizability is a
/// comparison of that order with the times of the requests.
struct Register<'a> {
    name: &'a str,
    /// The values by version; that of version 1 is the one at the creation.
    values: BTreeMap<u64, &'a str>,
    ops: Vec<&'a Op>,
}

impl<'a> Register<'a> {
    fn new(history: &'a History, name: &'a str) -> Self {
        let entries = history.open.log.iter().filter(|entry| entry.target == name);
        let values = entries.filter_map(|entry| Some((entry.version, entry.value.as_deref()?)));
        Self {
            name,
            values: values.collect(),
            ops: history.ops.iter().filter(|op| register(op) == Some(name)).collect(),
        }
    }

    fn check(&self, found: &mut Vec<String>) {
        let name = self.name;
        for (i, version) in self.values.keys().enumerate() {
            if *version != i as u64 + 1 {
                found.push(format!("{name}: version {version} is no {}", i + 1));
            }
        }
        for (version, value) in self.values.iter().skip(1) {
            self.made(*version, value, found);
        }
        // When each version was seen first at the latest, by a write or a read that ended.
        let mut seen: Vec<(u64, u64)> = Vec::new();
        for op in &self.ops {
            let Outcome::Done(answer) = &op.outcome else { continue };
            if self.values.get(&answer.version) != Some(&&*answer.value) {
                found.push(format!("{name}: the log has another value, or none: {op:?}"));
                continue;
            }
            seen.push((op.end, answer.version));
            if let Action::Write { value, basis, .. } = &op.action
                && (answer.value != *value || answer.version != basis + 1)
            {
                found.push(format!("{name}: the answer is not of this write: {op:?}"));
            }
        }
        seen.sort_unstable();
        for op in &self.ops {
            let Outcome::Done(answer) = &op.outcome else { continue };
            let before = seen
                .iter()
                .take_while(|(end, _)| *end < op.begin)
                .map(|(_, version)| *version)
                .max();
            let is_write = matches!(op.action, Action::Write { .. });
            if before.is_some_and(|before| before > answer.version || (is_write && before == answer.version)) {
                found.push(format!(
                    "{name}: older than version {before:?}, which was seen before: {op:?}"
                ));
            }
        }
        self.refusals(&seen, found);
    }

    /// A value in the log is that of a write that may have been made, which began before it was seen, on the version
    /// before.
    fn made(&self, version: u64, value: &str, found: &mut Vec<String>) {
        let name = self.name;
        let wrote = |op: &&&Op| matches!(&op.action, Action::Write { value: written, .. } if written == value);
        let Some(op) = self.ops.iter().find(wrote) else {
            found.push(format!("{name}: no client wrote {value}"));
            return;
        };
        if let Outcome::Refused(_) = op.outcome {
            found.push(format!("{name}: refused, and made as version {version}: {op:?}"));
        }
        if let Action::Write { basis, .. } = op.action
            && basis + 1 != version
        {
            found.push(format!(
                "{name}: made as version {version}, but not on its condition: {op:?}"
            ));
        }
        let early = |read: &&&Op| {
            matches!(&read.outcome, Outcome::Done(seen) if seen.version == version) && read.end < op.begin
        };
        if let Some(read) = self.ops.iter().find(early) {
            found.push(format!("{name}: {read:?} has seen what was written later: {op:?}"));
        }
    }

    /// A write is refused with 412 only when its version was not the present one at some time of the request.
    fn refusals(&self, seen: &[(u64, u64)], found: &mut Vec<String>) {
        for op in &self.ops {
            let Action::Write { basis, .. } = &op.action else {
                continue;
            };
            if op.outcome != Outcome::Refused(412) {
                continue;
            }
            // Some write has made a later version, and began before this one ended.
            let later = self.values.range(basis + 1..).any(|(_, value)| {
                let made = |other: &&&Op| matches!(&other.action, Action::Write { value: v, .. } if v == value);
                self.ops.iter().find(made).is_some_and(|other| other.begin < op.end)
            });
            let known = seen.iter().any(|(_, version)| *version == *basis);
            if !later || !known {
                found.push(format!("{}: the condition held: {op:?}", self.name));
            }
        }
    }
}
