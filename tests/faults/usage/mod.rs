//! Budgets and the usage ledger under kills, pauses and restarts of servers and of their database.
//!
//! The provider's bill of a budget never exceeds its limit, calls that the rest of a budget covers are not refused,
//! and after the servers have ended in order the ledger is the bill, except for calls of servers that were killed.

mod biller;
mod judge;
mod load;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Dice, Server, Studio, eventually, scratch, setting, use_database};
use rustix::process::Signal;
use serde_json::{Value, json};

use self::biller::Biller;
use self::judge::{Cost, Figures, Kill, Unsettled, judge_ledger, nanos};
use self::load::{Load, Meter, Slots, average};
use crate::cluster::Cluster;
use crate::crowds::raise_open_files;
use crate::model_calls::Caller;

/// Calls in the short forms. `CASES` sets the number of calls on PostgreSQL, and `CYCLES` that of kills on one server.
const CALLS: usize = 4_000;
const KILLS: usize = 4;
/// Callers at the same time, in the short form and in the full one, where `CALLERS` sets another number. Each has a connection to
/// each server.
const CALLERS: usize = 32;
const CALLERS_IN_FULL: usize = 128;
const KEYS: usize = 8;
/// The calls of one budget at most, and the share of their cost that it pays for, in percent. A refusal takes seconds
/// while a server that was killed or paused holds some of the rest.
const OF_A_BUDGET: usize = 20_000;
const PAYS: i64 = 96;
/// The most refusals without a reason: one of so many calls.
const REASONED: usize = 1_000;
/// The calls between two kills of the same server.
const OF_A_KILL: usize = 2_000;
/// How often budgets are read.
const LOOKS: Duration = Duration::from_millis(500);

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    /// The server gets no processor time for a while.
    Pause,
    /// The server ends in order.
    Stop,
    /// The database ends like in a crash.
    Database,
}

impl Fault {
    /// Each fault of the full form is one of these.
    const ALL: [Self; 8] = [
        Self::Kill,
        Self::Kill,
        Self::Kill,
        Self::Pause,
        Self::Pause,
        Self::Pause,
        Self::Stop,
        Self::Database,
    ];
}

/// The servers of a run, on one store.
struct Servers<'a> {
    data: &'a Path,
    url: String,
    slots: &'a Slots,
    running: Vec<Server>,
    /// The number of the process in each slot, and when processes were killed.
    processes: Vec<usize>,
    kills: HashMap<usize, Kill>,
    started: usize,
}

impl<'a> Servers<'a> {
    fn start(data: &'a Path, slots: &'a Slots, biller: &Biller) -> Self {
        let mut servers = Self {
            data,
            url: biller.url(),
            slots,
            running: Vec::new(),
            processes: vec![0; slots.count()],
            kills: HashMap::new(),
            started: 0,
        };
        for slot in 0..slots.count() {
            let server = servers.server();
            servers.running.push(server);
            servers.enter(slot);
        }
        servers
    }

    fn server(&self) -> Server {
        Server::builder()
            .data(self.data)
            .set("default_plan", "enterprise")
            .set("session_rate_limit", "1000000")
            .set("openai_base_url", &self.url)
            .set("openai_api_key", "sk-managed")
            .set("database_wait", "60")
            .set("log", "warn")
            .start()
    }

    /// Lets callers use a server.
    fn enter(&mut self, slot: usize) {
        self.started += 1;
        self.processes[slot] = self.started;
        self.slots.set(slot, Some((self.running[slot].address(), self.started)));
    }

    fn replace(&mut self, slot: usize) {
        self.running[slot] = self.server();
        self.enter(slot);
    }

    fn make(&mut self, fault: Fault, cluster: Option<&Cluster>, dice: &mut Dice) {
        let slot = dice.below(self.running.len());
        match fault {
            Fault::Kill => {
                self.slots.set(slot, None);
                self.running[slot].kill();
                let (at, log) = (Instant::now(), self.running[slot].stderr());
                self.kills.insert(self.processes[slot], Kill { at, log });
                self.replace(slot);
            }
            Fault::Pause => {
                self.running[slot].signal(Signal::STOP);
                // Some calls wait in it.
                thread::sleep(Duration::from_millis(50));
                self.slots.set(slot, None);
                thread::sleep(dice.millis(2_000));
                self.running[slot].signal(Signal::CONT);
                // It writes the calls that ended before, as a server does that is killed later.
                thread::sleep(Duration::from_secs(1));
                let server = (self.running[slot].address(), self.processes[slot]);
                self.slots.set(slot, Some(server));
            }
            Fault::Stop => {
                self.slots.set(slot, None);
                self.running[slot].stop();
                self.replace(slot);
            }
            Fault::Database => {
                let cluster = cluster.expect("a database");
                cluster.crash();
                cluster.up();
                for server in &self.running {
                    eventually("a server has its store again", || {
                        server.get("/readyz").send().status == 200
                    });
                }
                // What could not be written meanwhile is written before a server is killed.
                thread::sleep(Duration::from_secs(3));
            }
        }
    }
}

