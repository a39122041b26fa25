use super::*;
use crate::ErrorKind;
use crate::model::{CredentialSource as Source, Environment, ModelStatus, NewApiKey, Precondition, Scope};

async fn setup(managed: bool) -> (AgentCfg, Workspace) {
    let mut builder = builder(memory()).vault(vault(&[1]));
    if managed {
        builder = builder.managed_credential(Provider::OpenAi, credential("sk-managed"));
    }
    let service = builder.build();
    let workspace = workspace(&service).await;
    (service, workspace)
}

async fn resolve(
    service: &AgentCfg,
    agent_id: &str,
    provider: Provider,
    model: Option<&str>,
) -> Result<super::super::ModelCall, crate::Error> {
    service
        .resolve_model_call(
            &ada(service),
            None,
            agent_id,
            &ModelRequest {
                model,
                ..ModelRequest::new(provider, "v1/responses")
            },
        )
        .await
}

#[tokio::test]
async fn the_request_names_the_model_else_the_agent_does() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", Some("gpt-5.5")).await;
    agent(&service, studio.id, "blank", None).await;

    let call = resolve(&service, "writer", Provider::OpenAi, None).await.unwrap();
    assert_eq!(call.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(call.persona_prompt.as_deref(), Some("You write short sentences."));
    assert_eq!(&*call.base_url, "https://api.openai.com");
    assert_eq!(call.source, Source::Managed);

    let call = resolve(&service, "writer", Provider::OpenAi, Some("gpt-6-sol"))
        .await
        .unwrap();
    assert_eq!(call.model, None, "there is nothing to fill in");
    let call = resolve(&service, "blank", Provider::OpenAi, None).await.unwrap();
    assert_eq!(call.model, None);
    let call = resolve(&service, "blank", Provider::OpenAi, Some("ft:gpt-5.5:mine")).await;
    assert!(call.is_ok(), "models that the catalogue does not know pass");
    let call = resolve(&service, "writer", Provider::OpenAi, Some("gpt-5.5")).await;
    assert!(call.is_ok());
}

#[tokio::test]
async fn a_model_that_cannot_be_called_here_is_invalid_before_the_credential_is_looked_at() {
    let (service, studio) = setup(false).await;
    agent(&service, studio.id, "writer", Some("gpt-5.5")).await;
    agent(&service, studio.id, "early", Some("gpt-7")).await;
    for (agent_id, provider, model, words) in [
        ("early", Provider::OpenAi, None, "coming soon"),
        ("writer", Provider::OpenAi, Some("gpt-7"), "coming soon"),
        ("writer", Provider::Anthropic, None, "is one of openai"),
        (
            "writer",
            Provider::OpenAi,
            Some("claude-haiku-5-5"),
            "is one of anthropic",
        ),
    ] {
        let error = resolve(&service, agent_id, provider, model).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    let error = resolve(&service, "early", Provider::OpenAi, Some("gpt-5.5"))
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::NotConfigured,
        "the request's own model counts: {error}"
    );
}

#[tokio::test]
async fn without_any_credential_the_error_says_why() {
    let (service, studio) = setup(false).await;
    agent(&service, studio.id, "writer", None).await;
    let error = next(&service, studio.id, Provider::OpenAi).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConfigured);
    assert!(error.message().contains("has saved no key for openai"), "{error}");
    assert!(error.message().contains("no managed access"), "{error}");

    let route = service
        .explain_model_call(
            &ada(&service),
            None,
            "writer",
            &ModelRequest {
                model: Some("gpt-5.5"),
                ..ModelRequest::new(Provider::OpenAi, "v1/responses")
            },
        )
        .await
        .unwrap();
    assert_eq!((route.source, route.model.as_deref()), (Source::None, Some("gpt-5.5")));
    assert!(error.message().contains(&route.reason.to_string()), "{route:?}");
}

