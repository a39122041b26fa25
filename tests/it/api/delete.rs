//! Endpoints: delete agent, and the states of an agent.

use agentcfg_client::AgentFilter;
use agentcfg_client::model::{NewAgent, Precondition};
use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn a_deletion_is_answered_with_success_true_and_nothing_else() {
    let studio = Studio::open();
    studio.create("writer", &Value::Null).expect(201);
    assert_eq!(studio.remove("writer").expect(200).json(), json!({"success": true}));
}

#[tokio::test]
async fn a_deleted_agent_shows_in_no_list() {
    let studio = Studio::open();
    let client = studio.client();
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    client
        .delete_agent(Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap();
    assert_eq!(
        client
            .list_agents(studio.id, &AgentFilter::default())
            .await
            .unwrap()
            .value,
        []
    );
    let gone = client.get_agent(studio.id, "writer").await.unwrap_err();
    assert!(gone.is_not_found(), "{gone:?}");
    assert_eq!(client.agent_status(studio.id).await.unwrap(), []);
}

#[tokio::test]
async fn a_deletion_keeps_the_record_as_not_active() {
    let studio = Studio::open();
    let client = studio.client();
    let new = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer").role("author");
    let before = client.create_agent(&new).await.unwrap().value;
    client
        .delete_agent(Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap();
    let entry = &client.audit_log(studio.id, &Default::default()).await.unwrap()[0];
    assert_eq!(
        (&entry.changes["is_active"].from, &entry.changes["is_active"].to),
        (&json!(true), &json!(false))
    );
    let error = client.create_agent(&new).await.unwrap_err();
    assert!(
        error.is_conflict(),
        "the record is kept, so the identifier is taken: {error:?}"
    );
    let after = client
        .restore_agent(Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap()
        .value;
    assert_eq!(
        (after.id, after.role, after.created_at),
        (before.id, before.role, before.created_at)
    );
}

#[test]
fn a_deletion_without_agent_id_is_400() {
    let studio = Studio::open();
    for query in ["", "&agent_id="] {
        let target = format!("/api/agents/configs?workspace_id={}{query}", studio.id);
        studio
            .server
            .delete(target)
            .bearer(&studio.owner)
            .send()
            .refused(400, &["agent_id", "required"]);
    }
}

#[tokio::test]
async fn a_deletion_of_an_agent_that_is_not_there_is_404() {
    let studio = Studio::open();
    let client = studio.client();
    let error = client
        .delete_agent(Some(studio.id), "nobody", &Precondition::None)
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    client
        .create_agent(&NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer"))
        .await
        .unwrap();
    client
        .delete_agent(Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap();
    let error = client
        .delete_agent(Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

#[test]
fn a_deletion_without_a_credential_is_401_and_without_a_right_403() {
    let studio = Studio::open();
    studio.create("writer", &Value::Null).expect(201);
    let target = format!("/api/agents/configs?workspace_id={}&agent_id=writer", studio.id);
    let request = studio.server.delete(target);
    request.send().expect(401);
    for credential in [studio.key("read").key, studio.member("viewer"), studio.outsider()] {
        request.clone().bearer(credential).send().expect(403);
    }
    assert_eq!(studio.agent_ids(), ["writer"]);
}
