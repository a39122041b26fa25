//! Failing calls of the operating system on the store file: each call of a run of changes fails once, in a row and with
//! different errors. No acknowledged change is lost, no answer is wrong, and changes are taken again within a second.

mod library;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Dice, Identity, Response, Server, Studio, not_run, run, scratch, setting};
use serde_json::{Value, json};

use self::library::{Fault, Kinds, Library};

/// Cases in the short form; `CASES` sets another number, and 0 tries each call.
const CASES: usize = 60;
/// How soon changes must be taken again when no call fails any more.
const HEALING: Duration = Duration::from_secs(1);
/// The server is killed and started again after this many cases, so that its caches are empty.
const CASES_OF_A_SERVER: usize = 12;
const AGENTS: usize = 6;
const LONG: usize = 60;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

#[derive(Debug, Default)]
struct Figures {
    cases: usize,
    /// Calls that failed.
    failed_calls: u64,
    acknowledged: usize,
    refused: usize,
    unknown: usize,
    reads: usize,
    refused_reads: usize,
    slowest_healing_ms: u128,
}

/// What may be stored of each agent: the last acknowledged role, and those of later changes of unknown outcome.
#[derive(Default)]
struct Model(BTreeMap<String, Vec<Value>>);

impl Model {
    fn acknowledged(&mut self, id: &str, role: Value) {
        self.0.insert(id.to_owned(), vec![role]);
    }

    fn unknown(&mut self, id: &str, role: Value) {
        self.0.entry(id.to_owned()).or_default().push(role);
    }

    /// Compares a list, which must be complete.
    fn verify(&self, list: &Response, what: &str) {
        let list = list.json();
        let found: BTreeMap<_, _> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| (agent["agent_id"].as_str().unwrap(), &agent["role"]))
            .collect();
        let ids: Vec<_> = self.0.keys().map(String::as_str).collect();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ids, "{what}");
        for (id, role) in found {
            assert!(
                self.0[id].contains(role),
                "{what}: {id} has {role}, not {:?}",
                self.0[id]
            );
        }
    }

    /// Takes what is stored as known.
    fn settle(&mut self, list: &Response) {
        for agent in list.json().as_array().unwrap() {
            self.acknowledged(agent["agent_id"].as_str().unwrap(), agent["role"].clone());
        }
    }
}

/// A server whose calls can fail, over several starts.
struct Bench<'a> {
    library: &'a Library,
    data: &'a Path,
    server: Server,
    identity: Identity,
    /// A workspace of long records, which a restarted server reads from the file.
    long: Identity,
    model: Model,
    count: usize,
}

fn start(library: &Library, data: &Path) -> Server {
    let server = library
        .load_into(Server::builder())
        .data(data)
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .start();
    library.choose(&data.join("store.redb"));
    server
}

impl<'a> Bench<'a> {
    fn new(library: &'a Library, data: &'a Path) -> Self {
        let server = start(library, data);
        let studio = Studio::on(&server);
        let mut model = Model::default();
        for number in 0..AGENTS {
            let id = format!("a{number}");
            studio.create(&id, &Value::Null).expect(201);
            model.acknowledged(&id, Value::Null);
        }
        let identity = studio.identity();
        let long = Studio::on(&server);
        for number in 0..LONG {
            let fields = json!({"persona_prompt": "x".repeat(5000)});
            long.create(&format!("long-{number}"), &fields).expect(201);
        }
        let long = long.identity();
        Self {
            library,
            data,
            server,
            identity,
            long,
            model,
            count: 0,
        }
    }

    /// Ends the server and starts it again: everything acknowledged is there, and the file is sound.
    fn restart(&mut self, is_killed: bool) {
        self.library.work();
        let log = self.server.stderr();
        assert!(!log.contains("panicked"), "{log}");
        match is_killed {
            true => self.server.kill(),
            false => self.server.stop(),
        }
        run(["check", "--data", self.data.to_str().unwrap()]).succeeded();
        self.server = start(self.library, self.data);
        let studio = self.identity.on(&self.server);
        self.model.verify(&studio.list(), "after a restart");
    }

