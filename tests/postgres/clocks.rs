//! Servers whose clocks disagree, on one database.

use std::sync::Arc;

use agentcfg_core::clock::{Clock, FollowingClock, ManualClock};
use agentcfg_core::model::{LiveStatus, NewAgent, NewWorkspace, StatusReport, Timestamp, WorkspaceId};
use agentcfg_core::rate_limit::SharedLimiter;
use agentcfg_core::store::Store;
use agentcfg_core::{AgentCfg, Settings};

use crate::cluster::Cluster;

/// A server on a machine whose wall clock is its own.
struct Machine {
    clock: Arc<ManualClock>,
    service: AgentCfg,
}

impl Machine {
    async fn start<S: Store + agentcfg_core::rate_limit::SharedWindows>(store: &Arc<S>, wall: &str) -> Self {
        let clock = Arc::new(ManualClock::at(wall.parse().unwrap()));
        let following = Arc::new(FollowingClock::new(Arc::clone(&clock) as _));
        let limiter = SharedLimiter::new(Arc::clone(store) as _).followed_by(Arc::clone(&following));
        // Before a request is counted.
        limiter.read_clock().await.unwrap();
        let builder = AgentCfg::builder(Arc::clone(store) as Arc<dyn Store>);
        let service = builder.rate_limiter(limiter).clock(following).build();
        Self { clock, service }
    }

    async fn status(&self, workspace: WorkspaceId) -> LiveStatus {
        let ada = self.service.trusted_user("ada").unwrap();
        self.service.agent_status(&ada, workspace).await.unwrap()[0].status
    }
}

#[tokio::test]
async fn servers_agree_on_a_status_whatever_their_clocks_show() {
    let Some(cluster) = Cluster::shared() else { return };
    let store = Arc::new(cluster.store().await);
    let machines = [
        Machine::start(&store, "2026-11-20T09:30:00Z").await,
        Machine::start(&store, "2026-11-20T09:30:10Z").await,
        Machine::start(&store, "2001-01-01T00:00:00Z").await,
    ];
    let first = &machines[0].service;
    let ada = first.trusted_user("ada").unwrap();
    let workspace = first.create_workspace(&ada, NewWorkspace::new("Studio")).await.unwrap();
    let (workspace, made_at): (_, Timestamp) = (workspace.id, workspace.created_at);
    let age = agentcfg_core::clock::SystemClock.now().unix_millis() - made_at.unix_millis();
    assert!(
        (-60_000..60_000).contains(&age),
        "created at the database's time, {age} ms ago"
    );
    let writer = NewAgent::new(workspace, "writer".parse().unwrap(), "Writer");
    first.create_agent(&ada, writer).await.unwrap();
    let reported = first
        .report_status(&ada, Some(workspace), "writer", StatusReport::idle())
        .await;
    assert_eq!(reported.unwrap().status, LiveStatus::Idle);
    let ttl = i64::from(Settings::default().status_ttl_seconds) * 1000;
    // What lies between the counts of the servers is far less than two seconds.
    for (advanced, expected) in [
        (0, LiveStatus::Idle),
        (ttl - 2000, LiveStatus::Idle),
        (4000, LiveStatus::Offline),
    ] {
        for (at, machine) in machines.iter().enumerate() {
            machine.clock.advance_millis(advanced);
            // The wall clock of this machine is set.
            machine.clock.step_millis(-3_600_000);
            assert_eq!(
                machine.status(workspace).await,
                expected,
                "machine {at} after {advanced} ms more"
            );
        }
    }
}
