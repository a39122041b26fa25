//! Endpoints: list agents.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{NewAgent, Precondition};
use agentcfg_tests::harness::{Studio, unique};
use serde_json::json;

#[tokio::test]
async fn the_list_holds_the_active_agents_only() {
    let studio = Studio::open();
    let client = studio.client();
    for id in ["a", "b", "c"] {
        client
            .create_agent(&NewAgent::new(studio.id, id.parse().unwrap(), id))
            .await
            .unwrap();
    }
    client
        .delete_agent(Some(studio.id), "b", &Precondition::None)
        .await
        .unwrap();
    let list = client
        .list_agents(studio.id, &AgentFilter::default())
        .await
        .unwrap()
        .value;
    assert_eq!(
        list.iter().map(|agent| &*agent.agent_id).collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert!(list.iter().all(|agent| agent.is_active));
}

#[tokio::test]
async fn the_list_is_in_the_order_of_creation() {
    let studio = Studio::open();
    let client = studio.client();
    let ids: Vec<_> = (0..12).rev().map(|number| format!("agent-{number:02}")).collect();
    for id in &ids {
        client
            .create_agent(&NewAgent::new(studio.id, id.parse().unwrap(), "Agent"))
            .await
            .unwrap();
    }
    let list = client
        .list_agents(studio.id, &AgentFilter::default())
        .await
        .unwrap()
        .value;
    assert_eq!(list.iter().map(|agent| agent.agent_id.clone()).collect::<Vec<_>>(), ids);
    assert!(list.is_sorted_by_key(|agent| (agent.created_at, agent.id)));
}

#[tokio::test]
async fn the_list_is_complete_in_one_response() {
    let studio = Studio::open();
    let client = studio.client();
    for number in 0..150 {
        client
            .create_agent(&NewAgent::new(
                studio.id,
                format!("agent-{number}").parse().unwrap(),
                "Agent",
            ))
            .await
            .unwrap();
    }
    assert_eq!(
        client
            .list_agents(studio.id, &AgentFilter::default())
            .await
            .unwrap()
            .value
            .len(),
        150
    );
}

#[tokio::test]
async fn the_list_needs_agents_read() {
    let studio = Studio::open();
    for scope in ["read", "write", "admin"] {
        let client = studio.server.client(&studio.key(scope).key);
        client.list_agents(studio.id, &AgentFilter::default()).await.unwrap();
    }
    let stranger = studio.server.client(&studio.outsider());
    let error = stranger
        .list_agents(studio.id, &AgentFilter::default())
        .await
        .unwrap_err();
    assert!(error.is_forbidden(), "{error:?}");
}

#[test]
fn the_list_without_a_workspace_is_400() {
    let studio = Studio::open();
    let key = studio.key("read").key;
    for credential in [&studio.owner, &key] {
        studio
            .server
            .get("/api/agents/configs")
            .bearer(credential)
            .send()
            .refused(400, &["workspace_id", "required"]);
    }
}

#[test]
fn the_list_without_a_credential_is_401_and_without_a_right_403() {
    let studio = Studio::open();
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(&target).send().expect(401);
    studio.server.get(&target).bearer(studio.outsider()).send().expect(403);
}

#[test]
fn the_list_contains_no_agent_of_another_workspace() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let only_here = unique("only-here");
    studio.create(&only_here, &json!({})).expect(201);
    assert_eq!(sibling.list().json(), json!([]));
    let key = sibling.key("admin").key;
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(target).bearer(key).send().expect(403);
}
