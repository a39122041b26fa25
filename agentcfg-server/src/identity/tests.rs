use std::sync::atomic::Ordering;

use agentcfg_core::session::{FetchJwks, MAX_TOKEN_BYTES, SessionError};
use hyper::Uri;
use tokio::task::JoinSet;

use super::*;
use crate::outbound::stub::{Stub, answer};
use crate::secret::Secret;

fn outbound() -> Outbound {
    Outbound::new(&Options::default()).unwrap()
}

fn introspection(stub: &Stub) -> RemoteVerifier {
    let check = RemoteCheck::Introspection {
        url: stub.url("/introspect").parse().unwrap(),
        authorization: basic("our id", &Secret::new("s:e&c/ré t")),
        issuer: None,
        audience: Some("api".to_owned()),
    };
    RemoteVerifier::new(outbound(), check)
}

fn user_url(stub: &Stub) -> RemoteVerifier {
    let check = RemoteCheck::User {
        url: stub.url("/auth/v1/user").parse().unwrap(),
        apikey: sensitive("anon-key"),
    };
    RemoteVerifier::new(outbound(), check)
}

async fn verify(provider: &RemoteVerifier, token: &str) -> Result<String, SessionError> {
    let session = provider.verify(token, SystemClock.now()).await?;
    Ok(session.user_id)
}

