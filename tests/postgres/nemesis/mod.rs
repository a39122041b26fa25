//! Faults of databases, connections and servers, while random clients work: what the clients saw has to be one history.
//!
//! Each cycle has two new workspaces. Its clients create agents, take places of a plan with a limit, replace values on
//! conditions, and use keys while these are revoked. In the middle a fault happens. At the end everything that was seen is
//! checked against the log ([`checker`]), and the tests of the checker show that it finds what was planted.
//!
//! `CYCLES` sets the number of cycles and `SEED` the choices; see `scripts/nemesis.sh`.

mod checker;
mod checker_tests;
mod clients;
mod history;
mod proxy;
mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentcfg_tests::harness::{Dice, setting};

use self::clients::Scene;
use self::history::{History, Outcome, Recorder};
use self::stage::{Fault, Stage};
use crate::server::{Answer, token};

const CLIENTS: usize = 8;

const REGISTERS: usize = 3;

/// The limit of the free plan.
const LIMIT: usize = 3;

/// How many requests are done before a fault, and again after it.
const REQUESTS: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_see_one_history_through_faults() {
    let (cycles, seed) = (setting("CYCLES", 7), setting("SEED", 1));
    let mut dice = Dice::new(seed);
    let Some(mut stage) = Stage::start(&mut dice).await else {
        return;
    };
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults: BTreeMap<Fault, usize> = BTreeMap::new();
    let mut violated = 0;
    for cycle in 0..cycles {
        // Each kind of fault comes before any comes a second time.
        let fault = match Fault::ALL.get(usize::try_from(cycle).unwrap()) {
            Some(fault) => *fault,
            None => Fault::ALL[dice.below(Fault::ALL.len())],
        };
        *faults.entry(fault).or_default() += 1;
        let history = run(&mut stage, fault, dice.split(0)).await;
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
    assert!(totals["done"] > 0 && (cycles < 7 || totals.get("unknown").is_some_and(|count| *count > 0)));
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
async fn run(stage: &mut Stage, fault: Fault, mut dice: Dice) -> History {
    let scene = Arc::new(set(stage).await);
    let mut clients = clients::start(&scene, CLIENTS, &mut dice);
    progress(&scene).await;
    tokio::time::sleep(dice.millis(50)).await;
    stage
        .strike(fault, &mut dice, |stage| {
            *scene.servers.write().unwrap() = stage.addresses();
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
        open: stage.stored(&scene.open).await,
        limited: stage.stored(&scene.limited).await,
        limit: LIMIT,
    }
}

/// Two new workspaces, registers and a key.
async fn set(stage: &Stage) -> Scene {
    let owner = token("ada");
    let api = stage.apis(&owner).remove(0);
    // A server may still find out that the database is back.
    for api in stage.apis(&owner) {
        stage::settled(async || api.get("/api/workspaces").await).await;
    }
    let (open, limited) = (api.workspace().await, api.workspace().await);
    stage.apis(&token("root"))[0].set_plan(&open, "enterprise").await;
    let (_, key) = api.key(&open, "write", 1_000_000).await;
    for register in 0..REGISTERS {
        let created: Answer = api.create(&open, &format!("register-{register}")).await;
        created.expect(201);
    }
    Scene {
        servers: stage.addresses().into(),
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
