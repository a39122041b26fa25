//! Budgets on a store of any engine.

use std::sync::Arc;

use agentcfg_core::model::{
    AuditFilter, Budget, BudgetAction, BudgetLimit, BudgetPeriod, BudgetScope, Provider, Scope, Timestamp, TokenUsage,
    UserId, WorkspaceId,
};
use agentcfg_core::service::{CallFacts, CallMeter, CostBound, ModelRequest, OutputCap};
use agentcfg_core::store::{Kind, Partition, Scan, Store};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind};

use super::support::{Fault, Faulty, World, kind};
use super::usage_ledger::{service_on, studio, tokens, usage};

pub const MODEL: &str = "gpt-5.5";

pub fn limit(usd: &str) -> BudgetLimit {
    BudgetLimit::new(usd.parse().unwrap())
}

/// A call that is sent: gpt-5.5 costs 5 and 30 USD a million tokens. Its meter, and the cap of its output.
pub async fn begin(
    service: &AgentCfg,
    caller: &Caller,
    agent: &str,
    model: &str,
    (input, output): (u64, OutputCap),
) -> Result<(CallMeter, Option<u64>), Error> {
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses").model(model);
    let call = service.resolve_model_call(caller, None, agent, &request).await?;
    let (models, tokens) = ([model], |_| input);
    let bound = CostBound::new(&models, &tokens).output_cap(output);
    let reservation = service.reserve(&call, &bound).await?;
    let cap = reservation.as_ref().and_then(|reservation| reservation.output_cap());
    let facts = CallFacts::default().model(model).path("v1/responses");
    Ok((service.meter(&call, &call.first, facts).reserved(reservation), cap))
}

pub async fn end(meter: CallMeter, usage: TokenUsage) {
    let _ = meter.end(200, Some(usage), false);
}

pub async fn only(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId) -> Budget {
    let mut budgets = service.list_budgets(caller, workspace).await.unwrap();
    assert_eq!(budgets.len(), 1);
    budgets.remove(0)
}

pub fn shown(budget: &Budget) -> (String, String, String) {
    (
        budget.spent_usd.to_string(),
        budget.reserved_usd.to_string(),
        budget.unsettled_usd.to_string(),
    )
}

pub fn amounts(spent: &str, reserved: &str, unsettled: &str) -> (String, String, String) {
    (spent.to_owned(), reserved.to_owned(), unsettled.to_owned())
}