/// The size of a run, and its faults.
struct Plan {
    calls: usize,
    faults: Vec<Fault>,
    /// The time after a kill until budgets show what the server held.
    gone: Duration,
}

fn run(name: &str, slots: &Slots, data: &Path, cluster: Option<&Cluster>, plan: &Plan) {
    let mut dice = Dice::of(name);
    let biller = Biller::start();
    let mut servers = Servers::start(data, slots, &biller);
    let budgets = plan.calls.div_ceil(OF_A_BUDGET).max(4);
    let of_a_budget = plan.calls.div_ceil(budgets);
    let limit = of_a_budget as i64 * average() * PAYS / 100;
    let studio = Studio::on(&servers.running[0]);
    let load = Load {
        biller: &biller,
        slots,
        keys: set_up(&studio, budgets, limit),
        calls: plan.calls,
        of_a_budget,
        meters: (0..budgets).map(|_| Meter::default()).collect(),
        answered: AtomicUsize::new(0),
        next: AtomicU32::new(1),
    };
    let identity = studio.identity();
    let list = studio.server.get(format!("/api/budgets?workspace_id={}", studio.id));
    let list = list.bearer(&studio.owner).to_bytes();
    let callers = match plan.calls > 4 * CALLS {
        true => setting("CALLERS", CALLERS_IN_FULL),
        false => CALLERS,
    };
    raise_open_files();
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (done, seconds, unsettled) = thread::scope(|scope| {
        let watch = scope.spawn(|| watch_unsettled(slots, &list, budgets, &is_over));
        let calling = scope.spawn({
            let dice = dice.split(0);
            let load = &load;
            move || (load.run(callers, dice), begun.elapsed().as_secs_f64())
        });
        for (number, fault) in plan.faults.iter().enumerate() {
            let from = plan.calls * (number + 1) / (plan.faults.len() + 2);
            while load.answered.load(Ordering::SeqCst) < from && !calling.is_finished() {
                thread::sleep(Duration::from_millis(2));
            }
            if calling.is_finished() {
                break;
            }
            servers.make(*fault, cluster, &mut dice);
        }
        let (done, seconds) = calling.join().unwrap();
        // What killed servers held is known after a while.
        let last = servers.kills.values().map(|kill| kill.at).max();
        thread::sleep(last.map_or(Duration::ZERO, |last| plan.gone.saturating_sub(last.elapsed())) + LOOKS * 2);
        is_over.store(true, Ordering::SeqCst);
        (done, seconds, watch.join().unwrap())
    });
    servers.running.iter().for_each(Server::stop);
    let last = servers.server();
    let (studio, bills) = (identity.on(&last), biller.bills());
    let mut figures = Figures::of(&done, &bills, (limit, budgets), &unsettled, plan.gone);
    let (mut wrong, costs) = judge_ledger(&studio, &done, &bills, &servers.kills, &mut figures);
    wrong.extend(done.wrong.iter().cloned());
    wrong.extend(
        bills
            .repeated
            .iter()
            .map(|number| format!("call {number} was sent twice")),
    );
    judge_budgets(&studio, limit, &costs, &mut figures, &mut wrong);
    let count = |fault: Fault| plan.faults.iter().filter(|made| **made == fault).count();
    println!(
        "FIGURES {name}: {figures:?}, {} callers, {:.0} calls a second, {} kills, {} pauses, {} stops, \
         {} crashes of the database",
        callers,
        plan.calls as f64 / seconds,
        servers.kills.len(),
        count(Fault::Pause),
        count(Fault::Stop),
        count(Fault::Database)
    );
    assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    assert_eq!(
        figures.calls + figures.refused + figures.unavailable + figures.lost,
        done.calls.len()
    );
    assert!(figures.lost_and_billed <= figures.lost, "{figures:?}");
    assert_eq!(figures.overspent, 0, "{figures:?}");
    assert!(figures.falsely_refused * REASONED <= plan.calls, "{figures:?}");
    assert_eq!(figures.exact_budgets + figures.other_budgets, budgets, "{figures:?}");
    assert!(figures.refused > 0, "the budgets are used up: {figures:?}");
}

