//! Browsers: cookies for tokens of the provider, and sign-in by authorization code.

use agentcfg_server::process::{Config, Secret};
use bytes::Bytes;
use hyper::{Request, Response};

use crate::http;
use crate::provider::Provider;
use crate::service::{Service, introspection, jwks};

const RESOURCE: &str = "urn:agentcfg:ES256";

/// Settings of a dashboard that is this client, with an access token for this service.
fn dashboard(provider: &Provider) -> Config {
    Config {
        oidc_client_id: Some("dashboard".to_owned()),
        oidc_scope: "openid api".to_owned(),
        oidc_resource: Some(RESOURCE.to_owned()),
        ..jwks(&provider.issuer)
    }
}

fn field<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    let field = response.headers().get(name).unwrap_or_else(|| panic!("{response:?}"));
    field.to_str().unwrap()
}

/// The cookies that an answer sets, without those that it removes.
fn cookies(response: &Response<Bytes>) -> Vec<String> {
    let fields = response.headers().get_all("set-cookie").iter();
    let fields = fields
        .map(|field| field.to_str().unwrap())
        .filter(|field| !field.contains("Max-Age=0"));
    fields
        .map(|field| field.split(';').next().unwrap().to_owned())
        .collect()
}

/// Begins a sign-in, and returns the cookie and the address that the provider sends the browser back to.
async fn begin(service: &Service, provider: &Provider, user: &str) -> (String, String) {
    let begun = service.get("/ui/sign-in").await;
    assert_eq!(begun.status(), 303, "{begun:?}");
    let set = field(&begun, "set-cookie");
    for attribute in ["; HttpOnly", "; SameSite=Lax", "; Max-Age=600"] {
        assert!(set.contains(attribute), "{set}");
    }
    assert_eq!(field(&begun, "cache-control"), "no-store");
    let location = field(&begun, "location");
    for part in [
        "response_type=code",
        "code_challenge_method=S256",
        "state=",
        "nonce=",
        "code_challenge=",
    ] {
        assert!(location.contains(part), "{location}");
    }
    let back = provider
        .follow_to_callback(&format!("{location}&login_hint={user}"))
        .await;
    (cookies(&begun).remove(0), back)
}

async fn callback(back: &str, cookie: &str) -> Response<Bytes> {
    http::send(Request::get(back).header("cookie", cookie), "").await
}

#[tokio::test]
async fn a_user_signs_in_by_code() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    for config in [
        dashboard(&provider),
        Config {
            oidc_client_id: Some("dashboard with secret".to_owned()),
            oidc_client_secret: Some(Secret::new("d:e&c/r%t+")),
            ..dashboard(&provider)
        },
        // The ID token is the session token, where it is for this service.
        Config {
            oidc_client_id: Some("dashboard".to_owned()),
            oidc_audience: Some("dashboard".to_owned()),
            ..jwks(&provider.issuer)
        },
    ] {
        let service = Service::start(config).await;
        let (cookie, back) = begin(&service, &provider, "ada").await;
        let page = callback(&back, &cookie).await;
        assert_eq!(page.status(), 200, "{page:?}");
        assert!(field(&page, "content-security-policy").contains("default-src 'none'"));
        let text = String::from_utf8_lossy(page.body());
        assert!(
            text.contains("http-equiv=\"refresh\"") && !text.contains("<script"),
            "{text}"
        );
        let session = cookies(&page).remove(0);
        let me = service.whoami(&session).await;
        assert_eq!(me.status(), 200, "{me:?}");
        assert_eq!(http::json(&me)["id"], "ada");
        // The code was used, and the provider refuses it.
        let again = callback(&back, &cookie).await;
        assert_eq!(again.status(), 401, "{again:?}");
        assert!(cookies(&again).is_empty());
        service.stop().await;
    }
}

#[tokio::test]
async fn a_callback_works_in_its_own_browser_alone() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(dashboard(&provider)).await;
    let (cookie, back) = begin(&service, &provider, "ada").await;
    let (other, other_back) = begin(&service, &provider, "mallory").await;
    let elsewhere = back.replace("state=", "state=x");
    for (address, cookie) in [
        (&back, &other),
        (&other_back, &cookie),
        (&elsewhere, &cookie),
        (&back, &String::new()),
    ] {
        let refused = callback(address, cookie).await;
        assert_eq!(refused.status(), 400, "{refused:?}");
        assert!(cookies(&refused).is_empty());
    }
    assert!(back.contains("iss="), "the provider names itself: {back}");
    let (head, tail) = back.split_once("iss=").unwrap();
    let after = tail.split_once('&').map_or("", |(_, after)| after);
    let mixed_up = callback(&format!("{head}iss=https%3A%2F%2Fother.example&{after}"), &cookie).await;
    assert_eq!(mixed_up.status(), 401, "{mixed_up:?}");
    assert!(cookies(&mixed_up).is_empty());
    let state = back.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let denied = service.url(&format!(
        "/ui/callback?state={state}&error=access_denied&error_description=%3Cb%3E"
    ));
    let refused = callback(&denied, &cookie).await;
    assert_eq!(refused.status(), 401, "{refused:?}");
    assert!(!String::from_utf8_lossy(refused.body()).contains("<b>"));
    assert_eq!(callback(&back, &cookie).await.status(), 200);
    service.stop().await;
}