#[tokio::test]
async fn introspection_asks_as_the_client_on_each_call() {
    let stub = Stub::new(|_| answer(200, r#"{"active": true, "sub": "ada"}"#)).await;
    let provider = introspection(&stub);
    for _ in 0..3 {
        assert_eq!(verify(&provider, "a+b/c=&token=x").await.unwrap(), "ada");
    }
    assert_eq!(stub.connections.load(Ordering::SeqCst), 1);
    let seen = stub.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(
        (seen[0].method.as_str(), seen[0].target.as_str()),
        ("POST", "/introspect")
    );
    assert_eq!(
        seen[0].body,
        "token=a%2Bb%2Fc%3D%26token%3Dx&token_type_hint=access_token"
    );
    assert_eq!(
        seen[0].header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(seen[0].header("accept"), Some("application/json"));
    // our+id:s%3Ae%26c%2Fr%C3%A9+t
    let expected = "Basic b3VyK2lkOnMlM0FlJTI2YyUyRnIlQzMlQTkrdA==";
    assert_eq!(seen[0].header("authorization"), Some(expected));
    stub.answers(|_| answer(200, r#"{"active": false}"#));
    assert!(matches!(verify(&provider, "t").await, Err(SessionError::Invalid(_))));
}

#[tokio::test]
async fn a_user_url_is_asked_as_the_caller() {
    let stub = Stub::new(|_| answer(200, r#"{"id": "ada", "aud": "authenticated"}"#)).await;
    assert_eq!(verify(&user_url(&stub), "1|opaque").await.unwrap(), "ada");
    let seen = &stub.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("GET", "/auth/v1/user"));
    assert_eq!(seen.header("authorization"), Some("Bearer 1|opaque"));
    assert_eq!(seen.header("apikey"), Some("anon-key"));
    assert_eq!(seen.body, "");
}

#[tokio::test]
async fn every_answer_has_one_meaning_and_doubt_is_never_a_yes() {
    let stub = Stub::new(|_| answer(200, "")).await;
    let good = r#"{"active": true, "sub": "ada"}"#;
    for provider in [introspection(&stub), user_url(&stub)] {
        for status in [400, 401, 403] {
            stub.answers(move |_| answer(status, good));
            let said = verify(&provider, "t").await;
            assert!(matches!(said, Err(SessionError::Invalid(_))), "{status}: {said:?}");
        }
        for status in [
            201, 202, 204, 301, 302, 307, 404, 405, 407, 408, 410, 418, 429, 500, 502, 503, 504,
        ] {
            stub.answers(move |_| answer(status, good));
            let said = verify(&provider, "t").await;
            assert!(matches!(said, Err(SessionError::Unavailable(_))), "{status}: {said:?}");
        }
        let long = format!(r#"{{"active": true, "sub": "ada", "x": "{}"}}"#, "x".repeat(70_000));
        for body in [
            "",
            "null",
            "yes",
            "<html></html>",
            "{}",
            r#"{"active": true}"#,
            r#"{"sub": 1}"#,
            &long,
        ] {
            let body = body.to_owned();
            stub.answers(move |_| answer(200, &body));
            let said = verify(&provider, "t").await;
            assert!(matches!(said, Err(SessionError::Unavailable(_))), "{said:?}");
        }
        stub.answers(move |_| answer(200, good));
        assert!(verify(&provider, "t").await.is_ok());
    }
}

#[tokio::test]
async fn malformed_tokens_are_refused_without_a_question() {
    let stub = Stub::new(|_| answer(200, r#"{"active": true, "sub": "ada"}"#)).await;
    let long = "a".repeat(MAX_TOKEN_BYTES + 1);
    for provider in [introspection(&stub), user_url(&stub)] {
        for token in ["a b", "a\tb", "a\r\nx: y", "\u{e9}", "a\u{0}", &long] {
            let said = verify(&provider, token).await;
            assert!(matches!(said, Err(SessionError::Invalid(_))), "{token:?}");
        }
    }
    assert!(stub.seen().is_empty());
}

#[tokio::test]
async fn a_refused_connection_is_an_error() {
    let stub = Stub::new(|_| answer(200, "")).await;
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let check = RemoteCheck::User {
        url: format!("http://{gone}/user").parse().unwrap(),
        apikey: None,
    };
    let said = verify(&RemoteVerifier::new(outbound(), check), "t").await;
    assert!(matches!(said, Err(SessionError::Unavailable(_))), "{said:?}");
    assert!(stub.seen().is_empty());
}

fn ask_often(provider: &Arc<RemoteVerifier>) -> JoinSet<Result<String, SessionError>> {
    let mut asking = JoinSet::new();
    for _ in 0..200 {
        let provider = Arc::clone(provider);
        asking.spawn(async move { verify(&provider, "t").await });
    }
    asking
}

#[tokio::test]
async fn questions_wait_for_their_turn() {
    let stub = Stub::new(|_| answer(200, r#"{"active": true, "sub": "ada"}"#)).await;
    stub.leave.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    let asking = ask_often(&Arc::new(introspection(&stub)));
    while stub.seen().len() < 64 {
        tokio::task::yield_now().await;
    }
    stub.leave.add_permits(1000);
    for said in asking.join_all().await {
        assert_eq!(said.unwrap(), "ada");
    }
    assert_eq!(stub.seen().len(), 200);
    assert_eq!(stub.peak.load(Ordering::SeqCst), 64);
    assert_eq!(stub.connections.load(Ordering::SeqCst), 64);
}

#[tokio::test]
async fn a_question_times_out_after_two_seconds_with_its_wait_for_a_permit() {
    let stub = Stub::new(|_| answer(200, r#"{"active": true, "sub": "ada"}"#)).await;
    stub.leave.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    let provider = Arc::new(introspection(&stub));
    let started = SystemClock.now().unix_millis();
    for said in ask_often(&provider).join_all().await {
        assert!(matches!(said, Err(SessionError::Unavailable(_))));
    }
    let took = SystemClock.now().unix_millis() - started;
    assert!((2000..4000).contains(&took), "{took} ms");
    // A question that timed out has given its permit back.
    stub.leave.add_permits(10_000);
    assert!(verify(&provider, "t").await.is_ok());
}

const SET: &str = r#"{"keys": []}"#;

fn issuer(stub: &Stub) -> String {
    stub.url("/tenant")
}

fn document(issuer: &str, jwks_uri: &str) -> String {
    serde_json::json!({"issuer": issuer, "jwks_uri": jwks_uri, "token_endpoint": "x"}).to_string()
}

#[tokio::test]
async fn discovery_leads_to_the_keys_of_the_same_issuer_only() {
    let stub = Stub::new(|_| answer(404, "")).await;
    let issuer = issuer(&stub);
    let keys = stub.url("/keys");
    let ask = async |found: String| {
        stub.answers(move |seen| match seen.target.as_str() {
            "/tenant/.well-known/openid-configuration" => answer(200, &found),
            "/keys" => answer(200, SET),
            _ => answer(404, ""),
        });
        PublishedKeys::discovered(outbound(), &issuer).fetch().await
    };
    assert_eq!(ask(document(&issuer, &keys)).await.unwrap(), SET.as_bytes());
    for (bad, why) in [
        (document(&format!("{issuer}/"), &keys), "issuer"),
        (document("https://evil.example", &keys), "issuer"),
        (document(&issuer, "file:///etc/passwd"), "jwks_uri"),
        (document(&issuer, "/keys"), "jwks_uri"),
        (document(&issuer, "http://user:pass@localhost/keys"), "jwks_uri"),
        (document(&issuer, &stub.url("/nothing")), "404"),
        (format!(r#"{{"issuer": "{issuer}"}}"#), "jwks_uri"),
        ("<html>".to_owned(), "read"),
        (" ".repeat(600 << 10), "longer"),
    ] {
        let error = ask(bad).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    // A slash at the end of the issuer is a part of it, and is not doubled in the URL.
    let slashed = format!("{issuer}/");
    let found = document(&slashed, &keys);
    stub.answers(move |seen| match seen.target.as_str() {
        "/tenant/.well-known/openid-configuration" => answer(200, &found),
        _ => answer(200, SET),
    });
    assert!(PublishedKeys::discovered(outbound(), &slashed).fetch().await.is_ok());
}

#[tokio::test]
async fn an_explicit_url_needs_no_discovery() {
    let stub = Stub::new(|_| answer(200, SET)).await;
    let url: Uri = stub.url("/keys?tenant=7").parse().unwrap();
    let keys = PublishedKeys::at(outbound(), &url);
    assert_eq!(keys.fetch().await.unwrap(), SET.as_bytes());
    assert_eq!(stub.seen()[0].target, "/keys?tenant=7");
    assert_eq!(stub.seen().len(), 1);
    stub.answers(|_| answer(500, SET));
    assert!(keys.fetch().await.is_err());
}

#[test]
fn urls_are_plain() {
    for good in [
        "http://a",
        "https://a.example/x?y=z",
        "http://127.0.0.1:1/",
        "http://[::1]:1/x",
    ] {
        assert!(is_plain_url(good), "{good}");
    }
    for bad in [
        "",
        "a",
        "/x",
        "a.example:443",
        "ftp://a",
        "file:///x",
        "http://",
        "http:///x",
        "http://u@a",
        "http://u:p@a",
        "http://a#x",
        "http://a/#",
        "http://a b",
        " http://a",
        "javascript:alert(1)",
    ] {
        assert!(!is_plain_url(bad), "{bad}");
    }
    assert_eq!(
        discovery_url("https://a/b/").unwrap(),
        "https://a/b/.well-known/openid-configuration"
    );
    assert_eq!(discovery_url("https://a?b"), None);
}