/// Makes the agents, their budgets and one of the workspace, and returns API keys. The one of the workspace refuses
/// nothing: what killed servers held of it would use it up, since the operator settles nothing before the end.
fn set_up(studio: &Studio<'_>, budgets: usize, limit: i64) -> Vec<String> {
    let set = |scope: &str, limit: i64, action: &str| {
        let target = format!("/api/budgets?workspace_id={}&period=total&scope={scope}", studio.id);
        let usd = format!("{}.{:09}", limit / 1_000_000_000, limit % 1_000_000_000);
        let request = studio.server.put(target).bearer(&studio.owner);
        request
            .json(&json!({"limit_usd": usd, "action": action}))
            .send()
            .expect(200);
    };
    for budget in 0..budgets {
        studio.create(&format!("agent-{budget}"), &json!({})).expect(201);
        set(&format!("agent&scope_id=agent-{budget}"), limit, "refuse");
    }
    set("workspace", limit * budgets as i64, "warn");
    let key = |_| studio.key_with(&json!({"scope": "write", "rate_limit": 1_000_000})).key;
    (0..KEYS).map(key).collect()
}

/// Reads what the budgets of agents show as unsettled, again and again.
fn watch_unsettled(slots: &Slots, list: &[u8], budgets: usize, is_over: &AtomicBool) -> Unsettled {
    let (mut seen, mut dice) = (Unsettled::new(), Dice::new(1));
    while !is_over.load(Ordering::SeqCst) {
        thread::sleep(LOOKS);
        let Some((address, _)) = slots.pick(&mut dice) else {
            continue;
        };
        let asked = Instant::now();
        let got = Caller::new(address).call(list);
        if got.status != Some(200) || !got.is_whole {
            continue;
        }
        let list: Vec<Value> = serde_json::from_str(&got.body).unwrap();
        let mut unsettled = vec![0; budgets];
        for budget in list.iter().filter(|budget| budget["scope"] == "agent") {
            unsettled[agent(&budget["scope_id"])] = nanos(&budget["unsettled_usd"]);
        }
        seen.push((asked, unsettled));
    }
    seen
}

/// The number of an agent.
fn agent(id: &Value) -> usize {
    id.as_str().unwrap().strip_prefix("agent-").unwrap().parse().unwrap()
}

/// Compares the budgets with what their calls cost, after the operator has settled them.
fn judge_budgets(
    studio: &Studio<'_>,
    limit: i64,
    costs: &HashMap<usize, Cost>,
    figures: &mut Figures,
    wrong: &mut Vec<String>,
) {
    let target = format!("/api/budgets/settle?workspace_id={}", studio.id);
    let request = studio.server.post(target).bearer(&studio.owner);
    // It reads the rows of an hour, which may be a million.
    let got = Caller::new(request.address()).call(&request.to_bytes());
    assert_eq!(got.status, Some(200), "{got:?}");
    let settled: Value = serde_json::from_str(&got.body).unwrap();
    let of_agents = settled
        .as_array()
        .unwrap()
        .iter()
        .filter(|budget| budget["scope"] == "agent");
    for budget in of_agents {
        let amounts = ["spent_usd", "reserved_usd", "unsettled_usd"].map(|name| nanos(&budget[name]));
        let [spent, reserved, unsettled] = amounts;
        let cost = costs.get(&agent(&budget["scope_id"])).copied().unwrap_or_default();
        let at_most = (cost.of_rows + cost.without_row).min(limit);
        if !(cost.of_rows..=at_most).contains(&spent) || reserved != 0 || unsettled != 0 {
            wrong.push(format!("{cost:?}: {budget}"));
        }
        match spent == cost.of_rows {
            true => figures.exact_budgets += 1,
            false => figures.other_budgets += 1,
        }
    }
}

#[test]
fn budgets_and_the_ledger_are_exact_over_three_servers_on_postgresql() {
    let Some(cluster) = Cluster::start(&["fsync=off", "full_page_writes=off", "max_connections=200"]) else {
        return;
    };
    let calls = setting("CASES", CALLS);
    let mut dice = Dice::new(setting("SEED", 1));
    let faults = match calls {
        ..=CALLS => vec![Fault::Kill, Fault::Kill, Fault::Pause, Fault::Database, Fault::Stop],
        _ => (0..calls / 4_000)
            .map(|_| Fault::ALL[dice.below(Fault::ALL.len())])
            .collect(),
    };
    let plan = Plan {
        calls,
        faults,
        // A server that was killed is known to be gone 20 seconds after its last report.
        gone: Duration::from_secs(22),
    };
    let place = scratch();
    let data = place.path().join("data");
    use_database(&data, &cluster.database());
    run("usage on PostgreSQL", &Slots::new(3), &data, Some(&cluster), &plan);
}

#[test]
fn budgets_and_the_ledger_are_exact_over_kills_of_one_server() {
    let kills = setting("CYCLES", KILLS);
    let plan = Plan {
        calls: kills * OF_A_KILL,
        faults: vec![Fault::Kill; kills],
        // The next server knows at once that it is alone.
        gone: Duration::from_secs(2),
    };
    let place = scratch();
    let data = place.path().join("data");
    run("usage on one server", &Slots::new(1), &data, None, &plan);
}