#[tokio::test]
async fn an_id_token_of_another_sign_in_is_refused() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(dashboard(&provider)).await;
    let (cookie, back) = begin(&service, &provider, "ada").await;
    let parts: Vec<&str> = cookie.rsplit('=').next().unwrap().split('.').collect();
    let other_nonce = cookie.replace(parts[1], &"x".repeat(43));
    let refused = callback(&back, &other_nonce).await;
    assert_eq!(refused.status(), 401, "{refused:?}");
    let (cookie, back) = begin(&service, &provider, "ada").await;
    let parts: Vec<&str> = cookie.rsplit('=').next().unwrap().split('.').collect();
    let other_verifier = cookie.replace(parts[2], &"x".repeat(43));
    assert_eq!(callback(&back, &other_verifier).await.status(), 401);
    service.stop().await;
}

#[tokio::test]
async fn without_a_client_the_page_shows_its_own_sign_in() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    assert_eq!(service.get("/ui/sign-in").await.status(), 200);
    service.stop().await;
    let gone = Config {
        oidc_issuer: Some("http://127.0.0.1:1".to_owned()),
        ..dashboard(&provider)
    };
    let service = Service::start(gone).await;
    assert_eq!(service.get("/ui/sign-in").await.status(), 502);
    service.stop().await;
}

#[tokio::test]
async fn a_cookie_for_a_published_key_ends_with_the_token() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(jwks(&provider.issuer)).await;
    let token = provider.sign_in("ada", Some(RESOURCE)).await.access_token;
    let cookie = service.cookie(&token).await;
    let me = http::json(&service.whoami(&cookie).await);
    let bearer = Request::get(service.url("/api/whoami")).header("authorization", format!("Bearer {token}"));
    let by_token = http::json(&http::send(bearer, "").await);
    assert_eq!(
        (&me["id"], &me["expires_at"]),
        (&by_token["id"], &by_token["expires_at"])
    );
    service.stop().await;
}

#[tokio::test]
async fn with_introspection_each_request_asks_about_the_sealed_token() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(introspection(&provider.url(""))).await;
    let token = provider.sign_in("ada", None).await.access_token;
    let cookie = service.cookie(&token).await;
    let before = provider.hits("/token/introspection").await;
    for _ in 0..3 {
        assert_eq!(service.whoami(&cookie).await.status(), 200);
    }
    assert_eq!(provider.hits("/token/introspection").await, before + 3);
    assert!(!service.data_contains(token.as_bytes()), "the token is on disk");
    provider.revoke(&token).await;
    assert_eq!(service.whoami(&cookie).await.status(), 401);
    provider.stop().await;
    assert_eq!(service.whoami(&cookie).await.status(), 503);
    service.stop().await;
}

/// Asks who is behind a cookie, by requests one after the other, until the answer or the provider is as wanted.
/// Meanwhile it is 200.
async fn until(service: &Service, cookie: &str, is_done: impl AsyncFn(u16) -> bool) {
    loop {
        let status = service.whoami(cookie).await.status().as_u16();
        if is_done(status).await {
            return;
        }
        assert_eq!(status, 200);
    }
}

#[tokio::test]
async fn a_refresh_token_renews_the_session() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let config = Config {
        oidc_client_id: Some("short".to_owned()),
        ..dashboard(&provider)
    };
    let service = Service::start(config).await;
    let (cookie, back) = begin(&service, &provider, "ada").await;
    let page = callback(&back, &cookie).await;
    assert_eq!(page.status(), 200, "{page:?}");
    let age = page.headers().get_all("set-cookie").iter();
    let mut age = age.filter_map(|field| field.to_str().unwrap().split_once("Max-Age="));
    assert!(age.any(|(_, age)| age.starts_with("86400")), "{page:?}");
    let session = cookies(&page).remove(0);
    // The provider takes each refresh token once, so that several renewals show that the next one is kept.
    let first = provider.hits("/token").await;
    until(&service, &session, async |_| provider.hits("/token").await >= first + 3).await;
    assert_eq!(http::json(&service.whoami(&session).await)["id"], "ada");

    let token = provider.sign_in("ada", Some(RESOURCE)).await.access_token;
    provider.stop().await;
    until(&service, &session, async |status| status == 503).await;
    // The keys of the provider are known, so that its tokens still work.
    assert_eq!(service.status(&token).await, 200);
    service.stop().await;
}

#[tokio::test]
async fn members_are_shown_with_the_names_of_their_id_tokens() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let service = Service::start(dashboard(&provider)).await;
    let token = provider.sign_in("ada", Some(RESOURCE)).await.access_token;
    let studio = service.workspace(&token).await;
    let path = format!("/api/workspaces/members?workspace_id={studio}");
    let member = async || service.json(&path, &token).await[0].clone();
    assert_eq!(member().await["name"], serde_json::Value::Null);
    let (cookie, back) = begin(&service, &provider, "ada").await;
    assert_eq!(callback(&back, &cookie).await.status(), 200);
    let shown = member().await;
    assert_eq!(
        (&shown["name"], &shown["email"]),
        (&"Name of ada".into(), &"ada@example.com".into())
    );
    // The access token has none of these claims.
    service.cookie(&token).await;
    let shown = member().await;
    assert_eq!(shown.as_object().unwrap().len(), 3, "{shown}");
    service.stop().await;
}