/// A call reserves what it can cost at most, its end replaces that by the cost, and a cap is lowered to what the rest
/// pays for.
pub async fn reserved_and_spent(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Month);
    // Before there is a budget, nothing is reserved; the first one counts what the month has spent.
    let (meter, cap) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Absent))
        .await
        .unwrap();
    assert_eq!(cap, None);
    end(meter, tokens(1000, 100)).await;
    let made = service
        .set_budget(&ada, workspace, scope, None, period, limit("0.1"))
        .await
        .unwrap();
    assert_eq!(shown(&made), amounts("0.008", "0", "0"));
    assert_eq!(made.resets_at.unwrap().to_string(), "2026-12-01T00:00:00.000Z");

    // 100 × 5 + 1000 × 30
    let (meter, cap) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000)))
        .await
        .unwrap();
    assert_eq!(cap, Some(1000));
    assert_eq!(
        shown(&only(&service, &ada, workspace).await),
        amounts("0.008", "0.0305", "0")
    );
    // A call is charged by the prices that it has reserved by, also if its model is in the catalogue no more.
    let models = service.catalogue();
    let none = (*models).clone().with_models(Vec::new()).unwrap();
    service.set_models(&none).unwrap();
    end(meter, tokens(90, 200)).await;
    service.set_models(&models).unwrap();
    assert_eq!(
        shown(&only(&service, &ada, workspace).await),
        amounts("0.01445", "0", "0")
    );

    // The rest of 0.08555 pays for 2835 tokens of output.
    let (meter, cap) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(4000)))
        .await
        .unwrap();
    assert_eq!(cap, Some(2835));
    let refused = begin(&service, &ada, "editor", MODEL, (100, OutputCap::Given(4000))).await;
    let refused = refused.map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BudgetExceeded);
    assert_eq!(
        refused.to_string(),
        "the budget of the workspace does not pay for this call: its limit is 0.1 USD a month, it begins again at \
         2026-12-01T00:00:00.000Z"
    );
    // A call that is dropped gives back what it had reserved.
    drop(meter);
    let (meter, _) = begin(&service, &ada, "editor", MODEL, (100, OutputCap::Given(256)))
        .await
        .unwrap();
    end(meter, tokens(1, 1)).await;
    // A model without a price is refused, unless the budget warns alone.
    let unpriced = begin(&service, &ada, "writer", "own", (1, OutputCap::Absent)).await;
    assert_eq!(kind(unpriced.map(drop)), ErrorKind::BudgetExceeded);
    let warn = limit("0.0001").action(BudgetAction::Warn);
    service
        .set_budget(&ada, workspace, scope, None, period, warn)
        .await
        .unwrap();
    let (meter, cap) = begin(&service, &ada, "writer", "own", (1, OutputCap::Absent))
        .await
        .unwrap();
    assert_eq!(cap, None);
    end(meter, tokens(5, 5)).await;
    let (meter, cap) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(4000)))
        .await
        .unwrap();
    assert_eq!(cap, None, "a warning lowers nothing");
    end(meter, tokens(0, 1000)).await;
    service.flush().await.unwrap();
    assert_eq!(only(&service, &ada, workspace).await.spent_usd.to_string(), "0.044485");

    // The thresholds are in the audit log, each once: the refusal reached the last one first.
    let filter = AuditFilter::default().action("budget.threshold_reached");
    let log = service.search_audit_log(&ada, workspace, &filter).await.unwrap();
    let thresholds: Vec<_> = log
        .iter()
        .rev()
        .map(|entry| entry.changes["threshold"].to.clone())
        .collect();
    assert_eq!(thresholds, [100, 50, 80]);
    assert_eq!(log[0].actor.kind, agentcfg_core::model::ActorType::System);

    service
        .remove_budget(&ada, workspace, scope, None, period)
        .await
        .unwrap();
    assert!(service.list_budgets(&ada, workspace).await.unwrap().is_empty());
    let gone = service.remove_budget(&ada, workspace, scope, None, period).await;
    assert_eq!(kind(gone.map(drop)), ErrorKind::NotFound);
}

/// A budget covers the calls of one agent, key or user, and a period ends.
pub async fn of_scopes_and_periods(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (key, by_key) = world.key_caller(workspace, "ada", Scope::Write).await;
    let key_id: UserId = key.record.id.as_str().parse().unwrap();
    let (writer, user): (UserId, UserId) = ("writer".parse().unwrap(), "ada".parse().unwrap());
    let day = BudgetPeriod::Day;
    for (scope, id) in [
        (BudgetScope::Agent, &writer),
        (BudgetScope::Key, &key_id),
        (BudgetScope::User, &user),
    ] {
        service
            .set_budget(&ada, workspace, scope, Some(id), day, limit("0.01"))
            .await
            .unwrap();
    }
    let small = (100, OutputCap::Given(100));
    for (caller, agent) in [
        (&ada, "writer"),
        (&by_key, "editor"),
        (&by_key, "writer"),
        (&ada, "editor"),
    ] {
        let (meter, _) = begin(&service, caller, agent, MODEL, small).await.unwrap();
        end(meter, tokens(100, 100)).await;
    }
    let spent = |budgets: &[Budget]| -> Vec<(BudgetScope, String)> {
        budgets
            .iter()
            .map(|budget| (budget.scope, budget.spent_usd.to_string()))
            .collect()
    };
    let budgets = service.list_budgets(&ada, workspace).await.unwrap();
    assert_eq!(
        spent(&budgets),
        [BudgetScope::Agent, BudgetScope::Key, BudgetScope::User].map(|scope| (scope, "0.007".to_owned()))
    );
    // Of several budgets each must pay.
    let refused = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000))).await;
    let text = refused.map(drop).unwrap_err().to_string();
    assert!(text.starts_with("the budget of the agent \"writer\""), "{text}");
    // A call that is in flight at midnight belongs to the day on which it was reserved.
    let (meter, _) = begin(&service, &ada, "editor", MODEL, (100, OutputCap::Given(80)))
        .await
        .unwrap();
    world.clock.advance_millis(24 * 60 * 60 * 1000);
    end(meter, tokens(100, 50)).await;
    service.flush().await.unwrap();
    let budgets = service.list_budgets(&ada, workspace).await.unwrap();
    assert!(
        budgets.iter().all(|budget| budget.spent_usd.nanos() == 0),
        "{budgets:?}"
    );
    let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(250)))
        .await
        .unwrap();
    end(meter, tokens(1, 1)).await;

    // Accounts of earlier days are removed, but for the last eight.
    for _ in 0..12 {
        service.flush().await.unwrap();
        world.clock.advance_millis(24 * 60 * 60 * 1000);
        let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(80)))
            .await
            .unwrap();
        end(meter, tokens(1, 1)).await;
    }
    let scan = Scan::all(Partition::Workspace(workspace), Kind::BudgetAccount);
    let accounts = world.store.scan(&scan).await.unwrap().entries;
    // Nine of the agent's budget and nine of the user's; the key has called on the first day alone.
    assert_eq!(accounts.len(), 19, "{accounts:?}");

    // Rules and permissions.
    for (scope, id) in [(BudgetScope::Workspace, Some(&writer)), (BudgetScope::Agent, None)] {
        let wrong = service.set_budget(&ada, workspace, scope, id, day, limit("1")).await;
        assert_eq!(kind(wrong.map(drop)), ErrorKind::Invalid);
    }
    let forbidden = service
        .set_budget(&by_key, workspace, BudgetScope::Workspace, None, day, limit("1"))
        .await;
    assert_eq!(kind(forbidden.map(drop)), ErrorKind::Forbidden);
    assert_eq!(service.list_budgets(&by_key, workspace).await.unwrap().len(), 3);
}

