//! Sequential round trips to the cluster for each request, measured through a delayed connection.

use serde_json::json;

use crate::cluster::Cluster;
use crate::counting_proxy::{CountingProxy, cost};
use crate::server::{Server, token};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_waits_for_the_documented_number_of_round_trips() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let proxy = CountingProxy::to(cluster.port(0)).await;
    let server = Server::start(&format!("http://127.0.0.1:{}#{}", proxy.port, cluster.prefix()));
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
    let role = async |i| api.patch(patch, json!({"role": format!("{i}")})).await;
    let update = cost(&proxy, role, 200).await;
    let idle = json!({"status": "idle"});
    let report = cost(
        &proxy,
        async |_| api.send("PUT", status, "", Some(idle.clone())).await.unwrap(),
        200,
    )
    .await;

    println!("round trips, one after another");
    for (name, (_, waited)) in [
        ("list", list),
        ("create", create),
        ("update", update),
        ("report", report),
    ] {
        println!("  {name}: {waited}");
    }
    assert_eq!(
        list.1, 1,
        "a list: the credential with the revision, and the count beside it"
    );
    assert_eq!(create.1, 2, "a create: the same, and then the commit");
    assert!(update.1 <= 3, "an update reads the agent before: {update:?}");
    assert!(report.1 <= 3, "a report reads the agent before: {report:?}");
}
