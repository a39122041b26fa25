//! Concurrent batches in one workspace of which some fail: an engine may commit them together.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::*;

const ROUNDS: usize = 12;
const CONTENDERS: usize = 40;
const AGENTS: usize = 6;
const MOST: u64 = 4;

/// The change of a batch. Each batch also appends an entry with the number of its contender.
#[derive(Debug, Clone, Copy)]
enum Op {
    /// Creates an agent, below the maximum of a counter.
    Create(usize),
    /// Replaces an agent that has this version.
    Replace(usize, u64),
    /// Deletes an agent that has this version, and takes it off the counter.
    Delete(usize, u64),
    /// Appends to two logs.
    Note,
}

/// The agents with their values. The version is known until a batch of the round has written the agent.
#[derive(Debug, Clone, Default)]
struct Model {
    agents: BTreeMap<usize, (Option<u64>, usize)>,
    count: u64,
}

impl Op {
    /// A deterministic choice.
    fn choose(seed: u64, versions: &BTreeMap<usize, u64>) -> Self {
        let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 27;
        let agent = (mixed >> 8) as usize % AGENTS;
        // No record has this version.
        let version = versions.get(&agent).copied().unwrap_or(u64::MAX);
        match mixed % 8 {
            0..=2 => Self::Create(agent),
            3 | 4 => Self::Replace(agent, version),
            5 | 6 => Self::Delete(agent, version),
            _ => Self::Note,
        }
    }

    fn batch(self, round: usize, contender: usize) -> Batch {
        let key = |agent: usize| agent_key(agent);
        let append = append(workspace(1), contender);
        let revised = Write::PutRevised(
            revised_key(round, contender),
            format!("{{\"n\":{contender}}}").into_bytes(),
        );
        let (checks, writes) = match self {
            Self::Create(agent) => (
                vec![Check::Absent(key(agent))],
                vec![
                    append,
                    put(&key(agent), contender),
                    add(&counter("c"), 1, Some(MOST)),
                    revised,
                ],
            ),
            Self::Replace(agent, version) => (
                vec![Check::Version(key(agent), version)],
                vec![append, revised, put(&key(agent), contender)],
            ),
            Self::Delete(agent, version) => (
                vec![Check::Version(key(agent), version)],
                vec![append, Write::Delete(key(agent)), add(&counter("c"), -1, None)],
            ),
            Self::Note => (vec![], vec![append, super::append(workspace(2), contender)]),
        };
        Batch { checks, writes }
    }

    fn is_revised(self) -> bool {
        matches!(self, Self::Create(_) | Self::Replace(..))
    }

    fn apply(self, model: &Model, contender: usize) -> Result<Model, CommitError> {
        let mut next = model.clone();
        let held = |agent: usize, version: u64| model.agents.get(&agent).is_some_and(|held| held.0 == Some(version));
        match self {
            Self::Create(agent) if model.agents.contains_key(&agent) => return Err(CommitError::Conflict(0)),
            Self::Create(_) if model.count == MOST => return Err(CommitError::Limit(2)),
            Self::Create(agent) => {
                next.count += 1;
                next.agents.insert(agent, (None, contender));
            }
            Self::Replace(agent, version) | Self::Delete(agent, version) if !held(agent, version) => {
                return Err(CommitError::Conflict(0));
            }
            Self::Replace(agent, _) => drop(next.agents.insert(agent, (None, contender))),
            Self::Delete(agent, _) => {
                next.count -= 1;
                next.agents.remove(&agent);
            }
            Self::Note => {}
        }
        Ok(next)
    }
}

fn agent_key(number: usize) -> Key {
    agent(&format!("agent-{number}"))
}

fn revised_key(round: usize, contender: usize) -> Key {
    Key::in_workspace(workspace(1), Kind::AgentVersion, format!("{round} {contender}"))
}

