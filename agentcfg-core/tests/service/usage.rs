//! The usage of model calls: what is written, added up, shown, kept and removed.

use std::sync::Arc;

use agentcfg_core::model::{
    ExportLine, Patch, Provider, Role, Scope, TokenUsage, UsageCallFilter, UsageColumn, UsageFilter, UsageRow,
    WorkspaceId,
};
use agentcfg_core::routing::{Catalogue, ManagedModels};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::{CallFacts, ModelRequest};
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::Store;
use agentcfg_core::{AgentCfg, Caller, ErrorKind, Settings};

use super::support::{Fault, Faulty, SECRET, World, failure, kind};

/// A service that has managed access to OpenAI, to models without a price too.
fn service_on(world: &World, store: &Arc<dyn Store>) -> AgentCfg {
    AgentCfg::builder(Arc::clone(store))
        .clock(Arc::clone(&world.clock) as _)
        .sessions(LocalSessions::new(SECRET).unwrap())
        .settings(world.settings.clone())
        .catalogue(Catalogue::default().with_managed_models(ManagedModels::Any))
        .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed").unwrap())
        .build()
}

async fn studio(world: &World) -> (AgentCfg, WorkspaceId) {
    let workspace = world.workspace("ada").await;
    for agent in ["writer", "editor"] {
        world.agent(workspace, "ada", agent).await;
    }
    (service_on(world, &world.store), workspace)
}

fn tokens(input: u64, output: u64) -> TokenUsage {
    TokenUsage {
        input,
        output,
        ..TokenUsage::default()
    }
}

/// A call that took so many milliseconds.
async fn call(
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

async fn usage(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId, by: &[UsageColumn]) -> Vec<UsageRow> {
    let filter = UsageFilter::default().by(by.to_vec());
    service.usage(caller, workspace, &filter).await.unwrap()
}

#[tokio::test]
async fn calls_are_added_up_by_what_is_asked_for() {
    for world in [World::new(), World::on_disk(Settings::default())] {
        let (service, workspace) = studio(&world).await;
        let ada = world.user("ada");
        let (key, by_key) = world.key_caller(workspace, "ada", Scope::Write).await;
        // Two agents, two models, two callers; gpt-5.5 costs 5 and 30 USD a million tokens, and the other model has no price.
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
}

#[tokio::test]
async fn hours_end_where_they_end_and_servers_add_up() {
    let world = World::new();
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
            .from(from.parse::<agentcfg_core::model::Timestamp>().unwrap())
            .to(to.parse::<agentcfg_core::model::Timestamp>().unwrap())
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

#[tokio::test]
async fn the_first_by_cost_are_shown_and_the_others_added_up() {
    let world = World::new();
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    for (model, input) in [
        ("gpt-5.5", 10),
        ("gpt-6-sol", 100),
        ("gpt-5.4-mini", 1),
        ("own", 1000),
        ("own-2", 1),
    ] {
        call(&world, &service, &ada, "writer", model, tokens(input, 0), 10).await;
    }
    service.flush().await.unwrap();
    let filter = UsageFilter::default()
        .by(vec![UsageColumn::Day, UsageColumn::Model])
        .top(2);
    let rows = service.usage(&ada, workspace, &filter).await.unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.model.value().map(String::as_str), row.other, row.calls))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("gpt-5.5"), None, 1),
            (Some("gpt-6-sol"), None, 1),
            (None, Some(true), 3)
        ]
    );

    use UsageColumn::{Agent, Credential, Day, Hour, Key, Label, Model};
    for (filter, words) in [
        (filter.clone().top(51), "top must be from 1 to 50"),
        (UsageFilter::default().top(1), "top needs a column"),
        (UsageFilter::default().by(vec![Hour, Day]).top(1), "top needs a column"),
        (
            UsageFilter::default().by(vec![Agent, Agent]),
            "by must name each column once",
        ),
        (
            UsageFilter::default().by(vec![Agent, Model, Key, Label, Credential]),
            "by must name at most 4 columns",
        ),
    ] {
        let (kind, message) = failure(service.usage(&ada, workspace, &filter).await);
        assert_eq!(kind, ErrorKind::Invalid);
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn a_write_whose_outcome_is_unknown_counts_once() {
    let world = World::new();
    let (_, workspace) = studio(&world).await;
    let faulty = Faulty::new(&world.store);
    let service = service_on(&world, &(Arc::clone(&faulty) as Arc<dyn Store>));
    let ada = world.user("ada");
    let mut expected = 0;
    for fault in [Fault::Made, Fault::Lost, Fault::Unavailable, Fault::Conflict(0)] {
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 10).await;
        expected += 1;
        faulty.script([fault]);
        let first = service.flush().await;
        // The next attempt has a further call in the same commit.
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 10).await;
        expected += 1;
        drop(first);
        service.flush().await.unwrap();
        let all = usage(&service, &ada, workspace, &[]).await;
        assert_eq!((all[0].calls, all[0].input_tokens), (expected, expected));
        let calls = service
            .usage_calls(&ada, workspace, &UsageCallFilter::default())
            .await
            .unwrap();
        assert_eq!(calls.len() as u64, expected);
    }
}

