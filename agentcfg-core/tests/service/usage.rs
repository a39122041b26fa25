//! The usage of model calls: what is written, added up, shown, kept and removed.

use std::sync::Arc;

use agentcfg_core::model::{ExportLine, Provider, Role, UsageCallFilter, UsageColumn, UsageFilter, UsageRow};
use agentcfg_core::service::{CallFacts, ModelRequest};
use agentcfg_core::store::{Key, Kind, Partition, Scan, Store};
use agentcfg_core::{ErrorKind, Settings};

use super::support::{Between, Call, Fault, Faulty, Frozen, World, failure, kind};
use super::usage_ledger::{added_up, call, of_two_servers, service_on, studio, tokens, usage};

#[tokio::test]
async fn calls_are_added_up_by_what_is_asked_for() {
    for world in [World::new(), World::on_disk(Settings::default())] {
        added_up(world).await;
    }
}

#[tokio::test]
async fn hours_end_where_they_end_and_servers_add_up() {
    for world in [World::new(), World::on_disk(Settings::default())] {
        of_two_servers(world).await;
    }
}

#[tokio::test]
async fn calls_that_are_written_late_count_once() {
    for world in [World::new(), World::on_disk(Settings::default())] {
        let (_, workspace) = studio(&world).await;
        let store = Faulty::new(&world.store);
        let service = service_on(&world, &(Arc::clone(&store) as Arc<dyn Store>));
        let ada = world.user("ada");
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1000, 100), 10).await;
        store.script([Fault::Late]);
        assert_eq!(kind(service.flush().await), ErrorKind::OutcomeUnknown);
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(10, 1), 10).await;
        service.flush().await.unwrap();
        assert_eq!(store.commit_late().await, [false], "the sums would go back");
        // The other way round: the late commit comes before the next attempt.
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(100, 10), 10).await;
        store.script([Fault::Late]);
        assert_eq!(kind(service.flush().await), ErrorKind::OutcomeUnknown);
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 0), 10).await;
        assert_eq!(store.commit_late().await, [true]);
        service.flush().await.unwrap();
        let rows = usage(&service, &ada, workspace, &[]).await;
        assert_eq!(
            (rows[0].calls, rows[0].input_tokens, rows[0].output_tokens),
            (4, 1111, 111)
        );
        let calls = service.usage_calls(&ada, workspace, &UsageCallFilter::default()).await;
        assert_eq!(calls.unwrap().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_end_during_a_write_are_gathered_for_the_next_one() {
    const WRITES: usize = 5;
    let world = Arc::new(World::new());
    let (_, workspace) = studio(&world).await;
    let store = Between::new(&world.store);
    let service = service_on(&world, &(Arc::clone(&store) as Arc<dyn Store>));
    let ada = world.user("ada");
    call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 1), 10).await;
    for _ in 0..2 * WRITES {
        let (service, ada, world) = (service.clone(), ada.clone(), Arc::clone(&world));
        let one_more = async move { call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 1), 10).await };
        store.before(Call::Commit(Kind::UsageCall), 0, one_more);
    }
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    for write in 1..=WRITES {
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        assert_eq!(store.left(), 2 * WRITES - write, "one commit for each write");
    }
    // A flush leaves none.
    service.flush().await.unwrap();
    assert_eq!(store.left(), 0);
    let calls = usage(&service, &ada, workspace, &[]).await[0].calls;
    assert_eq!(calls, 1 + 2 * WRITES as u64);
}

#[tokio::test(start_paused = true)]
async fn calls_that_fill_a_commit_are_written_at_once() {
    let world = World::new();
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    for (calls, millis, written) in [(1, 200, 0), (500, 1, 501), (1, 200, 501), (0, 100, 502)] {
        for _ in 0..calls {
            call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 1), 0).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        let rows = usage(&service, &ada, workspace, &[]).await;
        assert_eq!(rows.first().map_or(0, |row| row.calls), written);
    }
}

#[tokio::test(start_paused = true)]
async fn a_workspace_whose_calls_are_held_up_does_not_hold_up_the_others() {
    let world = World::new();
    let (_, frozen) = studio(&world).await;
    let other = world.workspace("bob").await;
    world.agent(other, "bob", "helper").await;
    let of_frozen = Partition::Workspace(frozen);
    let freezes = move |key: &Key| key.kind() == Kind::UsageCall && *key.partition() == of_frozen;
    let service = service_on(&world, &Frozen::behind(&world.store, freezes));
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    for round in 1..4 {
        call(&world, &service, &ada, "writer", "gpt-5.5", tokens(1, 1), 10).await;
        call(&world, &service, &bob, "helper", "gpt-5.5", tokens(1, 1), 10).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(usage(&service, &bob, other, &[]).await[0].calls, round);
    }
    assert!(usage(&service, &ada, frozen, &[]).await.is_empty());
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

/// The calls of servers are in blocks that overlap, and pages begin within them.
#[tokio::test]
async fn calls_of_several_servers_are_listed_in_one_order_page_by_page() {
    for world in [World::new(), World::on_disk(Settings::default())] {
        let (first, workspace) = studio(&world).await;
        let servers = [
            first,
            service_on(&world, &world.store),
            service_on(&world, &world.store),
        ];
        let ada = world.user("ada");
        for round in 0..120_u64 {
            for (at, service) in servers.iter().enumerate() {
                let agent = if (round + at as u64).is_multiple_of(3) {
                    "editor"
                } else {
                    "writer"
                };
                call(&world, service, &ada, agent, "gpt-5.5", tokens(round, 0), 7).await;
            }
            // Some blocks are of several calls, and some end in the midst of those of another server.
            let due = usize::try_from(round % 7).unwrap();
            if let Some(service) = servers.get(due) {
                service.flush().await.unwrap();
            }
        }
        for service in &servers {
            service.flush().await.unwrap();
        }
        let scan = Scan::all(Partition::Workspace(workspace), Kind::UsageCall);
        let records = world.store.scan(&scan).await.unwrap().entries.len();
        assert!((20..120).contains(&records), "{records} blocks");

        let filter = UsageCallFilter::default().limit(1000);
        let all = servers[0].usage_calls(&ada, workspace, &filter).await.unwrap();
        assert_eq!(all.len(), 360);
        assert!(all.is_sorted_by(|a, b| a.id > b.id));
        assert_eq!(
            all.iter().map(|call| call.input_tokens).sum::<u64>(),
            3 * (0..120).sum::<u64>()
        );
        for (size, agent) in [(1, None), (7, None), (50, None), (7, Some("editor"))] {
            let mut filter = UsageCallFilter::default().limit(size);
            filter.agent_id = agent.map(str::to_owned);
            let mut pages = Vec::new();
            loop {
                let page = servers[1].usage_calls(&ada, workspace, &filter).await.unwrap();
                let Some(last) = page.last() else { break };
                filter.before = Some(last.id);
                pages.extend(page);
            }
            let expected: Vec<_> = all
                .iter()
                .filter(|call| agent.is_none_or(|agent| call.agent_id == agent))
                .collect();
            assert_eq!(pages.iter().collect::<Vec<_>>(), expected, "pages of {size}");
        }
    }
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
