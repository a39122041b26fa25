//! `GET /api/agents/released` against `GET /api/agents/configs` with as many agents and as many bytes, in process and
//! without sockets; and the first read of both after a change, which finds nothing in the cache.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::hint::black_box;
use std::time::Instant;

use agentcfg_benches::fixture::{self, Fixture};
use agentcfg_benches::request;
use agentcfg_benches::stats::{Series, rounds};
use agentcfg_benches::wire::Requests;
use agentcfg_core::model::{AgentFilter, AgentPatch, Precondition, Promotion};
use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use agentcfg_core::{AgentCfg, Caller};
use agentcfg_server::{App, Cors};
use hyper::server::conn::http1;
use hyper::service::service_fn;

const LABEL: &str = "production";
/// Requests in one measurement.
const REQUESTS: usize = 50_000;
/// Reads after a change in one measurement.
const COLD: usize = 20;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    println!(
        "| agents | KiB | list, ns | released, ns | rate, released over list | list after a change, µs | released after a change, µs |"
    );
    println!("|---|---|---|---|---|---|---|");
    for agents in [33, 100, 1000] {
        // Runs on a worker of the runtime, as request handlers do.
        runtime
            .block_on(async move { tokio::spawn(measure(agents)).await })
            .expect("a measurement");
    }
}

async fn measure(agents: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(directory.path().join("bench.redb"), RedbOptions::default()).expect("a store");
    let service = fixture::service(store);
    let listed = fixture::make(&service, agents, 1).await;
    let released = fixture::make(&service, agents, 1).await;
    release(&service, &released).await;
    let bytes = even_out(&service, &listed, &released).await;
    for made in [&listed, &released] {
        fixture::use_once(&service, &made.keys).await;
    }
    let app = App::new(service.clone(), Cors::default());
    let list = request::list(&listed.workspace.to_string(), &listed.keys[0]);
    let path = format!("/api/agents/released?workspace_id={}&label={LABEL}", released.workspace);
    let release = request::get(&path, &released.keys[0]);

    let mut columns: [Series; 4] = Default::default();
    for _ in 0..rounds(7) {
        let figures = [
            time(&app, &list).await,
            time(&app, &release).await,
            cold(&service, &listed, false).await,
            cold(&service, &released, true).await,
        ];
        for (column, figure) in columns.iter_mut().zip(figures) {
            column.push(figure);
        }
    }
    let [list, released, cold_list, cold_released] = &columns;
    println!(
        "| {agents} | {} | {list} | {released} | {} | {cold_list} | {cold_released} |",
        bytes >> 10,
        list.over(released),
    );
}

/// Releases all agents, in steps of as many as one promotion takes.
async fn release(service: &AgentCfg, made: &Fixture) {
    let (ada, workspace) = (&made.owner, made.workspace);
    let label = |text: &str| text.parse().expect("a label");
    let promotion = Promotion::new(label("latest"), label(LABEL));
    let promoted = service.promote_labels(ada, workspace, promotion, false).await;
    promoted.expect("a promotion");
}

/// Lengthens the personas of the released agents until both answers have the same length, which is returned.
async fn even_out(service: &AgentCfg, listed: &Fixture, released: &Fixture) -> usize {
    let list = service
        .list_agents(&listed.owner, listed.workspace, &AgentFilter::default())
        .await;
    let wanted = list.expect("a list").value.json_len();
    let length = async || {
        let found = service.released(&released.owner, released.workspace, LABEL, None).await;
        found.expect("releases").value.json_len()
    };
    let missing = wanted - length().await;
    let agents = service
        .list_agents(&released.owner, released.workspace, &AgentFilter::default())
        .await;
    let agents = agents.expect("a list").value.decode().expect("agents");
    for (i, agent) in agents.iter().enumerate() {
        let more = missing / agents.len() + usize::from(i < missing % agents.len());
        let persona = agent.persona_prompt.clone().unwrap_or_default() + &"x".repeat(more);
        let patch = AgentPatch::default().persona_prompt(persona);
        let to = Some(released.workspace);
        let changed = service
            .update_agent(&released.owner, to, &agent.agent_id, patch, &Precondition::None)
            .await;
        changed.expect("a change");
    }
    release(service, released).await;
    let now = length().await;
    assert!(
        now.abs_diff(wanted) * 100 < wanted,
        "{now} bytes, and {wanted} of the list"
    );
    now
}

/// Nanoseconds for each request.
async fn time(app: &App, text: &str) -> f64 {
    let requests = Requests::new((0..REQUESTS).map(|_| text));
    let started = Instant::now();
    http1::Builder::new()
        // The client half-closes after its last request and still expects the response.
        .half_close(true)
        .serve_connection(requests.send(), service_fn(|request| app.exchange(request)))
        .await
        .expect("a connection without a fault");
    started.elapsed().as_nanos() as f64 / REQUESTS as f64
}

/// Microseconds for a read after a change that shows nothing else.
async fn cold(service: &AgentCfg, made: &Fixture, is_released: bool) -> f64 {
    let (ada, workspace): (&Caller, _) = (&made.owner, made.workspace);
    let mut total = 0.0;
    for round in 0..COLD {
        let patch = AgentPatch::default().role(format!("Role {round}"));
        let agent = fixture::agent(workspace, 0).agent_id;
        let changed = service
            .update_agent(ada, Some(workspace), &agent, patch, &Precondition::None)
            .await;
        changed.expect("a change");
        let started = Instant::now();
        match is_released {
            true => drop(black_box(
                service.released(ada, workspace, LABEL, None).await.expect("releases"),
            )),
            false => drop(black_box(
                service
                    .list_agents(ada, workspace, &AgentFilter::default())
                    .await
                    .expect("a list"),
            )),
        }
        total += started.elapsed().as_micros() as f64;
    }
    total / COLD as f64
}
