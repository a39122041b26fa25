//! Model calls to providers that refuse, hang, answer with errors, and break off before and after the first byte.
//!
//! Each call ends in one whole answer, the last provider's failure, or a broken connection after a part of one
//! answer. A call has the attempts that its plan demands and no other, and the usage ledger knows each of them.

mod client;
mod judge;
mod plan;
mod upstream;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use agentcfg_tests::harness::{Server, Studio, at_once, free_address, setting};
use serde_json::json;

pub use self::client::Caller;
use self::judge::{Ends, judge, judge_rows, ledger};
use self::plan::{Api, MOST, Plan};
pub use self::upstream::read_request;
use self::upstream::{Lie, Upstream};

/// Calls in the short form; `CASES` sets another number.
const CALLS: usize = 500;
/// Calls of the control with each lie.
const OF_THE_CONTROL: usize = 120;
/// Callers at the same time, in the short form and in the full one, where thousands of calls wait for silent providers.
const CALLERS: usize = 16;
const CALLERS_IN_FULL: usize = 96;
/// A caller whose calls are more than so many violations stops.
const ENOUGH: usize = 20;
/// The time in seconds after which the server gives up a silent provider. It is long enough for any other answer to
/// come in time on a busy machine.
const PATIENCE: &str = "5";

/// The text of the configuration: a provider for each attempt of each API, one that is gone, and their models.
fn configuration(upstream: &Upstream) -> String {
    let gone = free_address();
    let (mut providers, mut keys, mut models) = (Vec::new(), Vec::new(), Vec::new());
    for api in Api::ALL {
        for attempt in 1..=MOST {
            for is_gone in [false, true] {
                let (id, model) = (api.provider(attempt, is_gone), api.model(attempt, is_gone));
                models.push(format!(
                    r#"{{ id = "{model}", provider = "{id}", input_price = 1, output_price = 2 }}"#
                ));
                let url = if is_gone {
                    format!("http://{gone}")
                } else {
                    upstream.url(attempt)
                };
                if (attempt == 1) == is_gone {
                    providers.push(format!(
                        r#"{{ id = "{id}", api = "{}", base_url = "{url}" }}"#,
                        api.name()
                    ));
                    keys.push(format!(r#"{id} = "sk-managed-{id}""#));
                }
            }
        }
    }
    let first = upstream.url(1);
    format!(
        "openai_base_url = \"{first}\"\nanthropic_base_url = \"{first}\"\n\
         openai_api_key = \"sk-managed-1\"\nanthropic_api_key = \"sk-managed-1\"\n\
         providers = [{}]\nprovider_api_keys = {{ {} }}\nmodels = [{}]\n",
        providers.join(", "),
        keys.join(", "),
        models.join(", ")
    )
}

/// A server before these providers.
fn server(upstream: &Upstream) -> Server {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("agentcfg.toml");
    std::fs::write(&file, configuration(upstream)).unwrap();
    Server::builder()
        .argument("--config")
        .argument(file)
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .set("model_call_first_byte_timeout", PATIENCE)
        .set("model_call_idle_timeout", PATIENCE)
        // Each attempt that fails is a line.
        .set("log", "error")
        .start()
}

/// An agent for each API and each order of models that are here and gone.
fn create_agents(studio: &Studio<'_>) {
    for api in Api::ALL {
        for models in 1..=MOST {
            for which in 0..1 << models {
                let is_gone = |attempt: usize| which >> (attempt - 1) & 1 == 1;
                let letters: String = (1..=models)
                    .map(|attempt| if is_gone(attempt) { 'g' } else { 'h' })
                    .collect();
                let mut of = (1..=models).map(|attempt| api.model(attempt, is_gone(attempt)));
                let model = of.next();
                let fields = json!({"model": model, "definition": {"fallback_models": of.collect::<Vec<_>>()}});
                studio.create(&format!("{}-{letters}", api.name()), &fields).expect(201);
            }
        }
    }
}

/// What a run found.
struct Run {
    violations: Vec<String>,
    ends: Ends,
    upstream: Upstream,
    rows: usize,
    seconds: f64,
}

fn callers(calls: usize) -> usize {
    if calls > CALLS { CALLERS_IN_FULL } else { CALLERS }
}

/// Makes this many calls, and judges them. `forgets` takes one row of the ledger away.
fn run(calls: usize, seed: u64, lie: Option<Lie>, forgets: bool) -> Run {
    let upstream = Upstream::start(MOST, seed, lie);
    let server = server(&upstream);
    let studio = Studio::on(&server);
    create_agents(&studio);
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 1_000_000})).key;
    let (next, ended) = (AtomicUsize::new(0), Mutex::new((Ends::default(), Vec::new())));
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..callers(calls) {
            scope.spawn(|| {
                let mut caller = Caller::new(server.address());
                let (mut ends, mut violations) = (Ends::default(), Vec::new());
                while violations.len() < ENOUGH {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        break;
                    }
                    let plan = Plan::of(seed, number);
                    let provider = if plan.is_named {
                        plan.provider(1)
                    } else {
                        plan.api.name().to_owned()
                    };
                    let target = format!(
                        "/api/agents/model-calls/{provider}/@{}/{}",
                        plan.agent(),
                        plan.api.path()
                    );
                    let request = server.post(target).bearer(&key).json(&plan.request());
                    let got = caller.call(&request.header("X-Request-Id", plan.request_id()).to_bytes());
                    if let Err(wrong) = judge(&plan, &got, &upstream.attempts(number), &mut ends) {
                        violations.push(format!("{wrong}\n{plan:?}\n{got:?}"));
                    }
                }
                let mut ended = ended.lock().unwrap();
                ended.0.add(&ends);
                ended.1.append(&mut violations);
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let (ends, mut violations) = ended.into_inner().unwrap();
    let mut rows = 0;
    if violations.is_empty() {
        let plans = || (0..calls).map(|number| Plan::of(seed, number));
        let mut ledger = ledger(&studio, plans().map(|plan| plan.attempts().len()).sum());
        rows = ledger.values().map(Vec::len).sum();
        if forgets {
            ledger.get_mut(&Plan::of(seed, 0).request_id()).unwrap().pop();
        }
        for plan in plans() {
            if let Err(wrong) = judge_rows(&plan, &mut ledger) {
                violations.push(format!("{wrong}\n{plan:?}"));
            }
        }
        violations.extend(ledger.into_values().map(|rows| format!("rows of no call: {rows:?}")));
    }
    Run {
        violations,
        ends,
        upstream,
        rows,
        seconds,
    }
}

#[test]
fn each_call_ends_in_one_answer_one_failure_or_a_broken_connection() {
    let (calls, seed) = (setting("CASES", CALLS), setting("SEED", 1));
    let run = run(calls, seed, None, false);
    assert!(
        run.violations.is_empty(),
        "{}: {}",
        run.violations.len(),
        run.violations[0]
    );
    let failovers = run.upstream.failovers();
    let millis = |part: usize| failovers[failovers.len() * part / 1000].as_secs_f64() * 1000.0;
    println!(
        "FIGURES model calls: {calls} by {} callers, {} attempts that arrived, {} rows in the \
         ledger, {:?}, {:.0} a second",
        callers(calls),
        run.upstream.count(),
        run.rows,
        run.ends,
        calls as f64 / run.seconds
    );
    println!(
        "FIGURES failovers: {}, median {:.2} ms from the failure at one provider to the request at the next, \
         {:.2} ms in 99 % of them",
        failovers.len(),
        millis(500),
        millis(990)
    );
    let Ends {
        whole,
        refused,
        failed,
        broken,
    } = run.ends;
    assert_eq!(whole + refused + failed + broken, calls);
    assert!(
        [whole, refused, failed, broken].iter().all(|count| *count > 0),
        "{:?}",
        run.ends
    );
}

/// The control: providers that do not what their plans say, and a ledger that lacks a row.
#[test]
fn mixed_answers_wrong_fallbacks_and_unknown_attempts_are_found() {
    let lies = [Some(Lie::Mixed), Some(Lie::Answered), Some(Lie::Refused), None];
    let found = at_once(lies.len(), |number| {
        run(OF_THE_CONTROL, 1, lies[number], lies[number].is_none()).violations
    });
    for (lie, found) in lies.iter().zip(&found) {
        assert!(!found.is_empty(), "{lie:?}");
    }
    assert_eq!(found[3].len(), 1, "{found:?}");
    println!("FIGURES model calls (control): each of 4 faults was found");
}
