//! What the usage ledger and budgets cost: model calls with a budget against the same calls without, the sums of a
//! month, and the growth of the store with each call.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcfg_benches::fixture;
use agentcfg_benches::paced::{Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::{Product, Workspace};
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::wire::Requests;
use agentcfg_benches::{Failure, request, wrk};
use agentcfg_core::clock::ManualClock;
use agentcfg_core::model::{Plan, PlanLimits, Provider, TokenUsage};
use agentcfg_core::routing::{Catalogue, ManagedModels};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{CallFacts, ModelRequest};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::{AgentCfg, Settings};
use agentcfg_server::{App, Cors};
use hyper::server::conn::http1;
use hyper::service::service_fn;

const CONNECTIONS: usize = 64;
const WHOLE: &str =
    r#"{"messages":[{"role":"user","content":"Draft the notes for 2.4."}],"max_completion_tokens":300}"#;
const STREAMED: &str = concat!(
    r#"{"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":300,"#,
    r#""messages":[{"role":"user","content":"Draft the notes for 2.4."}]}"#
);
const CALL: &str = "/api/agents/model-calls/openai/v1/chat/completions?agent_id=writer";
/// Events of a stream of the provider.
const EVENTS: f64 = 50.0;
/// The calls of which the sums of a month are: one each hour for each agent and model.
const DAYS: i64 = 30;
const AGENTS: usize = 50;
const MODELS: [&str; 5] = ["gpt-5.5", "gpt-5.5-mini", "gpt-5.5-nano", "o5", "o5-mini"];
const HOUR: i64 = 3_600_000;
/// Calls between two writes of the ledger.
const TOGETHER: usize = 10_000;

fn main() -> Result<(), Failure> {
    calls()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    // Runs on a worker of the runtime, as request handlers do.
    runtime.block_on(async { tokio::spawn(month()).await })??;
    runtime.block_on(async { tokio::spawn(growth()).await })?
}

/// One way of a call: a server, and a workspace on it.
struct Way {
    name: &'static str,
    server: Server,
    workspace: Workspace,
}

/// The measurements of one way.
#[derive(Default)]
struct Figures {
    per_second: Series,
    /// Microseconds of processor time of the server for each call.
    cpu: Series,
    /// Milliseconds within which half and 99 of 100 calls of an open loop were answered.
    half: Series,
    slowest: Series,
}

/// Model calls through the server without a budget, with one, and through another binary if `BASELINE` names one.
fn calls() -> Result<(), Failure> {
    let product = Product::build()?;
    let upstream = Server::start(Command::new(env!("CARGO_BIN_EXE_bench-server")).arg("provider"))?;
    let place = tempfile::tempdir()?;
    let mut ways = Vec::new();
    if let Some(binary) = std::env::var_os("BASELINE") {
        let product = Product::of(PathBuf::from(binary))?;
        ways.push(way("the other binary", &product, &upstream, place.path(), false)?);
    }
    ways.push(way("without a budget", &product, &upstream, place.path(), false)?);
    ways.push(way("with a budget", &product, &upstream, place.path(), true)?);
    println!(
        "| answer | calls | calls/s | ratio to the row above | CPU, µs a call | added, µs | p50 at half load, ms | \
         p99 at half load, ms | added to the p99, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let most = measure("JSON, 1 KiB", &ways, WHOLE, 1.0, None)?;
    measure("JSON, 1 KiB", &ways, WHOLE, 1.0, Some(most / 2.0))?;
    measure("50 events, in events/s", &ways, STREAMED, EVENTS, None)?;
    Ok(())
}

/// Starts a server with a workspace whose own provider key is used.
fn way(
    name: &'static str,
    product: &Product,
    upstream: &Server,
    place: &Path,
    has_budget: bool,
) -> Result<Way, Failure> {
    let base_url = format!("http://{}", upstream.address);
    let server = product.serve_with(&place.join(name), "AGENTCFG_OPENAI_BASE_URL", &base_url)?;
    let workspace = product.workspace(server.address)?;
    let id = &workspace.id;
    let key = format!("/api/provider-keys?workspace_id={id}&provider=openai");
    let agent = format!(r#"{{"workspace_id":"{id}","agent_id":"writer","display_name":"Writer","model":"gpt-5.5"}}"#);
    let mut made = vec![
        product.send(
            server.address,
            "PUT",
            &key,
            r#"{"api_key":"sk-bench-0123456789abcdef0123456789abcdef"}"#,
        )?,
        product.send(server.address, "POST", "/api/agents/configs", &agent)?,
    ];
    if has_budget {
        let budget = format!("/api/budgets?workspace_id={id}&scope=agent&scope_id=writer&period=month");
        made.push(product.send(server.address, "PUT", &budget, r#"{"limit_usd":"1000000"}"#)?);
    }
    // The first use of each key costs a password hash.
    for key in &workspace.keys {
        made.push(request::send(server.address, "POST", CALL, key, WHOLE)?);
    }
    match made.into_iter().find(|answer| !answer.starts_with("HTTP/1.1 20")) {
        Some(answer) => Err(answer.into()),
        None => Ok(Way {
            name,
            server,
            workspace,
        }),
    }
}

/// Measures the ways in turn, in rounds of which the first only warms up: in a closed loop, or at this rate. Returns
/// the calls per second of the last way.
fn measure(answer: &str, ways: &[Way], body: &str, times: f64, per_second: Option<f64>) -> Result<f64, Failure> {
    let mut measured: Vec<Figures> = Vec::new();
    let time = Duration::from_secs_f64(seconds(3.0));
    for round in 0..=rounds(5) {
        if round <= 1 {
            measured = ways.iter().map(|_| Figures::default()).collect();
        }
        for (way, figures) in ways.iter().zip(&mut measured) {
            // A key for each round, so that none reaches its rate limit.
            let key = &way.workspace.keys[round % way.workspace.keys.len()];
            let (address, before) = (way.server.address, way.server.cpu_seconds());
            let (answered, refused) = match per_second {
                None => {
                    let outcome = wrk::post(address, CALL, key, body, CONNECTIONS, time)?;
                    figures.per_second.push(outcome.per_second() * times);
                    (outcome.answered, outcome.refused)
                }
                Some(per_second) => {
                    let pace = Pace {
                        connections: CONNECTIONS,
                        per_second,
                        status: 200,
                    };
                    let calls: Arc<[Vec<u8>]> = Arc::new([request::post(CALL, key, body).into_bytes()]);
                    let outcome = Paced::start(address, pace, &calls)?.run_for(time)?;
                    figures.per_second.push(outcome.per_second() * times);
                    figures.half.push(outcome.percentile(0.5));
                    figures.slowest.push(outcome.percentile(0.99));
                    (outcome.answered, outcome.refused)
                }
            };
            if refused > 0 {
                return Err(format!("{refused} calls were refused").into());
            }
            let cpu = way.server.cpu_seconds() - before;
            figures.cpu.push(cpu * 1e6 / answered as f64);
        }
    }
    let mut above: Option<&Figures> = None;
    for (way, figures) in ways.iter().zip(&measured) {
        let against = |of: &dyn Fn(&Figures) -> Series| above.map_or("-".to_owned(), |above| of(above).to_string());
        let is_paced = per_second.is_some();
        let if_paced = |text: String| if is_paced { text } else { "-".to_owned() };
        println!(
            "| {answer} | {} | {} | {} | {} | {} | {} | {} | {} |",
            way.name,
            figures.per_second,
            against(&|above| figures.per_second.over(&above.per_second)),
            figures.cpu,
            against(&|above| figures.cpu.minus(&above.cpu)),
            if_paced(figures.half.to_string()),
            if_paced(figures.slowest.to_string()),
            if_paced(against(&|above| figures.slowest.minus(&above.slowest))),
        );
        above = Some(figures);
    }
    Ok(measured.last().map_or(0.0, |figures| figures.per_second.median()))
}

/// A service that pays for all models, on a clock that is moved by hand.
fn service(file: &Path, clock: &Arc<ManualClock>) -> Result<AgentCfg, Failure> {
    let store = RedbStore::open(file, RedbOptions::default())?;
    let settings = Settings::default()
        .plan_limits(PlanLimits::default())
        .default_plan(Plan::Enterprise);
    Ok(AgentCfg::builder(store)
        .clock(Arc::clone(clock) as _)
        .settings(settings)?
        .catalogue(Catalogue::default().with_managed_models(ManagedModels::Any))
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed")?)
        .build())
}

fn clock() -> Result<Arc<ManualClock>, Failure> {
    Ok(Arc::new(ManualClock::at("2026-11-01T00:00:00Z".parse()?)))
}

/// A call of an agent that has ended.
async fn call(
    service: &AgentCfg,
    made: &fixture::Fixture,
    agent: usize,
    model: &str,
    number: u64,
) -> Result<(), Failure> {
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses").model(model);
    let agent = format!("agent-{agent}");
    let call = service
        .resolve_model_call(&made.owner, Some(made.workspace), &agent, &request)
        .await?;
    let facts = CallFacts::default()
        .model(model)
        .path("v1/responses")
        .request_id(format!("{number:032x}"));
    let usage = TokenUsage {
        input: 100 + number % 4000,
        output: 1 + number % 900,
        ..TokenUsage::default()
    };
    let mut meter = service.meter(&call, &call.first, facts);
    meter.answered(false);
    let _ = meter.end(200, Some(usage), false);
    Ok(())
}

/// The sums of a month, read by an API key over an in-memory connection.
async fn month() -> Result<(), Failure> {
    let (place, clock) = (tempfile::tempdir()?, clock()?);
    let service = service(&place.path().join("bench.redb"), &clock)?;
    let made = fixture::make(&service, AGENTS, 1).await;
    let mut number = 0;
    for _ in 0..DAYS * 24 {
        for agent in 0..AGENTS {
            for model in MODELS {
                call(&service, &made, agent, model, number).await?;
                number += 1;
            }
        }
        service.flush().await?;
        clock.advance_millis(HOUR);
    }
    fixture::use_once(&service, &made.keys).await;
    let app = App::new(service.clone(), Cors::default());
    println!();
    println!(
        "| `GET /api/usage` over {DAYS} days × {AGENTS} agents × {} models, {number} calls | rows | KiB | ms |",
        MODELS.len()
    );
    println!("|---|---|---|---|");
    for by in ["day,agent,model", "agent,model", "day", "agent", "hour"] {
        let path = format!("/api/usage?workspace_id={}&by={by}", made.workspace);
        let text = request::get(&path, &made.keys[0]);
        let filter = agentcfg_core::model::UsageFilter::default();
        let columns = by.split(',').map(str::parse).collect::<Result<Vec<_>, _>>();
        let filter = filter.by(columns.map_err(|_| "a column")?);
        let found = service.usage(&made.owner, made.workspace, &filter).await?;
        let length = serde_json::to_vec(&found)?.len();
        let mut took = Series::new();
        for _ in 0..=rounds(5) {
            let started = Instant::now();
            let requests = Requests::new((0..10).map(|_| &*text));
            http1::Builder::new()
                // The client half-closes after its last request and still expects the response.
                .half_close(true)
                .serve_connection(requests.send(), service_fn(|request| app.exchange(request)))
                .await?;
            took.push(started.elapsed().as_secs_f64() * 100.0);
        }
        println!("| by {by} | {} | {} | {took} |", found.len(), length >> 10);
    }
    Ok(())
}

/// The growth of a store with each call, whose rows are kept.
async fn growth() -> Result<(), Failure> {
    let calls: usize = setting("CALLS", 1_000_000);
    let (place, clock) = (tempfile::tempdir()?, clock()?);
    let file = place.path().join("bench.redb");
    let service = service(&file, &clock)?;
    let made = fixture::make(&service, AGENTS, 1).await;
    let size = || std::fs::metadata(&file).map(|found| found.len() as f64);
    let before = size()?;
    println!();
    println!("| calls | file, MiB | bytes a call | written, calls/s |");
    println!("|---|---|---|---|");
    let started = Instant::now();
    for number in 0..calls {
        let agent = number * 7 % AGENTS;
        let model = MODELS[number / AGENTS % MODELS.len()];
        call(&service, &made, agent, model, number as u64).await?;
        clock.advance_millis(20);
        if (number + 1) % TOGETHER == 0 || number + 1 == calls {
            service.flush().await?;
        }
        if (number + 1) % calls.div_ceil(4) == 0 || number + 1 == calls {
            let (grown, done) = (size()? - before, number as f64 + 1.0);
            println!(
                "| {} | {:.0} | {:.0} | {:.0} |",
                number + 1,
                grown / f64::from(1 << 20),
                grown / done,
                done / started.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