/// A call belongs to the period in which it began, also in a budget that is made later.
pub async fn of_the_period_before(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let before: Timestamp = "2026-11-30T23:59:58Z".parse().unwrap();
    world
        .clock
        .advance_millis(before.unix_millis() - world.now().unix_millis());
    let begun = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await;
    world.clock.advance_millis(4000);
    end(begun.unwrap().0, tokens(100, 100)).await;
    let begun = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await;
    end(begun.unwrap().0, tokens(100, 100)).await;
    for (period, spent) in [
        (BudgetPeriod::Day, "0.0035"),
        (BudgetPeriod::Month, "0.0035"),
        (BudgetPeriod::Total, "0.007"),
    ] {
        let made = service
            .set_budget(&ada, workspace, BudgetScope::Workspace, None, period, limit("1"))
            .await;
        assert_eq!(shown(&made.unwrap()), amounts(spent, "0", "0"), "{period}");
    }
}

/// A budget that one server makes counts the calls of the others: those that are not written yet, and those in flight.
pub async fn made_beside_calls_of_others(world: World) {
    let (one, workspace) = studio(&world).await;
    let other = service_on(&world, &world.store);
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    let call = async || {
        begin(&one, &ada, "writer", MODEL, (100, OutputCap::Given(100)))
            .await
            .unwrap()
            .0
    };
    let set = async |usd: &str| {
        other
            .set_budget(&ada, workspace, scope, None, period, limit(usd))
            .await
            .unwrap()
    };
    // Each call costs 0.0035. Without a budget nothing is reserved.
    end(call().await, tokens(100, 100)).await;
    let in_flight = call().await;
    set("0.0070").await;
    end(in_flight, tokens(100, 100)).await;
    // The next call of this server finds that both have spent the limit.
    let refused = begin(&one, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await;
    assert_eq!(refused.map(drop).unwrap_err().kind(), ErrorKind::BudgetExceeded);
    assert_eq!(shown(&only(&one, &ada, workspace).await), amounts("0.007", "0", "0"));
    // A budget is made again while a call has reserved of the one before.
    set("1").await;
    let in_flight = call().await;
    other.remove_budget(&ada, workspace, scope, None, period).await.unwrap();
    set("1").await;
    end(in_flight, tokens(100, 100)).await;
    one.flush().await.unwrap();
    assert_eq!(shown(&only(&other, &ada, workspace).await), amounts("0.0105", "0", "0"));
}

/// A clock that was days ahead, and was set right, leaves the account of today as it is.
pub async fn under_a_clock_that_was_ahead(world: World) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Day);
    service
        .set_budget(&ada, workspace, scope, None, period, limit("0.0105"))
        .await
        .unwrap();
    let call = async || begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await;
    end(call().await.unwrap().0, tokens(100, 100)).await;
    for days in [400, 1, 1] {
        service.flush().await.unwrap();
        world.clock.advance_millis(days * DAY);
        end(call().await.unwrap().0, tokens(100, 100)).await;
    }
    world.clock.step_millis(-402 * DAY);
    for _ in 0..2 {
        end(call().await.unwrap().0, tokens(100, 100)).await;
        service.flush().await.unwrap();
    }
    assert_eq!(
        shown(&only(&service, &ada, workspace).await),
        amounts("0.0105", "0", "0")
    );
    assert_eq!(kind(call().await.map(drop)), ErrorKind::BudgetExceeded);
    // What costs nothing is paid for by nothing.
    let free = begin(&service, &ada, "writer", MODEL, (0, OutputCap::NoOutput)).await;
    end(free.unwrap().0, tokens(0, 0)).await;
}