/// The outcomes of concurrent batches are those of some order in which they are committed one after another: the order
/// of their entries in the log. Each refusal is the one of a moment between two of them.
pub async fn concurrent_batches_have_an_order(store: Arc<dyn Store>) {
    let (mut model, mut last) = (Model::default(), 0);
    for round in 0..ROUNDS {
        let mut versions = BTreeMap::new();
        for number in 0..AGENTS {
            if let Some(record) = read(&store, &agent_key(number)).await {
                versions.insert(number, record.version);
            }
        }
        for (number, held) in &mut model.agents {
            held.0 = versions.get(number).copied();
        }
        let mut contenders = JoinSet::new();
        for contender in 0..CONTENDERS {
            let op = Op::choose((round * CONTENDERS + contender) as u64, &versions);
            let store = store.clone();
            contenders.spawn(async move { (contender, op, store.commit(op.batch(round, contender)).await) });
        }
        let mut accepted = BTreeMap::new();
        let mut refused = Vec::new();
        for (contender, op, outcome) in contenders.join_all().await {
            match outcome {
                Ok(committed) => drop(accepted.insert(committed.numbers[0], (contender, op))),
                Err(error) => refused.push((contender, op, error)),
            }
        }
        let mut moments = vec![model.clone()];
        for (number, (contender, op)) in accepted {
            last += 1;
            assert_eq!(number, last, "no number is left out or given twice");
            model = op
                .apply(&model, contender)
                .expect("an accepted batch holds its conditions");
            moments.push(model.clone());
            assert_eq!(value(&store, &Key::log_entry(workspace(1), number)).await, contender);
            let revised = value(&store, &revised_key(round, contender)).await;
            let expected = match op.is_revised() {
                true => serde_json::json!({"revision": number, "n": contender}),
                false => Value::Null,
            };
            assert_eq!(revised, expected);
        }
        for (contender, op, error) in refused {
            let told = |moment: &Model| op.apply(moment, contender).err() == Some(error.clone());
            assert!(
                moments.iter().any(told),
                "{op:?} was refused with {error} without a cause"
            );
            assert_eq!(value(&store, &revised_key(round, contender)).await, Value::Null);
        }
        assert_eq!(value(&store, &Key::log_head(workspace(1))).await, last);
        assert_eq!(read(&store, &Key::log_entry(workspace(1), last + 1)).await, None);
        assert_eq!(
            read(&store, &counter("c"))
                .await
                .map_or(Value::from(0), |record| parse(&record)),
            model.count
        );
        for number in 0..AGENTS {
            let expected = model.agents.get(&number).map_or(Value::Null, |held| held.1.into());
            assert_eq!(value(&store, &agent_key(number)).await, expected, "agent {number}");
        }
    }
}

/// Batches of several workspaces, which an engine may commit together, keep the counters, logs and records of each
/// apart.
pub async fn concurrent_workspaces_stay_apart(store: Arc<dyn Store>) {
    const WORKSPACES: u128 = 24;
    const EACH: usize = 6;
    let mut contenders = JoinSet::new();
    for number in 0..EACH {
        for of in 1..=WORKSPACES {
            let (store, key) = (
                store.clone(),
                Key::in_workspace(workspace(of), Kind::Agent, number.to_string()),
            );
            let counter = Key::in_workspace(workspace(of), Kind::Counter, "c");
            let version = Key::in_workspace(workspace(of), Kind::AgentVersion, number.to_string());
            let batch = Batch {
                checks: vec![Check::Absent(key.clone())],
                writes: vec![
                    put(&key, of as u64),
                    // Of the odd workspaces each takes half.
                    add(&counter, 1, (of % 2 == 1).then_some(EACH as u64 / 2)),
                    append(workspace(of), number),
                    Write::PutRevised(version, b"{\"n\":1}".to_vec()),
                ],
            };
            contenders.spawn(async move { (of, store.commit(batch).await) });
        }
    }
    let mut committed: BTreeMap<u128, Vec<Vec<u64>>> = BTreeMap::new();
    for (of, outcome) in contenders.join_all().await {
        match outcome {
            Ok(done) => committed.entry(of).or_default().push(done.numbers),
            Err(error) => assert_eq!((error, of % 2), (CommitError::Limit(1), 1)),
        }
    }
    for of in 1..=WORKSPACES {
        let room = if of % 2 == 1 { EACH as u64 / 2 } else { EACH as u64 };
        let done = committed.remove(&of).unwrap_or_default();
        for place in [1, 2] {
            let mut numbers: Vec<u64> = done.iter().map(|numbers| numbers[place]).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=room).collect::<Vec<_>>(), "workspace {of}");
        }
        let counter = Key::in_workspace(workspace(of), Kind::Counter, "c");
        assert_eq!(value(&store, &counter).await, room);
        assert_eq!(value(&store, &Key::log_head(workspace(of))).await, room);
        let agents = Scan::all(Partition::Workspace(workspace(of)), Kind::Agent);
        let found = store.scan(&agents).await.unwrap().entries;
        assert_eq!(found.len() as u64, room);
        let mut versions: Vec<u64> = found.iter().map(|(_, record)| record.version).collect();
        let mut told: Vec<u64> = done.iter().map(|numbers| numbers[0]).collect();
        versions.sort_unstable();
        told.sort_unstable();
        assert_eq!(versions, told, "each batch is told its own version");
        assert!(found.iter().all(|(_, record)| parse(record) == of as u64));
    }
}
