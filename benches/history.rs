//! The history of agents: versions written over HTTP, a version read by a label in a long and in a short history, the
//! list of a revision in the middle of a long log, and the memory of an export.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcfg_benches::fixture::{self, Fixture};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds, setting};
use agentcfg_benches::{Failure, load, request, runtime};
use agentcfg_core::AgentCfg;
use agentcfg_core::model::{AgentFilter, AgentPatch, AgentState, AsOf, LabelTarget, Precondition, VersionSelector};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};

const CLIENTS: usize = 64;
const AGENTS: usize = 100;
/// The versions of the agents that are read by a label.
const SHORT: usize = 10;
const LONG: usize = 10_000;

fn main() -> Result<(), Failure> {
    written()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(read())?;
    exported()
}

/// The export of a large workspace by a server that has just started.
fn exported() -> Result<(), Failure> {
    let agents: usize = setting("AGENTS", 100_000);
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let server = product.serve(data.path())?;
    let made = product.send(server.address, "POST", "/api/workspaces", r#"{"name":"bench"}"#)?;
    let workspace = request::field(&made, "id").ok_or(made)?;
    let persona = "You read carefully, you cite what you found, and you say what you do not know. ".repeat(6);
    for first in (0..agents).step_by(1000) {
        let named = (first..agents.min(first + 1000)).map(|number| {
            format!(
                r#"{{"agent_id":"agent-{number}","display_name":"Agent {number}","persona_prompt":"{number}: {persona}"}}"#
            )
        });
        let body = format!(r#"{{"agents":[{}]}}"#, named.collect::<Vec<_>>().join(","));
        let path = format!("/api/agents/apply?workspace_id={workspace}");
        let answer = product.send(server.address, "POST", &path, &body)?;
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(answer.into());
        }
    }
    server.stop()?;
    let (mut took, mut idle, mut growth) = (Series::new(), Series::new(), Series::new());
    let mut bytes = 0;
    for _ in 0..rounds(5) {
        let server = product.serve(data.path())?;
        product.send(server.address, "GET", "/api/workspaces", "")?;
        server.forget_peak()?;
        let resident = server.resident_mib();
        idle.push(resident);
        let started = Instant::now();
        let path = format!("/api/workspaces/export?workspace_id={workspace}");
        bytes = product.send(server.address, "GET", &path, "")?.len();
        took.push(started.elapsed().as_secs_f64());
        growth.push(server.peak_mib() - resident);
        server.stop()?;
    }
    println!();
    println!("| agents exported | MiB sent | s | resident when idle, MiB | more at the peak, MiB | less than 50 |");
    println!("|---|---|---|---|---|---|");
    let is_less = if growth.median() < 50.0 { "yes" } else { "no" };
    println!(
        "| {agents} | {} | {took} | {idle} | {growth} | {is_less} |",
        bytes >> 20
    );
    Ok(())
}

/// Changes over HTTP that make a version, against changes that make none.
fn written() -> Result<(), Failure> {
    let runtime = runtime()?;
    let (mut versions, mut touches) = (Series::new(), Series::new());
    for round in 0..rounds(5) {
        versions.push(runtime.block_on(changes(round, true))?);
        touches.push(runtime.block_on(changes(round, false))?);
    }
    println!("| clients | changes with a version/s | changes without/s | ratio |");
    println!("|---|---|---|---|");
    println!("| {CLIENTS} | {versions} | {touches} | {} |", versions.over(&touches));
    println!();
    Ok(())
}

/// Changes per second of one server on a new store.
async fn changes(round: usize, make_versions: bool) -> Result<f64, Failure> {
    let data = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-server"));
    let server = Server::start(command.arg("api").arg(data.path()).arg(AGENTS.to_string()))?;
    let key = server.fact("key").to_owned();
    let change = move |number: u64, out: &mut Vec<u8>| {
        let body = match make_versions {
            true => format!(r#"{{"role":"{round:04}{number:012}"}}"#),
            false => "{}".to_owned(),
        };
        let agent = number % AGENTS as u64;
        let request = format!(
            "PATCH /api/agents/configs?agent_id=agent-{agent} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        out.extend_from_slice(request.as_bytes());
    };
    let time = Duration::from_secs_f64(seconds(2.0));
    let outcome = load::run(server.address, CLIENTS, time, 200, change).await?;
    if outcome.refused > outcome.answered / 100 {
        return Err(format!("{} changes were refused", outcome.refused).into());
    }
    Ok(outcome.per_second())
}

/// Reads in process, on a store in a file.
async fn read() -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let store = RedbStore::open(place.path().join("bench.redb"), RedbOptions::default())?;
    let service = fixture::service(store);
    by_label(&service).await?;
    past_lists(&service, place.path()).await
}

async fn change(service: &AgentCfg, made: &Fixture, agent: usize, number: usize) -> Result<(), Failure> {
    let patch = AgentPatch::default().role(format!("{number}"));
    let agent_id = format!("agent-{agent}");
    let changed = service.update_agent(&made.owner, Some(made.workspace), &agent_id, patch, &Precondition::None);
    changed.await?;
    Ok(())
}

/// The microseconds of one call, from many.
async fn micros<F: Future<Output = Result<(), Failure>>>(call: impl Fn() -> F) -> Result<f64, Failure> {
    const CALLS: u32 = 2000;
    let started = Instant::now();
    for _ in 0..CALLS {
        call().await?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS))
}

async fn by_label(service: &AgentCfg) -> Result<(), Failure> {
    let made = fixture::make(service, 2, 0).await;
    for (agent, versions) in [(0, SHORT), (1, LONG)] {
        for number in 1..versions {
            change(service, &made, agent, number).await?;
        }
        let middle = LabelTarget::new(versions as u64 / 2);
        let agent_id = format!("agent-{agent}");
        service
            .set_label(&made.owner, Some(made.workspace), &agent_id, "production", middle)
            .await?;
    }
    let get = async |agent_id: &str| {
        let selector = VersionSelector::Label("production");
        service
            .get_version(&made.owner, Some(made.workspace), agent_id, selector)
            .await?;
        Ok(())
    };
    let (mut short, mut long) = (Series::new(), Series::new());
    for _ in 0..rounds(5) {
        short.push(micros(|| get("agent-0")).await?);
        long.push(micros(|| get("agent-1")).await?);
    }
    println!("| read by label: of {SHORT} versions, µs | of {LONG} versions, µs | ratio |");
    println!("|---|---|---|");
    println!("| {short} | {long} | {} |", long.over(&short));
    println!();
    Ok(())
}

async fn past_lists(service: &AgentCfg, place: &std::path::Path) -> Result<(), Failure> {
    let entries: usize = setting("ENTRIES", 100_000);
    let made = Arc::new(fixture::make(service, AGENTS, 0).await);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..CLIENTS {
        let (service, made) = (service.clone(), Arc::clone(&made));
        writers.spawn(async move {
            for number in 0..entries / CLIENTS {
                change(&service, &made, (number * CLIENTS + writer) % AGENTS, number).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    let head = service.audit_log(&made.owner, made.workspace, 0, 1).await?[0].revision;
    let list = async |as_of: Option<AsOf>| {
        // A list of all states is read each time.
        let filter = AgentFilter::default().state(AgentState::All).as_of(as_of);
        let started = Instant::now();
        let list = service.list_agents(&made.owner, made.workspace, &filter).await?.value;
        assert_eq!(list.len(), AGENTS, "every agent was there");
        Ok::<_, Failure>(started.elapsed().as_secs_f64() * 1e3)
    };
    let mut figures: [Series; 4] = Default::default();
    for _ in 0..rounds(5) {
        let moments = [None, Some(head - 1), Some(head / 2), Some(AGENTS as u64 + 2)];
        for (series, revision) in figures.iter_mut().zip(moments) {
            series.push(list(revision.map(AsOf::Revision)).await?);
        }
    }
    let [present, recent, middle, first] = figures;
    let size = std::fs::metadata(place.join("bench.redb"))?.len() >> 20;
    println!(
        "| log entries | agents | file, MiB | present list, ms | one revision ago, ms | in the middle, ms | at the start, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    println!("| {head} | {AGENTS} | {size} | {present} | {recent} | {middle} | {first} |");
    Ok(())
}
