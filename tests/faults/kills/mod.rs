//! `kill -9` under all kinds of changes, backups and model calls. Each acknowledged change is there after the restart;
//! one without an answer happened or not, and log, records and histories agree which.

mod actor;
mod agents;
mod backups;
mod fleet;
mod keys;
mod log;
mod provider_key;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use agentcfg_tests::harness::{Dice, Server, Studio, Wire, eventually, run, scratch, setting};
use serde_json::{Value, json};

use self::actor::{Actor, Change};
use self::agents::Agents;
use self::backups::Backup;
use self::fleet::Fleet;
use self::keys::Keys;
use self::provider_key::{CALLER, MANAGED, ProviderKey};
use crate::provider::Provider;

/// Kills in the short form; `CYCLES` sets another number.
const CYCLES: usize = 8;
/// The kills of one workspace and its data directory, so that comparing the whole log stays cheap.
const KILLS_OF_A_DIRECTORY: usize = 20;
/// The most changes that are acknowledged before a kill.
const ACKNOWLEDGED: usize = 150;
/// Actors that change single agents.
const AGENT_ACTORS: usize = 3;
const LIMIT: usize = 60;

fn start(data: &Path, provider: &Provider) -> Server {
    Server::builder()
        .data(data)
        .set("default_plan", "pro")
        .set("plan_limit_pro", LIMIT.to_string())
        .set("session_rate_limit", "1000000")
        .set("openai_base_url", provider.url())
        .set("openai_api_key", MANAGED)
        .start()
}

/// The actors of one workspace.
#[derive(Default)]
struct Cast {
    agents: Vec<Agents>,
    keys: Keys,
    provider_key: ProviderKey,
    fleet: Fleet,
}

impl Cast {
    fn new() -> Self {
        Self {
            agents: (0..AGENT_ACTORS).map(Agents::new).collect(),
            ..Self::default()
        }
    }

    fn all(&mut self) -> Vec<&mut dyn Actor> {
        let mut all: Vec<&mut dyn Actor> = self.agents.iter_mut().map(|actor| actor as _).collect();
        all.extend([
            &mut self.keys as &mut dyn Actor,
            &mut self.provider_key,
            &mut self.fleet,
        ]);
        all
    }
}

/// What an actor knows of its steps since the last restart.
#[derive(Default)]
struct Journal {
    acknowledged: Vec<Change>,
    /// The step without an answer. Its change is unknown.
    unknown: Option<Change>,
}

