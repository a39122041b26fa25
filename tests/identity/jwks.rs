//! Tokens that are verified with the provider's public keys.

use std::time::Duration;

use base64ct::{Base64UrlUnpadded, Encoding};
use tokio::sync::watch;

use crate::http;
use crate::provider::Provider;
use crate::proxy::Proxy;
use crate::service::{Service, assert_unauthorized, assert_unavailable, jwks};

/// Waits until the service is ready, which must follow soon after the provider.
async fn until_ready(service: &Service) {
    let waiting = async {
        while sessions(service).await.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .expect("never ready");
}

/// What the readiness says of session tokens. The server itself is ready.
async fn sessions(service: &Service) -> Option<String> {
    let response = service.get("/readyz").await;
    assert_eq!(response.status(), 200);
    http::json(&response)["sessions"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn users_sign_in_with_the_provider() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    until_ready(&service).await;
    for (user, alg) in [("ada", "RS256"), ("grace", "ES256"), ("barbara", "EdDSA")] {
        let signed_in = provider.sign_in(user, Some(&format!("urn:agentcfg:{alg}"))).await;
        let members = service.members_of_a_new_workspace(&signed_in.access_token).await;
        assert_eq!(members[0]["user_id"], user);
        assert_eq!(
            http::json(&service.ask(&signed_in.access_token).await)
                .as_array()
                .unwrap()
                .len(),
            1
        );
        // The ID token is for the app, not for this service.
        assert_unauthorized(&service.ask(&signed_in.id_token).await, "an id token");
    }
    let elsewhere = provider.sign_in("ada", Some("urn:other:RS256")).await;
    assert_unauthorized(
        &service.ask(&elsewhere.access_token).await,
        "a token for another service",
    );
    let opaque = provider.sign_in("ada", None).await;
    assert_unauthorized(&service.ask(&opaque.access_token).await, "a token without a signature");
    service.stop().await;
}

#[tokio::test]
async fn the_keys_may_have_a_configured_url() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let mut config = jwks(&provider.issuer);
    config.oidc_jwks_url = Some(provider.url("/jwks").parse().unwrap());
    let service = Service::start(config).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    assert_eq!(service.status(&token).await, 200);
    assert_eq!(provider.hits("/.well-known/openid-configuration").await, 0);

    // A provider with the same keys and another issuer is a different provider.
    let mut config = jwks("https://id.example.com");
    config.oidc_jwks_url = Some(provider.url("/jwks").parse().unwrap());
    let other = Service::start(config).await;
    assert_unauthorized(&other.ask(&token).await, "another issuer");
    // A discovery document that names another issuer yields no keys.
    let misnamed = Service::start(jwks(&provider.issuer.replace("127.0.0.1", "localhost"))).await;
    assert_eq!(sessions(&misnamed).await.as_deref(), Some("unavailable"));
}

#[tokio::test]
async fn keys_are_refreshed_after_a_rotation() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    until_ready(&service).await;
    let port = provider.port;
    let old = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    assert_eq!(service.status(&old).await, 200);

    provider.stop().await;
    // The keys are cached, so tokens remain verifiable.
    assert_eq!(service.status(&old).await, 200);
    let provider = Provider::start_behind(port, "b", None).await.unwrap();
    let new = provider.sign_in("ada", Some("urn:agentcfg:ES256")).await.access_token;
    assert_eq!(service.status(&new).await, 200);
    assert_unauthorized(&service.ask(&old).await, "a key that is gone");

    // Invented key ids cause no further requests to the provider. The check of the readiness is one in ten seconds.
    for i in 0..50 {
        let header = format!(r#"{{"alg":"RS256","kid":"invented-{i}"}}"#);
        let claims = claims_of(&new);
        let token = provider.sign("RS256", &header, &claims).await;
        assert_unauthorized(&service.ask(&token).await, "an invented key id");
        assert_eq!(service.status(&new).await, 200);
    }
    assert!(provider.hits("/jwks").await < 10, "50 ids were invented");
    service.stop().await;
}

#[tokio::test]
async fn cached_keys_verify_tokens_while_the_provider_is_down() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    until_ready(&service).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:EdDSA")).await.access_token;
    let unknown = provider
        .sign("RS256", r#"{"alg":"RS256","kid":"new"}"#, &claims_of(&token))
        .await;
    provider.stop().await;
    for _ in 0..3 {
        assert_eq!(service.status(&token).await, 200);
        // A new key may have signed it, which cannot be checked now.
        assert_unavailable(&service.ask(&unknown).await, "an unknown key");
    }
    assert_eq!(sessions(&service).await.as_deref(), Some("unavailable"));
}

#[tokio::test]
async fn the_start_does_not_wait_for_the_provider() {
    let (target, later) = watch::channel(0);
    let proxy = Proxy::start(later).await;
    proxy.stall();
    let service = Service::start(jwks(&format!("http://127.0.0.1:{}", proxy.port))).await;
    assert_eq!(service.get("/healthz").await.status(), 200);
    assert_eq!(sessions(&service).await.as_deref(), Some("unavailable"));
    // Malformed tokens are refused without the keys, and API keys need no provider.
    assert_unauthorized(&service.ask("nonsense").await, "garbage");
    assert_unauthorized(&service.ask("svc_live_nonsense").await, "no key");

    let Some(provider) = Provider::start_behind(0, "a", Some(proxy.port)).await else {
        return;
    };
    target.send_replace(provider.port);
    proxy.resume();
    until_ready(&service).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    assert_eq!(service.status(&token).await, 200);
    service.stop().await;
}

#[tokio::test]
async fn without_the_provider_tokens_get_503() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let (port, issuer) = (provider.port, provider.issuer.clone());
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    provider.stop().await;
    let service = Service::start(jwks(&issuer)).await;
    assert_unavailable(&service.ask(&token).await, "no provider yet");
    assert_eq!(sessions(&service).await.as_deref(), Some("unavailable"));
    let provider = Provider::start_behind(port, "b", None).await.unwrap();
    until_ready(&service).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    assert_eq!(service.status(&token).await, 200);
}

/// The claims of a token, as text.
pub fn claims_of(token: &str) -> String {
    part_of(token, 1)
}

/// The header of a token, as text.
pub fn header_of(token: &str) -> String {
    part_of(token, 0)
}

fn part_of(token: &str, number: usize) -> String {
    let part = token.split('.').nth(number).unwrap();
    let part = Base64UrlUnpadded::decode_vec(part).unwrap();
    String::from_utf8(part).unwrap()
}
