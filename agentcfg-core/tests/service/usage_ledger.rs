//! The ledger of usage on a store of any engine.

use std::sync::Arc;

use agentcfg_core::model::{
    Patch, Provider, Scope, Timestamp, TokenUsage, UsageCallFilter, UsageColumn, UsageFilter, UsageRow, WorkspaceId,
};
use agentcfg_core::routing::{Catalogue, ManagedModels};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{CallFacts, ModelRequest};
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::Store;
use agentcfg_core::{AgentCfg, Caller, ErrorKind};

use super::support::{SECRET, World, failure};

/// A service that has managed access to OpenAI, to models without a price too.
pub fn service_on(world: &World, store: &Arc<dyn Store>) -> AgentCfg {
    AgentCfg::builder(Arc::clone(store))
        .clock(Arc::clone(&world.clock) as _)
        .sessions(LocalSessions::new(SECRET).unwrap())
        .settings(world.settings.clone())
        .unwrap()
        .catalogue(Catalogue::default().with_managed_models(ManagedModels::Any))
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed").unwrap())
        .build()
}

pub async fn studio(world: &World) -> (AgentCfg, WorkspaceId) {
    let workspace = world.workspace("ada").await;
    for agent in ["writer", "editor"] {
        world.agent(workspace, "ada", agent).await;
    }
    (service_on(world, &world.store), workspace)
}

pub fn tokens(input: u64, output: u64) -> TokenUsage {
    TokenUsage {
        input,
        output,
        ..TokenUsage::default()
    }
}

/// A call that took so many milliseconds.
pub async fn call(
    world: &World,
    service: &AgentCfg,
    caller: &Caller,
    agent: &str,
    model: &str,
    usage: TokenUsage,
    millis: i64,
) {
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses").model(model);
    let decided = service.resolve_model_call(caller, None, agent, &request).await.unwrap();
    let facts = CallFacts::default().model(model).path("v1/responses").request_id("r1");
    let mut meter = service.meter(&decided, &decided.first, facts);
    world.clock.advance_millis(millis / 2);
    meter.answered(false);
    world.clock.advance_millis(millis - millis / 2);
    let _ = meter.end(200, Some(usage), false);
}

pub async fn usage(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId, by: &[UsageColumn]) -> Vec<UsageRow> {
    let filter = UsageFilter::default().by(by.to_vec());
    service.usage(caller, workspace, &filter).await.unwrap()
}