    /// Reads and changes while calls fail, until all of it is done and changes are taken again.
    fn try_fault(&mut self, fault: &Fault, figures: &mut Figures) {
        let what = format!("{fault:?}");
        let studio = self.identity.on(&self.server);
        let read = |model: &Model, figures: &mut Figures| {
            let answer = studio.list_request("").send();
            figures.reads += 1;
            match answer.status {
                200 => model.verify(&answer, &what),
                // Only a read that itself failed may be refused.
                503 if fault.kinds == Kinds::READS => figures.refused_reads += 1,
                _ => panic!("{what}: {answer:?}"),
            }
        };
        self.library.set(fault);
        for number in 0..AGENTS {
            self.count += 1;
            let (id, role) = (format!("a{number}"), json!(format!("role {}", self.count)));
            // A long text needs new pages, and so another length of the file.
            let persona = "x".repeat(self.count * 797 % 5000);
            let answer = studio.change(&id, &json!({"role": role, "persona_prompt": persona}));
            match answer.status {
                200 => {
                    figures.acknowledged += 1;
                    self.model.acknowledged(&id, role);
                }
                503 if answer.is_unknown() => {
                    figures.unknown += 1;
                    self.model.unknown(&id, role);
                }
                // Nothing changed.
                503 => figures.refused += 1,
                _ => panic!("{what}: {answer:?}"),
            }
            read(&self.model, figures);
        }
        if fault.kinds == Kinds::READS {
            let answer = self.long.on(&self.server).list_request("").send();
            figures.reads += 1;
            match answer.status {
                200 => assert_eq!(answer.json().as_array().unwrap().len(), LONG, "{what}"),
                503 => figures.refused_reads += 1,
                _ => panic!("{what}: {answer:?}"),
            }
        }
        figures.failed_calls += self.library.work();
        figures.cases += 1;
        let since = Instant::now();
        self.count += 1;
        let role = json!(format!("healed {}", self.count));
        while studio.change("a0", &json!({"role": role})).status != 200 {
            assert!(since.elapsed() < HEALING, "{what}: no change is taken");
        }
        figures.slowest_healing_ms = figures.slowest_healing_ms.max(since.elapsed().as_millis());
        self.model.acknowledged("a0", role);
        let list = studio.list();
        self.model.verify(&list, &what);
        self.model.settle(&list);
    }
}

/// Faults at each of the first `calls` calls of these kinds.
fn faults(kinds: Kinds, calls: u64) -> Vec<Fault> {
    let errors: &[i32] = match kinds {
        Kinds::READS => &[EIO],
        // The last one is that of a file system that became read-only.
        Kinds::CHANGES => &[EIO, ENOSPC, EROFS],
        _ => &[EIO, ENOSPC],
    };
    let mut faults = Vec::new();
    for first in 0..calls {
        for error in errors {
            for count in [1, 3, u64::MAX] {
                faults.push(Fault {
                    kinds,
                    first,
                    count,
                    error: *error,
                    reverts: false,
                });
            }
        }
        // A sync that fails once and then succeeds, and what it did not write is lost.
        if kinds == Kinds::SYNCS {
            faults.push(Fault {
                kinds,
                first,
                count: 1,
                error: EIO,
                reverts: true,
            });
        }
    }
    faults
}

#[test]
fn no_failing_call_on_the_store_file_loses_a_change_or_gives_a_wrong_answer() {
    let Some(library) = Library::build() else {
        return not_run("there is no C compiler");
    };
    let mut dice = Dice::of("io");
    let place = scratch();
    let data = place.path().join("data");
    let mut bench = Bench::new(&library, &data);
    let mut figures = Figures::default();

    // The calls of a run without failures, after a restart, so that it reads from the file.
    let mut faults = Vec::new();
    let mut calls = Vec::new();
    for kinds in Kinds::EACH {
        bench.restart(false);
        let none = Fault {
            kinds,
            ..Fault::default()
        };
        bench.try_fault(&none, &mut figures);
        calls.push((kinds, library.calls()));
        // Not each run changes the length of the file.
        faults.extend(self::faults(kinds, library.calls().max(2)));
    }
    assert!(
        calls
            .iter()
            .all(|(kinds, calls)| *kinds == Kinds::RESIZES || *calls > 1),
        "{calls:?}"
    );
    let cases = setting("CASES", CASES);
    if cases > 0 {
        faults = (0..cases).map(|_| faults[dice.below(faults.len())].clone()).collect();
    }
    for (number, fault) in faults.iter().enumerate() {
        if fault.kinds == Kinds::READS {
            // Only a file that was closed in order is read on demand, and not as a whole at the start.
            bench.restart(false);
        } else if number % CASES_OF_A_SERVER == CASES_OF_A_SERVER - 1 {
            bench.restart(true);
        }
        bench.try_fault(fault, &mut figures);
    }
    bench.restart(true);
    println!("FIGURES failing calls: {figures:?}, of runs of {calls:?}");
    assert!(
        figures.failed_calls > 0 && figures.refused > 0 && figures.acknowledged > 0,
        "{figures:?}"
    );
}