/// Acts until the server is gone.
fn act(actor: &mut dyn Actor, studio: &Studio<'_>, mut dice: Dice, acknowledged: &AtomicUsize) -> Journal {
    let mut wire = Wire::connect(studio.server.address());
    let mut journal = Journal::default();
    loop {
        let step = actor.step(studio, &mut dice);
        let Ok(answer) = wire.send(step.request.to_bytes()).try_receive("POST") else {
            journal.unknown = step.change;
            return journal;
        };
        assert!(answer.status < 300, "{answer:?}");
        journal.acknowledged.extend(actor.answered(step.change, &answer));
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// Compares the entries of an actor with its journal, and tells it what became of the step without an answer.
fn settle(actor: &mut dyn Actor, journal: &Journal, entries: &[Value]) {
    let own: Vec<_> = entries.iter().filter(|entry| actor.owns(entry)).collect();
    let mut expected = journal.acknowledged.iter().collect::<Vec<_>>();
    let happened = own.len() > expected.len();
    if happened {
        expected.extend(&journal.unknown);
    }
    let agrees = own.len() == expected.len()
        && own
            .iter()
            .zip(&expected)
            .all(|(entry, change)| change.is_shown_by(entry));
    assert!(
        agrees,
        "the log is not what was acknowledged, in order: {own:#?}\n{expected:#?}"
    );
    actor.settled(happened);
}

/// Counters equal lists.
fn verify_counters(studio: &Studio<'_>) {
    let whoami = studio
        .server
        .get("/api/whoami")
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    let row = &whoami["workspaces"][0];
    assert_eq!(row["active_agents"], studio.agent_ids().len(), "{row}");
    assert_eq!(row["agent_limit"], LIMIT, "{row}");
}

#[derive(Debug, Default)]
struct Figures {
    kills: usize,
    acknowledged: usize,
    unknown: usize,
    unknown_that_happened: usize,
    backups: usize,
    restored: usize,
}

/// Lets all actors act, makes backups in `place`, and kills the server once enough changes are acknowledged.
fn load_and_kill(
    studio: &Studio<'_>,
    cast: &mut Cast,
    enough: usize,
    floor: u64,
    place: &Path,
    dice: &mut Dice,
) -> (Vec<Journal>, Vec<Backup>) {
    let (acknowledged, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (acknowledged, stop) = (&acknowledged, &stop);
        let actors = cast.all().into_iter().enumerate();
        let acting: Vec<_> = actors
            .map(|(number, actor)| {
                let dice = dice.split(number);
                scope.spawn(move || act(actor, studio, dice, acknowledged))
            })
            .collect();
        let copying = scope.spawn(move || backups::make(studio, place, floor, stop));
        eventually("enough changes are acknowledged", || {
            acknowledged.load(Ordering::Relaxed) >= enough
        });
        stop.store(true, Ordering::SeqCst);
        studio.server.kill();
        let journals = acting.into_iter().map(|actor| actor.join().unwrap()).collect();
        (journals, copying.join().unwrap())
    })
}

/// A number of kills on one data directory.
fn kill_repeatedly(kills: usize, provider: &Provider, dice: &mut Dice, figures: &mut Figures) {
    let place = scratch();
    let data = place.path().join("data");
    let mut server = start(&data, provider);
    let founder = Studio::on(&server);
    founder.create(CALLER, &json!({"model": "gpt-5.5"})).expect(201);
    let mut verified = log::since(&founder, 0).len() as u64;
    let identity = founder.identity();
    let mut cast = Cast::new();
    for _ in 0..kills {
        let enough = 1 + dice.below(ACKNOWLEDGED);
        let (journals, backups) = load_and_kill(&identity.on(&server), &mut cast, enough, verified, place.path(), dice);
        server = start(&data, provider);
        let studio = identity.on(&server);
        let entries = log::since(&studio, verified);
        verified += entries.len() as u64;
        figures.kills += 1;
        figures.backups += backups.len();
        let explained: usize = journals.iter().map(|journal| journal.acknowledged.len()).sum();
        figures.acknowledged += explained;
        figures.unknown += journals.iter().filter(|journal| journal.unknown.is_some()).count();
        figures.unknown_that_happened += entries.len() - explained;
        for (actor, journal) in cast.all().into_iter().zip(&journals) {
            settle(actor, journal, &entries);
            actor.verify(&studio);
        }
        verify_counters(&studio);
        if let Some(backup) = backups
            .into_iter()
            .last()
            .filter(|_| figures.restored * 4 < figures.backups)
        {
            let keys: Vec<_> = cast.keys.known().cloned().collect();
            backup.verify(&studio, &keys, |data| start(data, provider));
            figures.restored += 1;
        }
    }
    let studio = identity.on(&server);
    assert_eq!(log::since(&studio, 0).len() as u64, verified);
    let active = studio.agent_ids().len();
    let more = (0..LIMIT).take_while(|number| studio.create(&format!("more-{number}"), &Value::Null).status == 201);
    assert_eq!(more.count(), LIMIT - active, "the plan's limit is exact");
    studio.create("over", &Value::Null).expect(422);
    server.stop();
    run(["check", "--data", data.to_str().unwrap()]).succeeded();
}

#[test]
fn a_killed_server_has_lost_nothing_that_it_acknowledged() {
    let mut dice = Dice::of("kills");
    let cycles = setting("CYCLES", CYCLES);
    let provider = Provider::start();
    let mut figures = Figures::default();
    while figures.kills < cycles {
        let kills = (cycles - figures.kills).min(KILLS_OF_A_DIRECTORY);
        kill_repeatedly(kills, &provider, &mut dice, &mut figures);
    }
    println!("FIGURES kills: {figures:?}");
    assert!(figures.backups > 0 && figures.restored > 0, "{figures:?}");
}

/// The control: a server that comes back with an earlier state is found.
#[test]
fn a_server_that_loses_acknowledged_changes_is_found() {
    let (provider, place) = (Provider::start(), scratch());
    let [data, earlier] = ["data", "earlier"].map(|name| place.path().join(name));
    let server = start(&data, &provider);
    let founder = Studio::on(&server);
    founder.create(CALLER, &json!({"model": "gpt-5.5"})).expect(201);
    let verified = log::since(&founder, 0).len() as u64;
    let identity = founder.identity();
    server.stop();
    std::fs::create_dir(&earlier).unwrap();
    for file in ["store.redb", "master.key", "session.key"] {
        std::fs::copy(data.join(file), earlier.join(file)).unwrap();
    }
    let server = start(&data, &provider);
    let mut cast = Cast::new();
    let dice = &mut Dice::of("kills (control)");
    let (journals, _) = load_and_kill(&identity.on(&server), &mut cast, 20, verified, place.path(), dice);
    let server = start(&earlier, &provider);
    let entries = log::since(&identity.on(&server), verified);
    let all = cast.all().into_iter().zip(&journals);
    let found = all
        .filter(|(_, journal)| !journal.acknowledged.is_empty())
        .map(|(actor, journal)| {
            let settling = std::panic::AssertUnwindSafe(|| settle(actor, journal, &entries));
            std::panic::catch_unwind(settling).is_err()
        });
    assert!(found.collect::<Vec<_>>().iter().all(|is_found| *is_found));
    println!("FIGURES kills (control): each lost change was found");
}
