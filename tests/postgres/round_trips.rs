//! Round trips to the database for each request: their number, counted on the proxy, and how many of
//! them are sequential, measured through a delayed connection.

use serde_json::json;

use crate::cluster::Cluster;
use crate::counting_proxy::{CountingProxy, cost};
use crate::server::{Server, token};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_needs_the_documented_number_of_round_trips() {
    for statements in ["prepared", "unnamed"] {
        let Some(cluster) = Cluster::start(&["listen_addresses=127.0.0.1", "fsync=off"]) else {
            return;
        };
        let proxy = CountingProxy::to(cluster.port()).await;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port);
        // Two connections, so that both have soon prepared all statements.
        let settings = [("database_pool_size", "2"), ("database_statements", statements)];
        let server = Server::with(&url, &settings);
        let ada = server.api(&token("ada"));
        let workspace = ada.workspace().await;
        server.api(&token("root")).set_plan(&workspace, "enterprise").await;
        let (_, key) = ada.key(&workspace, "write", 1_000_000).await;
        let api = server.api(&key);
        let patch = "/api/agents/configs?agent_id=agent-1";
        let status = "/api/agents/status?agent_id=agent-1";

        let create = cost(
            &proxy,
            async |i| api.create(&workspace, &format!("agent-{i}")).await,
            201,
        )
        .await;
        let list = cost(&proxy, async |_| api.list(&workspace).await, 200).await;
        let taken = cost(&proxy, async |_| api.create(&workspace, "agent-1").await, 409).await;
        let update = cost(
            &proxy,
            async |i| api.patch(patch, json!({"role": format!("{i}")})).await,
            200,
        )
        .await;
        let report = cost(
            &proxy,
            async |_| {
                api.send("PUT", status, "", Some(json!({"status": "idle"})))
                    .await
                    .unwrap()
            },
            200,
        )
        .await;
        let session = cost(&proxy, async |_| ada.list(&workspace).await, 200).await;

        println!("{statements}: round trips, of them one after another");
        for (name, cost) in [
            ("list by key", list),
            ("create", create),
            ("create, taken", taken),
            ("update", update),
            ("status report", report),
            ("list by session", session),
        ] {
            println!("  {name}: {} {}", cost.0, cost.1);
        }
        assert_eq!(
            list,
            (1, 1),
            "a list: the credential with the revision, and the count in the same message"
        );
        assert_eq!(create, (2, 2), "a create: the same, and then the commit");
        assert!(
            update.0 <= 3 && update.1 <= 3,
            "an update reads the agent before: {update:?}"
        );
        assert!(
            report.0 <= 3 && report.1 <= 3,
            "a report reads the agent before: {report:?}"
        );
        assert!(session.0 <= 3, "{session:?}");
    }
}
