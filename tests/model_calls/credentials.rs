//! The choice of the credential for a model call.

use agentcfg_client::ProviderCredential;
use agentcfg_client::model::{CredentialSource, Provider};
use agentcfg_tests::harness::Studio;
use serde_json::json;

use crate::fixture::{MANAGED, Stage, new_key, save_key, stage, stage_with};

/// The credential that the next call uses.
async fn used(stage: &Stage, studio: &Studio<'_>, provider: &str) -> String {
    let (path, header) = match provider {
        "openai" => ("openai/v1/responses", "authorization"),
        _ => ("anthropic/v1/messages", "x-api-key"),
    };
    let call = stage.call_with(path, &studio.owner).json(&json!({}));
    call.send().await.whole().await.expect(200);
    let seen = stage.upstream.seen().await;
    seen.header(header).unwrap().trim_start_matches("Bearer ").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_deleting_and_plan_changes_take_effect_with_the_next_call() {
    let stage = stage().await;
    let studio = stage.studio();
    let other = stage.studio();
    assert_eq!(used(&stage, &studio, "openai").await, MANAGED);
    for _ in 0..3 {
        let key = new_key();
        save_key(&studio, "openai", &key);
        assert_eq!(used(&stage, &studio, "openai").await, key);
        assert_eq!(used(&stage, &studio, "anthropic").await, MANAGED);
        assert_eq!(used(&stage, &other, "openai").await, MANAGED);

        studio.set_plan("free");
        assert_eq!(used(&stage, &studio, "openai").await, MANAGED);
        studio.set_plan("team");
        assert_eq!(used(&stage, &studio, "openai").await, key);

        let target = format!("/api/provider-keys?workspace_id={}&provider=openai", studio.id);
        studio.server.delete(target).bearer(&studio.owner).send().expect(200);
        assert_eq!(used(&stage, &studio, "openai").await, MANAGED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_lists_and_changes_the_credential_of_a_call() {
    let stage = stage().await;
    let studio = stage.studio();
    let client = studio.client();
    let source = async || {
        let models = client.list_models(studio.id).await.unwrap();
        let model = models.into_iter().find(|model| model.provider == Provider::OPENAI);
        model.unwrap().credential
    };
    assert_eq!(source().await, CredentialSource::Managed);
    assert_eq!(client.list_provider_keys(studio.id).await.unwrap(), []);

    let key = ProviderCredential::new(new_key()).unwrap();
    let saved = client
        .save_provider_key(studio.id, Provider::OPENAI, &key)
        .await
        .unwrap();
    assert_eq!(saved.provider, Provider::OPENAI);
    assert_eq!(client.list_provider_keys(studio.id).await.unwrap(), [saved]);
    assert_eq!(source().await, CredentialSource::Workspace);
    assert_eq!(used(&stage, &studio, "openai").await, key.expose());

    client.delete_provider_key(studio.id, Provider::OPENAI).await.unwrap();
    assert_eq!(source().await, CredentialSource::Managed);
    let gone = client.delete_provider_key(studio.id, Provider::OPENAI).await;
    assert!(gone.unwrap_err().is_not_found());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_use_their_own_credentials() {
    let stage = stage().await;
    let studios: Vec<_> = (0..4).map(|_| stage.studio()).collect();
    let keys: Vec<_> = studios.iter().map(|_| new_key()).collect();
    let mut calls = tokio::task::JoinSet::new();
    for (studio, key) in studios.iter().zip(&keys) {
        save_key(studio, "openai", key);
        for _ in 0..16 {
            let call = stage.call_with("openai/v1/responses", &studio.owner);
            calls.spawn(call.json(&json!({"input": key, "instructions": ""})).send());
        }
    }
    for answer in calls.join_all().await {
        answer.whole().await.expect(200);
    }
    for _ in 0..keys.len() * 16 {
        let seen = stage.upstream.seen().await;
        let bearer = format!("Bearer {}", seen.json()["input"].as_str().unwrap());
        assert_eq!(seen.header("authorization"), Some(&*bearer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_any_credential_is_refused() {
    let stage = stage_with(|builder| builder.set("openai_base_url", "http://127.0.0.1:9")).await;
    let bare = agentcfg_tests::harness::Server::start();
    let studio = Studio::on(&bare);
    for (agent, model) in [("writer", "gpt-5.5"), ("soon", "gpt-7")] {
        studio.create(agent, &json!({"model": model})).expect(201);
    }
    let call = |agent: &str| {
        let target = format!("/api/agents/model-calls/openai/v1/responses?agent_id={agent}");
        crate::calls::Call::to(bare.address(), &target)
            .bearer(&studio.owner)
            .json(&json!({}))
    };
    let answer = call("writer").refused(503, &["no credential", "openai"]).await;
    assert_eq!(answer.header("retry-after"), None);
    // A model that cannot be called at all is reported first.
    call("soon").refused(400, &["coming soon"]).await;
    assert!(stage.upstream.has_no_unseen_request().await);
}
