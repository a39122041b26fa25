use super::*;
use crate::ErrorKind;
use crate::model::{
    CredentialSource as Source, Definition, Environment, ModelStatus, NewApiKey, Precondition, ProviderApi, Scope,
};
use crate::routing::{Catalogue, CatalogueModel, CatalogueProvider, ManagedModels};

async fn setup(managed: bool) -> (AgentCfg, Workspace) {
    let mut builder = builder(memory()).vault(vault(&[1]));
    if managed {
        builder = builder.managed_credential(Provider::OPENAI, credential("sk-managed"));
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

    let call = resolve(&service, "writer", Provider::OPENAI, None).await.unwrap();
    assert_eq!(call.first.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(call.persona_prompt.as_deref(), Some("You write short sentences."));
    assert_eq!(&*call.first.base_url, "https://api.openai.com");
    assert_eq!(call.first.source, Source::Managed);

    let call = resolve(&service, "writer", Provider::OPENAI, Some("gpt-6-sol"))
        .await
        .unwrap();
    assert_eq!(call.first.model, None, "there is nothing to fill in");
    for model in [None, Some("ft:gpt-5.5:mine")] {
        let call = resolve(&service, "blank", Provider::OPENAI, model).await;
        assert_eq!(
            call.unwrap_err().kind(),
            ErrorKind::Forbidden,
            "managed access pays for the catalogue alone"
        );
    }
    let key = credential(CANARY);
    service
        .save_provider_key(&ada(&service), studio.id, Provider::OPENAI, &key)
        .await
        .unwrap();
    let call = resolve(&service, "blank", Provider::OPENAI, None).await.unwrap();
    assert_eq!(call.first.model, None);
    let call = resolve(&service, "blank", Provider::OPENAI, Some("ft:gpt-5.5:mine")).await;
    assert!(call.is_ok(), "models that the catalogue does not know pass");
    let call = resolve(&service, "writer", Provider::OPENAI, Some("gpt-5.5")).await;
    assert!(call.is_ok());
}

#[tokio::test]
async fn a_model_that_cannot_be_called_here_is_invalid_before_the_credential_is_looked_at() {
    let (service, studio) = setup(false).await;
    agent(&service, studio.id, "writer", Some("gpt-5.5")).await;
    agent(&service, studio.id, "early", Some("gpt-7")).await;
    for (agent_id, provider, model, words) in [
        ("early", Provider::OPENAI, None, "coming soon"),
        ("writer", Provider::OPENAI, Some("gpt-7"), "coming soon"),
        ("writer", Provider::ANTHROPIC, None, "is one of openai"),
        (
            "writer",
            Provider::OPENAI,
            Some("claude-haiku-5-5"),
            "is one of anthropic",
        ),
    ] {
        let error = resolve(&service, agent_id, provider, model).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    let error = resolve(&service, "early", Provider::OPENAI, Some("gpt-5.5"))
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
    let error = next(&service, studio.id, Provider::OPENAI).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConfigured);
    assert!(error.message().contains("has saved no key for openai"), "{error}");
    assert!(error.message().contains("no managed access"), "{error}");
}

#[tokio::test]
async fn model_calls_need_the_permission_and_an_active_agent() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", Some("gpt-5.5")).await;
    for unknown in ["nobody", "NOT AN ID"] {
        let error = resolve(&service, unknown, Provider::OPENAI, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let stranger = service.trusted_user("eve").unwrap();
    let foreign = service
        .resolve_model_call(
            &stranger,
            Some(studio.id),
            "writer",
            &ModelRequest::new(Provider::OPENAI, "v1/responses"),
        )
        .await;
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::Forbidden);
    for (scope, allowed) in [(Scope::Read, false), (Scope::Write, true), (Scope::Admin, true)] {
        let new = NewApiKey::new(studio.id, "ci", Environment::Development, scope);
        let created = service.create_api_key(&ada(&service), new).await.unwrap();
        let caller = service.authenticate(&created.key).await.unwrap();
        let call = service
            .resolve_model_call(
                &caller,
                None,
                "writer",
                &ModelRequest::new(Provider::OPENAI, "v1/responses"),
            )
            .await;
        assert_eq!(call.is_ok(), allowed, "{scope}");
    }
    service
        .delete_agent(&ada(&service), Some(studio.id), "writer", &Precondition::None)
        .await
        .unwrap();
    let error = resolve(&service, "writer", Provider::OPENAI, None).await.unwrap_err();
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
        (of(Provider::ANTHROPIC), of(Provider::OPENAI))
    };
    assert_eq!(sources().await, (Source::None, Source::Managed));
    for provider in [Provider::ANTHROPIC, Provider::OPENAI] {
        service
            .save_provider_key(&ada(&service), studio.id, provider, &credential(CANARY))
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
    assert_eq!((soon.len(), soon[0].provider), (1, Provider::OPENAI));
    assert_eq!(
        models
            .iter()
            .filter(|model| model.provider == Provider::ANTHROPIC)
            .count(),
        3
    );
}

#[tokio::test]
async fn the_agents_model_is_not_held_against_a_request_that_has_no_place_for_it() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", Some("claude-haiku-5-5")).await;
    service
        .save_provider_key(&ada(&service), studio.id, Provider::OPENAI, &credential(CANARY))
        .await
        .unwrap();
    let form = ModelRequest {
        takes_agent_model: false,
        ..ModelRequest::new(Provider::OPENAI, "v1/files")
    };
    let call = service.resolve_model_call(&ada(&service), None, "writer", &form).await;
    assert_eq!(call.unwrap().first.model, None);
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
    agent(&service, studio.id, "writer", Some("gpt-5.5")).await;
    let call = async |path| {
        let request = ModelRequest::new(Provider::OPENAI, path);
        service
            .resolve_model_call(&ada(&service), None, "writer", &request)
            .await
            .map(|call| call.first.source)
    };
    for path in [
        "v1/chat/completions",
        "chat/completions",
        "v1/responses",
        "v1/embeddings",
    ] {
        assert_eq!(call(path).await.unwrap(), Source::Managed, "{path}");
    }
    for path in ["v1/files", "v1/responses/r1", "V1/responses", "v1/batches"] {
        let error = call(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{path}");
        assert!(
            error.message().contains(path) && error.message().contains("own key for openai"),
            "{error}"
        );
    }
    service
        .save_provider_key(&ada(&service), studio.id, Provider::OPENAI, &credential(CANARY))
        .await
        .unwrap();
    assert_eq!(call("v1/files").await.unwrap(), Source::Workspace);
    set_plan(&service, studio.id, Plan::Free).await;
    assert_eq!(call("v1/files").await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn managed_credentials_pay_for_posts_of_known_models() {
    let (service, studio) = setup(true).await;
    agent(&service, studio.id, "writer", None).await;
    let call = async |request: ModelRequest<'_>| {
        let call = service
            .resolve_model_call(&ada(&service), None, "writer", &request)
            .await;
        call.map(|call| call.first.source)
    };
    let of = |model| ModelRequest::new(Provider::OPENAI, "v1/embeddings").model(model);
    assert_eq!(call(of(Some("text-embedding-3-small"))).await.unwrap(), Source::Managed);
    for (request, words) in [
        (of(Some("o3-pro-expensive")), "\"o3-pro-expensive\" needs"),
        (of(None), "names no model"),
        (of(Some("gpt-5.5")).is_post(false), "other methods than POST"),
    ] {
        let error = call(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
        assert!(
            error.message().contains(words) && error.message().contains("has saved no key"),
            "{error}"
        );
    }
    let service = builder(memory())
        .vault(vault(&[1]))
        .managed_credential(Provider::OPENAI, credential("sk-managed"))
        .catalogue(Catalogue::default().with_managed_models(ManagedModels::Any))
        .build();
    let studio = workspace(&service).await;
    agent(&service, studio.id, "writer", None).await;
    let any = resolve(&service, "writer", Provider::OPENAI, Some("o3-pro-expensive")).await;
    assert_eq!(any.unwrap().first.source, Source::Managed);
}

/// A service with a second provider of OpenAI's API, `vllm`, that has two models.
async fn with_vllm(managed: &[Provider]) -> (AgentCfg, Workspace, Provider) {
    let vllm: Provider = "vllm".parse().unwrap();
    let provider = CatalogueProvider::new(vllm, ProviderApi::OpenAi, "http://10.0.0.7:8000/v1").unwrap();
    let catalogue = Catalogue::default().with_provider(provider).unwrap();
    let mut models = catalogue.models().to_vec();
    for id in ["llama-9", "qwen-9"] {
        models.push(CatalogueModel::new(id, vllm));
    }
    let catalogue = catalogue.with_models(models).unwrap();
    let mut builder = builder(memory()).vault(vault(&[1])).catalogue(catalogue);
    for provider in managed.iter().chain([&vllm]) {
        builder = builder.managed_credential(*provider, credential(&format!("sk-{provider}")));
    }
    let service = builder.build();
    let studio = workspace(&service).await;
    (service, studio, vllm)
}

#[tokio::test]
async fn the_agents_model_goes_to_the_provider_that_has_it() {
    let (service, studio, vllm) = with_vllm(&[]).await;
    agent(&service, studio.id, "writer", Some("llama-9")).await;
    let call = resolve(&service, "writer", Provider::OPENAI, None).await.unwrap();
    assert_eq!(
        (call.first.provider, &*call.first.base_url),
        (vllm, "http://10.0.0.7:8000/v1")
    );
    assert_eq!(call.first.credential.expose(), "sk-vllm");
    let call = resolve(&service, "writer", vllm, Some("qwen-9")).await.unwrap();
    assert_eq!((call.first.provider, call.first.model), (vllm, None));
    for (provider, model, words) in [
        (
            Provider::OPENAI,
            Some("llama-9"),
            "is one of vllm, this call goes to openai",
        ),
        (vllm, Some("gpt-5.5"), "is one of openai"),
        (Provider::ANTHROPIC, None, "does not speak the API of this path"),
    ] {
        let error = resolve(&service, "writer", provider, model).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(words), "{error}");
    }
    let unknown = resolve(&service, "writer", "acme".parse().unwrap(), None)
        .await
        .unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.message().contains("anthropic, openai, vllm"), "{unknown}");
}

#[tokio::test]
async fn fallbacks_are_models_that_can_be_called_instead() {
    let (service, studio, vllm) = with_vllm(&[Provider::OPENAI]).await;
    let create = async |agent_id: &str, model: &str, fallbacks: &str| {
        let mut new = NewAgent::new(studio.id, agent_id.parse().unwrap(), agent_id);
        new.model = Some(model.to_owned());
        let definition = format!(r#"{{"fallback_models": {fallbacks}}}"#);
        new.definition = Some(Definition::from_json(definition.as_bytes()).unwrap());
        service.create_agent(&ada(&service), new).await.unwrap();
    };
    let five = r#"["claude-haiku-5-5", "gpt-5.5", "llama-9", "gpt-5.4-mini", "qwen-9"]"#;
    create("writer", "gpt-5.5", five).await;
    let names = |call: &crate::service::ModelCall| -> Vec<String> {
        let attempts = call.attempts();
        attempts
            .map(|attempt| format!("{} {}", attempt.provider, attempt.model.as_deref().unwrap_or("-")))
            .collect()
    };
    let call = resolve(&service, "writer", Provider::OPENAI, None).await.unwrap();
    // Neither a model of another API, nor the same model again. Who sends the call asks three at most.
    assert_eq!(
        names(&call),
        ["openai gpt-5.5", "vllm llama-9", "openai gpt-5.4-mini", "vllm qwen-9"]
    );
    let named = resolve(&service, "writer", Provider::OPENAI, Some("gpt-6-sol"))
        .await
        .unwrap();
    assert_eq!(names(&named), ["openai -"], "a named model is not replaced");

    // What has no credential is passed over and does not count.
    let (service, studio, _) = with_vllm(&[]).await;
    let mut new = NewAgent::new(studio.id, "local".parse().unwrap(), "local");
    new.model = Some("llama-9".into());
    new.definition = Some(Definition::from_json(br#"{"fallback_models": ["gpt-5.5", "gpt-7", "qwen-9"]}"#).unwrap());
    service.create_agent(&ada(&service), new).await.unwrap();
    let call = resolve(&service, "local", vllm, None).await.unwrap();
    assert_eq!(names(&call), ["vllm llama-9", "vllm qwen-9"]);
}

/// A gateway may choose of a list of models, whether the caller sends it or the agent's settings have it.
#[tokio::test]
async fn managed_credentials_pay_for_no_list_of_models_in_the_settings() {
    let (service, studio) = setup(true).await;
    let settings = [
        ("lists", r#"{"models": ["gpt-7-max"]}"#),
        ("escapes", r#"{"mod\u0065ls": []}"#),
        ("null", r#"{"models": null}"#),
        ("other", r#"{"modalities": ["text"]}"#),
    ];
    for (agent_id, settings) in settings {
        let mut new = NewAgent::new(studio.id, agent_id.parse().unwrap(), agent_id);
        new.model = Some("gpt-5.5".to_owned());
        let definition = format!(r#"{{"model_settings": {settings}}}"#);
        new.definition = Some(Definition::from_json(definition.as_bytes()).unwrap());
        service.create_agent(&ada(&service), new).await.unwrap();
    }
    for agent_id in ["lists", "escapes"] {
        for model in [None, Some("gpt-5.5")] {
            let error = resolve(&service, agent_id, Provider::OPENAI, model).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden, "{agent_id}");
            assert!(error.message().contains("a list of models"), "{error}");
        }
    }
    for agent_id in ["null", "other"] {
        resolve(&service, agent_id, Provider::OPENAI, None).await.unwrap();
    }
    // A call to which the settings add no list is paid for.
    let request = ModelRequest::new(Provider::OPENAI, "v1/responses").takes_list_of_models(false);
    let call = service
        .resolve_model_call(&ada(&service), None, "lists", &request)
        .await;
    assert_eq!(call.unwrap().first.source, Source::Managed);
    let (ada, key) = (ada(&service), credential(CANARY));
    let saved = service.save_provider_key(&ada, studio.id, Provider::OPENAI, &key);
    saved.await.unwrap();
    resolve(&service, "lists", Provider::OPENAI, None).await.unwrap();
}