#[tokio::test]
async fn model_calls_need_the_permission_and_an_active_agent() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", None).await;
    for unknown in ["nobody", "NOT AN ID"] {
        let error = resolve(&service, unknown, Provider::OpenAi, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let stranger = service.trusted_user("eve").unwrap();
    let foreign = service
        .resolve_model_call(
            &stranger,
            Some(studio.id),
            "writer",
            &ModelRequest::new(Provider::OpenAi, "v1/responses"),
        )
        .await;
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::Forbidden);
    for (scope, allowed) in [(Scope::Read, false), (Scope::Write, true), (Scope::Admin, true)] {
        let new = NewApiKey {
            workspace_id: studio.id,
            name: "ci".into(),
            environment: Environment::Development,
            scope,
            expires_at: None,
            rate_limit: None,
        };
        let created = service.create_api_key(&ada(&service), new).await.unwrap();
        let caller = service.authenticate(&created.key).await.unwrap();
        let call = service
            .resolve_model_call(
                &caller,
                None,
                "writer",
                &ModelRequest::new(Provider::OpenAi, "v1/responses"),
            )
            .await;
        assert_eq!(call.is_ok(), allowed, "{scope}");
    }
    service
        .delete_agent(&ada(&service), Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap();
    let error = resolve(&service, "writer", Provider::OpenAi, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn the_list_shows_what_the_next_call_takes() {
    let (service, studio) = setup(true).await;
    let sources = async || {
        let models = service.list_models(&ada(&service), studio.id).await.unwrap();
        assert_eq!(models.len(), 7);
        let of = |provider| {
            let mut sources: Vec<_> = models
                .iter()
                .filter(|model| model.provider == provider)
                .map(|model| model.credential)
                .collect();
            sources.dedup();
            assert_eq!(sources.len(), 1);
            sources[0]
        };
        (of(Provider::Anthropic), of(Provider::OpenAi))
    };
    assert_eq!(sources().await, (Source::None, Source::Managed));
    for provider in Provider::ALL {
        service
            .save_provider_key(&ada(&service), studio.id, *provider, &credential(CANARY))
            .await
            .unwrap();
    }
    assert_eq!(sources().await, (Source::Workspace, Source::Workspace));
    set_plan(&service, studio.id, Plan::Free).await;
    assert_eq!(sources().await, (Source::None, Source::Managed));

    let models = service.list_models(&ada(&service), studio.id).await.unwrap();
    let soon: Vec<_> = models
        .iter()
        .filter(|model| model.status == ModelStatus::ComingSoon)
        .collect();
    assert_eq!((soon.len(), soon[0].provider), (1, Provider::OpenAi));
    assert_eq!(
        models
            .iter()
            .filter(|model| model.provider == Provider::Anthropic)
            .count(),
        3
    );
}

#[tokio::test]
async fn the_agents_model_is_not_held_against_a_request_that_has_no_place_for_it() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", Some("claude-haiku-5-5")).await;
    service
        .save_provider_key(&ada(&service), studio.id, Provider::OpenAi, &credential(CANARY))
        .await
        .unwrap();
    let form = ModelRequest {
        takes_agent_model: false,
        ..ModelRequest::new(Provider::OpenAi, "v1/files")
    };
    let call = service.resolve_model_call(&ada(&service), None, "writer", &form).await;
    assert_eq!(call.unwrap().model, None);
    let named = ModelRequest {
        model: Some("gpt-7"),
        ..form
    };
    let error = service.resolve_model_call(&ada(&service), None, "writer", &named).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn managed_credentials_pay_for_their_paths_alone() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", None).await;
    let call = async |path| {
        let request = ModelRequest::new(Provider::OpenAi, path);
        service
            .resolve_model_call(&ada(&service), None, "writer", &request)
            .await
            .map(|call| call.source)
    };
    for path in ["v1/chat/completions", "v1/responses", "v1/embeddings"] {
        assert_eq!(call(path).await.unwrap(), Source::Managed, "{path}");
    }
    for path in [
        "v1/files",
        "v1/responses/r1",
        "chat/completions",
        "V1/responses",
        "v1/batches",
    ] {
        let error = call(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{path}");
        assert!(
            error.message().contains(path) && error.message().contains("own key for openai"),
            "{error}"
        );
    }
    service
        .save_provider_key(&ada(&service), studio.id, Provider::OpenAi, &credential(CANARY))
        .await
        .unwrap();
    assert_eq!(call("v1/files").await.unwrap(), Source::Workspace);
    set_plan(&service, studio.id, Plan::Free).await;
    assert_eq!(call("v1/files").await.unwrap_err().kind(), ErrorKind::Forbidden);
}
