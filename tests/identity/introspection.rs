//! Tokens that the provider validates on every request.

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_server::process::{Config, Secret};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::provider::Provider;
use crate::proxy::Proxy;
use crate::service::{Service, assert_unauthorized, assert_unavailable, introspection, user_info};

type Configure = fn(&str) -> Config;

/// The two ways of validation, and the endpoint of the provider that each uses.
const METHODS: [(Configure, &str); 2] = [(introspection, "/token/introspection"), (user_info, "/me")];

#[tokio::test]
async fn the_provider_decides_on_each_call() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    for (config, path) in METHODS {
        let service = Service::start(config(&provider.issuer)).await;
        assert_eq!(service.get("/readyz").await.status(), 200);
        let ada = provider.sign_in("ada", None).await.access_token;
        let grace = provider.sign_in("grace", None).await.access_token;
        assert_eq!(service.members_of_a_new_workspace(&ada).await[0]["user_id"], "ada");
        assert_eq!(service.status(&grace).await, 200);

        let before = provider.hits(path).await;
        for _ in 0..5 {
            assert_eq!(service.status(&ada).await, 200);
        }
        // The check of the readiness asks too.
        assert!(provider.hits(path).await >= before + 5);

        provider.revoke(&ada).await;
        assert_unauthorized(&service.ask(&ada).await, "revoked");
        assert_eq!(service.status(&grace).await, 200);

        let signed = provider.sign_in("ada", None).await.id_token;
        for nonsense in ["nonsense", "a.b.c", &signed, &"x".repeat(8000)] {
            assert_unauthorized(&service.ask(nonsense).await, nonsense);
        }
        // The provider sees neither API keys nor text that cannot be one of its tokens.
        let before = provider.hits(path).await;
        assert_unauthorized(&service.ask("svc_live_nonsense").await, "no key");
        assert_unauthorized(&service.ask("two words").await, "two words");
        assert_eq!(provider.hits(path).await, before);
        service.stop().await;
    }
}

#[tokio::test]
async fn wrong_client_credentials_refuse_every_token() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let mut config = introspection(&provider.issuer);
    config.introspection_client_secret = Some(Secret::new("wrong"));
    let service = Service::start(config).await;
    let token = provider.sign_in("ada", None).await.access_token;
    assert_unauthorized(&service.ask(&token).await, "a client that is refused");
}

#[tokio::test]
async fn without_the_provider_tokens_get_503() {
    for (config, _) in METHODS {
        let Some(provider) = Provider::start("a").await else {
            return;
        };
        let service = Service::start(config(&provider.issuer)).await;
        let token = provider.sign_in("ada", None).await.access_token;
        assert_eq!(service.status(&token).await, 200);
        let port = provider.port;
        provider.stop().await;
        for _ in 0..3 {
            assert_unavailable(&service.ask(&token).await, "the provider is down");
        }
        // The provider restarts without its state, and its decisions count at once.
        let provider = Provider::start_behind(port, "b", None).await.unwrap();
        assert_unauthorized(&service.ask(&token).await, "a token from before the restart");
        let token = provider.sign_in("ada", None).await.access_token;
        assert_eq!(service.status(&token).await, 200);
    }
}

#[tokio::test]
async fn a_stalled_provider_gives_503_after_two_seconds() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    for (config, path) in METHODS {
        let (_target, port) = watch::channel(provider.port);
        let proxy = Proxy::start(port).await;
        let service = Service::start(config(&format!("http://127.0.0.1:{}", proxy.port))).await;
        let token = provider.sign_in("ada", None).await.access_token;
        let before = provider.hits(path).await;
        for _ in 0..20 {
            assert_eq!(service.status(&token).await, 200);
        }
        assert_eq!(proxy.connections(), 1, "connections are kept");
        assert_eq!(provider.hits(path).await, before + 20);

        proxy.stall();
        let started = SystemClock.now().unix_millis();
        let service = std::sync::Arc::new(service);
        let mut asking = JoinSet::new();
        for _ in 0..100 {
            let (service, token) = (std::sync::Arc::clone(&service), token.clone());
            asking.spawn(async move { service.ask(&token).await });
        }
        while let Some(response) = asking.join_next().await {
            assert_unavailable(&response.unwrap(), "a stalled provider");
        }
        let took = SystemClock.now().unix_millis() - started;
        assert!((2000..6000).contains(&took), "{took} ms");
        assert_eq!(service.get("/healthz").await.status(), 200);
        proxy.resume();
        assert_eq!(service.status(&token).await, 200);
    }
}