#[tokio::test]
async fn calls_are_kept_for_a_time_and_sums_for_good() {
    let world = World::with(|settings| settings.usage_retention_days = 2);
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    for _ in 0..300 {
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 1).await;
    }
    service.flush().await.unwrap();
    world.clock.advance_millis(2 * 24 * 60 * 60 * 1000 + 1000);
    let listed = service
        .usage_calls(&ada, workspace, &UsageCallFilter::default())
        .await
        .unwrap();
    assert!(listed.is_empty(), "they are no longer shown");
    call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 1).await;
    service.flush().await.unwrap();
    let kind = agentcfg_core::store::Kind::UsageCall;
    let scan = agentcfg_core::store::Scan::all(agentcfg_core::store::Partition::Workspace(workspace), kind);
    assert_eq!(
        world.store.scan(&scan).await.unwrap().entries.len(),
        1,
        "they are removed"
    );
    let all = usage(&service, &ada, workspace, &[]).await;
    assert_eq!(all[0].calls, 301);
}

#[tokio::test]
async fn who_called_is_for_those_who_read_the_audit_log() {
    let world = World::new();
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let mel = world.member(workspace, "ada", "mel", Role::Member).await;
    call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 1).await;
    service.flush().await.unwrap();
    assert_eq!(usage(&service, &mel, workspace, &[UsageColumn::Agent]).await.len(), 1);
    for filter in [
        UsageFilter::default().by(vec![UsageColumn::Key]),
        UsageFilter::default().by(vec![UsageColumn::Agent, UsageColumn::User]),
        UsageFilter::default().key("4fQ8mZr2LkV7xN0bTy6W"),
    ] {
        let (kind, message) = failure(service.usage(&mel, workspace, &filter).await);
        assert_eq!(kind, ErrorKind::Forbidden);
        assert!(message.contains("audit_log:read"), "{message}");
    }
    let calls = service
        .usage_calls(&mel, workspace, &UsageCallFilter::default())
        .await
        .unwrap();
    assert_eq!(calls[0].actor, None);
    let of_key = UsageCallFilter::default().key("4fQ8mZr2LkV7xN0bTy6W");
    assert_eq!(
        kind(service.usage_calls(&mel, workspace, &of_key).await),
        ErrorKind::Forbidden
    );
    let eve = world.user("eve");
    assert_eq!(
        kind(service.usage(&eve, workspace, &UsageFilter::default()).await),
        ErrorKind::Forbidden
    );
}

#[tokio::test]
async fn usage_is_exported_by_day_agent_and_model_and_removed_with_its_workspace() {
    let world = World::new();
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    for day in 0..40 {
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(day, 0), 1).await;
        call(&world, &service, &ada, "editor", "gpt-5.5", tokens(1, 0), 1).await;
        world.clock.advance_millis(24 * 60 * 60 * 1000);
    }
    service.flush().await.unwrap();
    let mut export = service.export_workspace(&ada, workspace).await.unwrap();
    let mut text = Vec::new();
    while let Some(lines) = export.next().await.unwrap() {
        text.extend(lines);
    }
    let lines = std::str::from_utf8(&text)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<ExportLine>(line).unwrap());
    let rows: Vec<UsageRow> = lines
        .filter_map(|line| match line {
            ExportLine::Usage(row) => Some(row),
            _ => None,
        })
        .collect();
    assert_eq!(rows.len(), 80);
    assert_eq!(
        (
            rows[0].day.value().unwrap().as_str(),
            rows[0].agent.value().unwrap().as_str()
        ),
        ("2026-11-20", "editor")
    );
    assert_eq!(rows[79].input_tokens, 39);

    let name = service.list_workspaces(&ada).await.unwrap()[0].workspace.name.clone();
    call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 1).await;
    service.delete_workspace(&ada, workspace, &name).await.unwrap();
    service.remove_deleted_workspaces().await.unwrap();
    service.flush().await.unwrap();
    for kind in [
        agentcfg_core::store::Kind::UsageCall,
        agentcfg_core::store::Kind::UsageSum,
    ] {
        let scan = agentcfg_core::store::Scan::all(agentcfg_core::store::Partition::Workspace(workspace), kind);
        assert!(world.store.scan(&scan).await.unwrap().entries.is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_with_too_many_rows_says_to_choose_less() {
    let world = World::with(|settings| settings.default_plan = agentcfg_core::model::Plan::Enterprise);
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses").model("m");
    let decided = service
        .resolve_model_call(&ada, None, "writer", &request)
        .await
        .unwrap();
    for number in 0..10_001 {
        let facts = CallFacts::default().model(format!("m{number}")).path("v1/responses");
        let _ = service
            .meter(&decided, &decided.first, facts)
            .end(200, Some(tokens(1, 1)), false);
    }
    service.flush().await.unwrap();
    let by_model = UsageFilter::default().by(vec![UsageColumn::Model]);
    let (kind, message) = failure(service.usage(&ada, workspace, &by_model).await);
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(
        message.contains("more than 10,000 rows") || message.contains("more than 10000 rows"),
        "{message}"
    );
    let rows = service.usage(&ada, workspace, &by_model.clone().top(3)).await.unwrap();
    assert_eq!((rows.len(), rows[3].calls), (4, 9_998));
    let rows = service.usage(&ada, workspace, &by_model.model("m7")).await.unwrap();
    assert_eq!(rows.len(), 1);
}