/// A budget that is made after calls were written counts them, and their server, which does not know that they are
/// written, does not count them again.
pub async fn written_with_an_unknown_outcome(world: World) {
    let (_, workspace) = studio(&world).await;
    let store = Faulty::new(&world.store);
    let service = service_on(&world, &(Arc::clone(&store) as Arc<dyn Store>));
    let other = service_on(&world, &world.store);
    let ada = world.user("ada");
    let call = async || begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await;
    end(call().await.unwrap().0, tokens(100, 100)).await;
    store.script([Fault::Made]);
    assert_eq!(kind(service.flush().await), ErrorKind::OutcomeUnknown);
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    let made = other
        .set_budget(&ada, workspace, scope, None, period, limit("1"))
        .await
        .unwrap();
    assert_eq!(shown(&made), amounts("0.0035", "0", "0"));
    end(call().await.unwrap().0, tokens(100, 100)).await;
    service.flush().await.unwrap();
    assert_eq!(
        shown(&only(&service, &ada, workspace).await),
        amounts("0.007", "0", "0")
    );
    let rows = usage(&other, &ada, workspace, &[]).await;
    assert_eq!((rows[0].calls, rows[0].cost_usd.to_string().as_str()), (2, "0.007"));
}

/// Several servers spend one budget at the same time: never more than the limit, and all of it.
pub async fn exact_over_servers(world: World) {
    let (first, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    // A call reserves 0.0035 and costs as much: 285 of them.
    first
        .set_budget(&ada, workspace, scope, None, period, limit("1"))
        .await
        .unwrap();
    let servers = [
        first,
        service_on(&world, &world.store),
        service_on(&world, &world.store),
    ];
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..12 {
        let (service, ada) = (servers[caller % 3].clone(), ada.clone());
        callers.spawn(async move {
            let mut made = 0;
            for _ in 0..40 {
                match begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100))).await {
                    Ok((meter, _)) => {
                        tokio::task::yield_now().await;
                        end(meter, tokens(100, 100)).await;
                        made += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::BudgetExceeded, "{error}");
                        break;
                    }
                }
            }
            made
        });
    }
    let made: u64 = callers.join_all().await.into_iter().sum();
    assert_eq!(made, 285, "the limit pays for no more, and for no fewer");
    for service in &servers {
        service.flush().await.unwrap();
    }
    let budget = only(&servers[0], &ada, workspace).await;
    assert_eq!(shown(&budget), amounts("0.9975", "0", "0"));
}

/// An estimate costs at most what was reserved, in the ledger as in the budget, so that a budget that is made later
/// begins with the same amount. What the provider reports counts whole.
pub async fn estimated_within_the_reservation(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let set = async |period| {
        let scope = BudgetScope::Workspace;
        let set = service
            .set_budget(&ada, workspace, scope, None, period, limit("1"))
            .await;
        shown(&set.unwrap())
    };
    set(BudgetPeriod::Day).await;
    // 100 × 5 + 1000 × 30, and for the second one 100 × 5 + 2000 × 30.
    for (output, is_estimated, spent) in [(50_000, true, "0.0305"), (2000, false, "0.091")] {
        let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000)))
            .await
            .unwrap();
        let _ = meter.end(200, Some(tokens(100, output)), is_estimated);
        service.flush().await.unwrap();
        let total = &usage(&service, &ada, workspace, &[]).await[0];
        assert_eq!(total.cost_usd.to_string(), spent);
        assert_eq!(set(BudgetPeriod::Day).await, amounts(spent, "0", "0"));
    }
    assert_eq!(set(BudgetPeriod::Month).await, amounts("0.091", "0", "0"));
}