/// Calls are added up by what is asked for.
pub async fn added_up(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (key, by_key) = world.key_caller(workspace, "ada", Scope::Write).await;
    // Two agents, two models, two callers; gpt-5.5 costs 5 and 30 USD a million tokens, and the other model has no
    // price.
    call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1000, 100), 1000).await;
    call(&world, &service, &by_key, "writer", "gpt-5.5", tokens(10, 1), 2000).await;
    call(&world, &service, &by_key, "editor", "own", tokens(7, 3), 3000).await;
    service.flush().await.unwrap();

    let all = usage(&service, &ada, workspace, &[]).await;
    assert_eq!(all.len(), 1);
    let all = &all[0];
    assert_eq!(
        (all.calls, all.errors, all.input_tokens, all.output_tokens),
        (3, 0, 1017, 104)
    );
    // (1010 × 5 + 101 × 30) / 10⁶
    assert_eq!((all.cost_usd.to_string().as_str(), all.unpriced_calls), ("0.00808", 1));
    assert_eq!((all.duration_ms, all.first_byte_ms), (6000, 3000));
    assert!(
        all.p50_ms.abs_diff(2000) <= 200 && all.p95_ms.abs_diff(3000) <= 300,
        "{all:?}"
    );

    let rows = usage(&service, &ada, workspace, &[UsageColumn::Agent, UsageColumn::Key]).await;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.agent.value().unwrap().as_str(), row.key.value().cloned(), row.calls))
        .collect();
    let id = Some(key.record.id.to_string());
    assert_eq!(
        rows,
        [
            ("editor", id.clone(), 1),
            ("writer", None, 1),
            ("writer", id.clone(), 1)
        ],
        "null comes first"
    );
    let rows = usage(
        &service,
        &ada,
        workspace,
        &[UsageColumn::Day, UsageColumn::Status, UsageColumn::Label],
    )
    .await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].day, Patch::Set("2026-11-20".to_owned()));
    assert_eq!((&rows[0].status, &rows[0].label), (&Patch::Set(200), &Patch::Null));
    assert!(rows[0].agent.is_absent() && rows[0].other.is_none());

    // Filters.
    for (filter, calls) in [
        (UsageFilter::default().agent_id("writer"), 2),
        (UsageFilter::default().model("own"), 1),
        (UsageFilter::default().provider("anthropic"), 0),
        (UsageFilter::default().key(id.clone().unwrap()), 2),
        (UsageFilter::default().label("live"), 0),
    ] {
        let rows = service.usage(&ada, workspace, &filter).await.unwrap();
        assert_eq!(rows.first().map_or(0, |row| row.calls), calls, "{filter:?}");
    }
    // Single calls, newest first, in pages.
    let page = UsageCallFilter::default().limit(2);
    let first = service.usage_calls(&ada, workspace, &page).await.unwrap();
    let second = service
        .usage_calls(&ada, workspace, &page.clone().before(first[1].id))
        .await
        .unwrap();
    let shown: Vec<_> = first
        .iter()
        .chain(&second)
        .map(|call| (call.agent_id.as_str(), call.input_tokens))
        .collect();
    assert_eq!(shown, [("editor", 7), ("writer", 10), ("writer", 1000)]);
    assert_eq!(first[0].cost_usd, None);
    assert_eq!(first[1].cost_usd.unwrap().to_string(), "0.00008");
    assert_eq!(first[1].actor.as_ref().unwrap().id, key.record.id.to_string());
    assert_eq!((first[1].first_byte_ms, first[1].duration_ms), (Some(1000), 2000));
}

/// Hours end where they end, and two servers add up.
pub async fn of_two_servers(world: World) {
    let (first, workspace) = studio(&world).await;
    let second = service_on(&world, &world.store);
    let ada = world.user("ada");
    // Two calls in the hour of 09:30 by two servers, and one after eleven.
    call(&world, &first, &ada, "writer", "gpt-5.5", tokens(1, 0), 10).await;
    call(&world, &second, &ada, "writer", "gpt-5.5", tokens(2, 0), 10).await;
    first.flush().await.unwrap();
    world.clock.advance_millis(100 * 60 * 1000);
    call(&world, &first, &ada, "writer", "gpt-5.5", tokens(4, 0), 10).await;
    first.flush().await.unwrap();
    second.flush().await.unwrap();
    // One that was set back counts where its clock was.
    world.clock.step_millis(-100 * 60 * 1000);
    call(&world, &first, &ada, "writer", "gpt-5.5", tokens(8, 0), 10).await;
    first.flush().await.unwrap();
    world.clock.step_millis(100 * 60 * 1000);

    let rows = usage(&second, &ada, workspace, &[UsageColumn::Hour]).await;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.hour.value().unwrap().to_string(), row.input_tokens))
        .collect();
    assert_eq!(
        rows,
        [
            ("2026-11-20T09:00:00.000Z".to_owned(), 11),
            ("2026-11-20T11:00:00.000Z".to_owned(), 4)
        ]
    );
    let between = |from: &str, to: &str| {
        UsageFilter::default()
            .from(from.parse::<Timestamp>().unwrap())
            .to(to.parse::<Timestamp>().unwrap())
    };
    for (from, to, input) in [
        ("2026-11-20T09:59:00Z", "2026-11-20T11:59:00Z", 11),
        ("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z", 4),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:59:00Z", 0),
    ] {
        let rows = first.usage(&ada, workspace, &between(from, to)).await.unwrap();
        assert_eq!(rows.first().map_or(0, |row| row.input_tokens), input, "{from} {to}");
    }
    let reversed = between("2026-11-20T11:00:00Z", "2026-11-20T10:00:00Z");
    assert_eq!(
        failure(first.usage(&ada, workspace, &reversed).await),
        (ErrorKind::Invalid, "from must not be after to".to_owned())
    );
}
