//! Faults of databases, connections and servers, while random clients work: what the clients saw has to be one history.
//!
//! Each cycle has two new workspaces. Its clients create agents, take places of a plan with a limit, replace values on
//! conditions, and use keys while these are revoked. In the middle a fault happens. At the end everything that was seen
//! is checked against the log ([`checker`]), and the tests of the checker show that it finds what was planted.
//!
//! Each database has a [`Stage`] of its own, with its kinds of faults. `CYCLES` sets the number of cycles and `SEED`
//! the choices; see `scripts/nemesis.sh`.

mod checker;
mod checker_tests;
mod clients;
mod history;
pub mod proxy;
mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentcfg_tests::harness::{Dice, setting};
use serde_json::Value;

use self::clients::Scene;
use self::history::{Entry, History, Outcome, Recorder, Stored};
pub use self::servers::Servers;
use crate::server::{Answer, token};

const CLIENTS: usize = 8;

const REGISTERS: usize = 3;

/// The limit of the free plan.
const LIMIT: usize = 3;

/// How many requests are done before a fault, and again after it.
const REQUESTS: u64 = 60;

/// A database, the servers on it, and the faults that happen to them.
pub trait Stage {
    type Fault: Copy + Debug + Ord + 'static;

    /// All kinds of faults.
    const FAULTS: &'static [Self::Fault];

    /// Whether each run of all kinds leaves requests whose outcome is not known.
    const LEAVES_UNKNOWN: bool;

    fn servers(&self) -> &Servers;

    /// Makes a fault happen, and ends it: after this the system is whole, though the servers may not know it yet.
    /// `changed` is told when the servers are others.
    async fn strike(&mut self, fault: Self::Fault, dice: &mut Dice, changed: impl Fn(&Servers));

    /// Waits until no server's transaction is under way: one whose answer was lost may still be.
    async fn until_quiet(&self);

    /// The number of active agents that the store counts in a workspace, and the revision of the log's head.
    async fn counted(&self, workspace: &str) -> (u64, u64);
}

/// Runs the cycles, of which there are as many as kinds of faults where `CYCLES` sets no number.
///
/// # Panics
///
/// When a violation was found.
pub async fn run<S: Stage>(stage: &mut S, seed: u64, mut dice: Dice) {
    let cycles = setting("CYCLES", S::FAULTS.len());
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults: BTreeMap<S::Fault, usize> = BTreeMap::new();
    let mut violated = 0;
    for cycle in 0..cycles {
        // Each kind of fault comes before any comes a second time.
        let fault = match S::FAULTS.get(cycle) {
            Some(fault) => *fault,
            None => S::FAULTS[dice.below(S::FAULTS.len())],
        };
        *faults.entry(fault).or_default() += 1;
        let history = run_cycle(stage, fault, dice.split(0)).await;
        for op in &history.ops {
            *totals.entry(kind(&op.outcome)).or_default() += 1;
        }
        let violations = checker::violations(&history);
        println!(
            "cycle {cycle}: {fault:?}, {} requests, {} violations",
            history.ops.len(),
            violations.len()
        );
        for violation in &violations {
            eprintln!("SEED={seed}, cycle {cycle}, {fault:?}: {violation}");
        }
        violated += violations.len();
    }
    println!("FIGURES SEED={seed}: {cycles} cycles {faults:?}, requests {totals:?}, {violated} violations");
    assert_eq!(violated, 0, "SEED={seed}");
    let unknown = totals.get("unknown").is_some_and(|count| *count > 0);
    assert!(totals["done"] > 0);
    assert!(unknown || cycles < S::FAULTS.len() || !S::LEAVES_UNKNOWN);
}

fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Refused(_) => "refused",
        Outcome::Unknown => "unknown",
        Outcome::Hung => "hung",
    }
}

/// One cycle, up to a whole and quiet system.
async fn run_cycle<S: Stage>(stage: &mut S, fault: S::Fault, mut dice: Dice) -> History {
    let scene = Arc::new(set(stage.servers()).await);
    let mut clients = clients::start(&scene, CLIENTS, &mut dice);
    progress(&scene).await;
    tokio::time::sleep(dice.millis(50)).await;
    stage
        .strike(fault, &mut dice, |servers| {
            *scene.servers.write().unwrap() = servers.addresses();
        })
        .await;
    progress(&scene).await;
    scene.stop.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    stage.until_quiet().await;
    History {
        ops: scene.recorder.take(),
        open: stored(stage, &scene.open).await,
        limited: stored(stage, &scene.limited).await,
        limit: LIMIT,
    }
}

/// Two new workspaces, registers and a key.
async fn set(servers: &Servers) -> Scene {
    let owner = token("ada");
    let api = servers.apis(&owner).remove(0);
    // A server may still find out that the database is back.
    for api in servers.apis(&owner) {
        settled(async || api.get("/api/workspaces").await).await;
    }
    let (open, limited) = (api.workspace().await, api.workspace().await);
    servers.apis(&token("root"))[0].set_plan(&open, "enterprise").await;
    let (_, key) = api.key(&open, "write", 1_000_000).await;
    for register in 0..REGISTERS {
        let created: Answer = api.create(&open, &format!("register-{register}")).await;
        created.expect(201);
    }
    Scene {
        servers: servers.addresses().into(),
        owner,
        key,
        open,
        limited,
        registers: REGISTERS,
        recorder: Recorder::default(),
        stop: AtomicBool::new(false),
    }
}

/// Waits until more requests are done: the system works, or works again.
async fn progress(scene: &Scene) {
    let goal = scene.recorder.done() + REQUESTS;
    let reached = async {
        while scene.recorder.done() < goal {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(90), reached).await;
    assert!(
        reached.is_ok(),
        "the servers do not go on: {} requests done",
        scene.recorder.done()
    );
}

/// What is stored of a workspace.
async fn stored<S: Stage>(stage: &S, workspace: &str) -> Stored {
    let owner = token("ada");
    let mut stored = Stored::default();
    for api in stage.servers().apis(&owner) {
        let listed = settled(async || api.list(workspace).await).await;
        let name = |agent: &Value| agent["agent_id"].as_str().unwrap().to_owned();
        let listed: BTreeSet<String> = listed.as_array().unwrap().iter().map(name).collect();
        stored.listed.push(listed);
    }
    let (counted, head) = stage.counted(workspace).await;
    stored.counted = usize::try_from(counted).unwrap();
    stored.head = head;
    let api = stage.servers().apis(&owner).remove(0);
    let mut after = "start".to_owned();
    loop {
        let path = format!("/api/changes?workspace_id={workspace}&after={after}&limit=1000");
        let page = settled(async || api.get(&path).await).await;
        let page = page.as_array().unwrap();
        let Some(last) = page.last() else { break };
        after = last["cursor"].as_str().unwrap().to_owned();
        stored.log.extend(page.iter().map(entry));
    }
    stored
}

/// The answer to a read, tried again while a server still finds out that the database is back.
async fn settled(ask: impl AsyncFn() -> Answer) -> Value {
    for _ in 0..300 {
        let answer = ask().await;
        if answer.status != 503 {
            return answer.expect(200);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("a server does not come back");
}

fn entry(event: &Value) -> Entry {
    Entry {
        revision: event["revision"].as_u64().unwrap(),
        action: event["type"].as_str().unwrap().to_owned(),
        target: event["target"]["id"].as_str().unwrap_or_default().to_owned(),
        version: event["version"].as_u64().unwrap_or(0),
        value: event["changes"]["display_name"]["to"].as_str().map(str::to_owned),
    }
}
