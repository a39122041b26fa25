//! Budgets of processes that are gone, on a store of any engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{Action, BudgetPeriod, BudgetScope};
use agentcfg_core::service::OutputCap;
use agentcfg_core::store::{Batch, CommitError, Committed, Key, Kind, Record, Scan, Scanned, Store, StoreError};

use super::budget_scenarios::{MODEL, amounts, begin, end, limit, only, shown};
use super::support::{World, kind};
use super::usage_ledger::{service_on, studio, tokens};

/// A store that refuses reports of what budgets have spent.
struct WithoutReports {
    inner: Arc<dyn Store>,
    refuses: AtomicBool,
}

#[async_trait::async_trait]
impl Store for WithoutReports {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.inner)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
        self.inner.scan(scan).await
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let mut writes = batch.writes.iter();
        let is_report = writes.any(|write| write.key().kind() == Kind::BudgetAccount);
        match is_report && self.refuses.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("not now".into()).into()),
            false => self.inner.commit(batch).await,
        }
    }
}

/// What a process held that was killed is unsettled, and settling sets it to what the usage says.
pub async fn settled_after_a_kill(world: World) {
    let (_, workspace) = studio(&world).await;
    let store = Arc::new(WithoutReports {
        inner: Arc::clone(&world.store),
        refuses: AtomicBool::new(false),
    });
    let service = service_on(&world, &(Arc::clone(&store) as Arc<dyn Store>));
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    service
        .set_budget(&ada, workspace, scope, None, period, limit("1"))
        .await
        .unwrap();
    let (meter, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000)))
        .await
        .unwrap();
    service.flush().await.unwrap();
    let (ended, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100)))
        .await
        .unwrap();
    end(ended, tokens(100, 100)).await;
    // The usage is written, and what the budget has spent is not reported: the process is killed in between.
    store.refuses.store(true, Ordering::SeqCst);
    assert_eq!(kind(service.flush().await), ErrorKind::Unavailable);
    std::mem::forget(meter);
    let other = service_on(&world, &world.store);

    world.clock.advance_millis(20_000);
    let budget = only(&other, &ada, workspace).await;
    assert_eq!((budget.spent_usd.nanos(), budget.reserved_usd.nanos()), (0, 0));
    assert!(budget.unsettled_usd.nanos() >= 30_500_000, "{budget:?}");
    let settled = other.settle_budgets(&ada, workspace).await.unwrap();
    assert_eq!(shown(&settled[0]), amounts("0.0035", "0", "0"));
    let entry = &other.audit_log(&ada, workspace, 0, 1).await.unwrap()[0];
    assert_eq!(
        (entry.action, &*entry.target.id),
        (Action::BudgetSettled, &*settled[0].id.to_string())
    );
    assert_eq!(entry.changes["unsettled_usd"].to, "0");
    // The process was only slow: what it reports now was counted already.
    store.refuses.store(false, Ordering::SeqCst);
    service.flush().await.unwrap();
    assert_eq!(shown(&only(&other, &ada, workspace).await), amounts("0.0035", "0", "0"));
    // All of the rest can be spent.
    let (meter, cap) = begin(&other, &ada, "writer", MODEL, (100, OutputCap::Given(50_000)))
        .await
        .unwrap();
    assert_eq!(cap, Some(33_200));
    end(meter, tokens(100, 33_200)).await;
    other.shutdown().await.unwrap();
}

/// A call that ended in the millisecond of a report which has it is not added to what is settled.
pub async fn settled_without_what_was_reported(world: World) {
    let (service, workspace) = studio(&world).await;
    let ada = world.user("ada");
    let (scope, period) = (BudgetScope::Workspace, BudgetPeriod::Total);
    let made = service.set_budget(&ada, workspace, scope, None, period, limit("1"));
    made.await.unwrap();
    let (open, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(1000)))
        .await
        .unwrap();
    for _ in 0..3 {
        let (ended, _) = begin(&service, &ada, "writer", MODEL, (100, OutputCap::Given(100)))
            .await
            .unwrap();
        end(ended, tokens(100, 100)).await;
        service.flush().await.unwrap();
    }
    std::mem::forget(open);
    let other = service_on(&world, &world.store);
    world.clock.advance_millis(20_100);
    assert_eq!(only(&other, &ada, workspace).await.spent_usd.to_string(), "0.0105");
    let settled = other.settle_budgets(&ada, workspace).await.unwrap();
    assert_eq!(shown(&settled[0]), amounts("0.0105", "0", "0"));
}
