//! Forwarding: what reaches the provider, and what the caller receives.

use serde_json::json;

use crate::calls::Call;
use crate::fixture::{MANAGED, new_key, save_key, stage};
use crate::upstream::whole;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_forwarded_unchanged_except_for_the_credential() {
    let stage = stage().await;
    let key = stage.key();
    let body = r#" {"model":"m", "instructions":"i", "n": 1.50e3, "n": 2, "x":"\ud800" } "#;
    let call = stage
        .call_with("openai/v1/responses", &key)
        .and("include=usage&workspace_id=");
    // An empty `workspace_id` counts as a missing one.
    call.text(body).refused(400, &["workspace_id"]).await;

    let answer = stage
        .call_with("openai/v1/responses", &key)
        .and("include=a%2Fb&flag")
        .header("x-api-key", &key)
        .header("cookie", &key)
        .header("openai-organization", "org-callers")
        .header("openai-beta", "responses=v1")
        .header("x-request-id", "mine")
        .text(body)
        .send()
        .await
        .whole()
        .await
        .expect(200);
    let seen = stage.upstream.seen().await;
    assert_eq!(
        (seen.method.as_str(), &*seen.target),
        ("POST", "/v1/responses?include=a%2Fb&flag")
    );
    assert_eq!(String::from_utf8_lossy(&seen.body), body);
    assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {MANAGED}")));
    assert_eq!(seen.header("content-length"), Some(&*body.len().to_string()));
    assert_eq!(seen.header("openai-beta"), Some("responses=v1"));
    let names: Vec<_> = seen.headers.keys().map(|name| name.as_str()).collect();
    for name in &names {
        let known = [
            "authorization",
            "content-length",
            "content-type",
            "host",
            "openai-beta",
            "user-agent",
        ];
        assert!(known.contains(name), "{name}");
    }
    assert!(!format!("{:?}", seen.headers).contains(&key));

    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-request-id"), Some("mine"));
    assert_eq!(answer.header("x-provider-request-id"), Some("req_openai"));
    assert_eq!(answer.header("x-provider-ratelimit-remaining-requests"), Some("59"));
    assert_eq!(answer.header("x-ratelimit-limit"), Some("100000"));
    assert!(answer.header("x-ratelimit-remaining-requests").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_calls_get_the_headers_of_anthropic() {
    let stage = stage().await;
    let key = stage.key();
    let body = json!({"model": "m", "system": "s", "max_tokens": 1, "messages": []});
    let call = || stage.call_with("anthropic/v1/messages", &key).json(&body);
    let answer = call().and("beta=true").send().await.whole().await.expect(200);
    assert_eq!(answer.header("request-id"), Some("req_anthropic"));
    let seen = stage.upstream.seen().await;
    assert_eq!(seen.target, "/v1/messages?beta=true");
    assert_eq!(seen.header("x-api-key"), Some(MANAGED));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(seen.header("authorization"), None);

    let call = call()
        .header("anthropic-version", "2099-01-01")
        .header("anthropic-beta", "a");
    call.header("anthropic-beta", "b")
        .header("x-api-key", "another")
        .send()
        .await;
    let seen = stage.upstream.seen().await;
    assert_eq!(seen.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(seen.headers.get_all("anthropic-beta").iter().count(), 2);
    assert_eq!(seen.header("x-api-key"), Some(MANAGED));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_of_the_provider_is_returned_unchanged() {
    let stage = stage().await;
    let key = stage.key();
    let call = || {
        stage
            .call_with("openai/v1/chat/completions", &key)
            .json(&json!({"messages": []}))
    };
    for (status, content_type, body) in [
        (400, "application/json", r#"{"error": {"message": "no", "code": null}}"#),
        (401, "application/json", r#"{"error":{"message":"bad key"}}"#),
        (404, "text/html", "<h1>no</h1>"),
        (418, "text/plain; charset=x", ""),
        (429, "application/json", "{}"),
        (500, "application/json", "not even JSON"),
        (503, "application/problem+json", "{}"),
        (529, "application/json", r#"{"type":"error"}"#),
        (201, "application/octet-stream", "\0\u{1}"),
    ] {
        let fields = [
            ("content-type", content_type),
            ("retry-after", "17"),
            ("set-cookie", "a=b"),
            ("server", "x"),
        ];
        stage.upstream.next(whole(status, &fields, body));
        let answer = call().send().await.whole().await.expect(status);
        assert_eq!(answer.header("content-type"), Some(content_type));
        assert_eq!(answer.header("retry-after"), Some("17"));
        assert_eq!(answer.body, body);
        for name in ["set-cookie", "server", "www-authenticate"] {
            assert_eq!(answer.header(name), None);
        }
        assert!(answer.header("x-request-id").is_some() && answer.header("x-ratelimit-reset").is_some());
    }
    stage.upstream.next(whole(204, &[], ""));
    assert!(call().send().await.whole().await.expect(204).body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_returned_and_not_followed() {
    let stage = stage().await;
    let elsewhere = crate::upstream::Upstream::start().await;
    let location: &'static str = elsewhere.url().leak();
    for status in [301, 302, 303, 307, 308] {
        stage
            .upstream
            .next(whole(status, &[("location", location)], "over there"));
        let call = stage.call("openai/v1/responses").json(&json!({}));
        let answer = call.send().await.whole().await.expect(status);
        assert_eq!(
            (answer.header("location"), &answer.body[..]),
            (Some(location), &b"over there"[..])
        );
    }
    assert!(elsewhere.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requested_content_encoding_is_returned_unchanged() {
    let stage = stage().await;
    let zipped = &b"\x1f\x8b pretend"[..];
    stage.upstream.next(whole(
        200,
        &[("content-encoding", "gzip"), ("content-type", "application/json")],
        zipped,
    ));
    let call = stage
        .call("openai/v1/responses")
        .header("accept-encoding", "gzip, br")
        .json(&json!({}));
    let answer = call.send().await.whole().await.expect(200);
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.body, zipped);
    // Where the answer reports usage, the provider may choose among the codings that are read here.
    assert_eq!(stage.upstream.seen().await.header("accept-encoding"), Some("gzip"));
    let call = stage
        .call("anthropic/v1/messages/count_tokens")
        .header("accept-encoding", "gzip, br");
    call.json(&json!({"messages": []})).send().await;
    assert_eq!(stage.upstream.seen().await.header("accept-encoding"), Some("gzip, br"));
    stage.call("openai/v1/responses").json(&json!({})).send().await;
    assert_eq!(stage.upstream.seen().await.header("accept-encoding"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_bodies_are_forwarded_in_both_directions() {
    const LONGEST: usize = 10 << 20;
    let stage = stage().await;
    let key = stage.key();
    let mut body = br#"{"model":"m","instructions":"i","input":""#.to_vec();
    body.resize(LONGEST - 2, b'x');
    body.extend_from_slice(b"\"}");
    let long: &'static [u8] = vec![b'y'; 32 << 20].leak();
    stage.upstream.next(whole(200, &[], long));
    let call = stage.call_with("openai/v1/responses", &key);
    assert_eq!(
        call.text(body.clone()).send().await.whole().await.expect(200).body,
        long
    );
    assert_eq!(stage.upstream.seen().await.body, body);
    for path in ["openai/v1/responses", "openai/v1/files"] {
        let too_long = [&body[..], b" "].concat();
        let call = stage.call_with(path, &key).text(too_long);
        call.refused(413, &["10485760"]).await;
    }
    assert!(stage.upstream.has_no_unseen_request().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_are_forwarded_unchanged() {
    let stage = stage().await;
    let studio = stage.studio();
    for provider in ["openai", "anthropic"] {
        save_key(&studio, provider, &new_key());
    }
    let key = studio.key_with(&json!({"scope": "write", "rate_limit": 100_000})).key;
    let form = &b"--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n\xff\x00\r\n--b--"[..];
    for (path, content_type, body) in [
        (
            "openai/v1/embeddings",
            "application/json",
            &br#"{"input":"x","model":"text-embedding-3-small"}"#[..],
        ),
        ("openai/v1/files", "multipart/form-data; boundary=b", form),
        (
            "openai/v1/audio/transcriptions",
            "multipart/form-data; boundary=b",
            form,
        ),
        ("openai/v1/made.up/path_1/~x-y", "text/plain", b"{ not JSON"),
        (
            "anthropic/v1/messages/batches",
            "application/json",
            br#"{"requests":[]}"#,
        ),
    ] {
        let call = stage
            .call_with(path, &key)
            .header("content-type", content_type)
            .bytes(body);
        call.send().await.whole().await.expect(200);
        let seen = stage.upstream.seen().await;
        assert_eq!(seen.target, path.replace("openai/", "/").replace("anthropic/", "/"));
        assert_eq!(
            (&seen.body[..], seen.header("content-type")),
            (body, Some(content_type))
        );
    }
    // An empty body is forwarded as well.
    stage
        .call_with("openai/v1/batches/b1/cancel", &key)
        .send()
        .await
        .whole()
        .await
        .expect(200);
    let seen = stage.upstream.seen().await;
    assert_eq!(
        (seen.header("content-length"), seen.header("content-type")),
        (Some("0"), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_passes_whatever_model_the_agent_has() {
    let stage = stage().await;
    let studio = stage.studio();
    save_key(&studio, "openai", &new_key());
    studio.create("early", &json!({"model": "gpt-7"})).expect(201);
    for agent in ["poet", "early"] {
        let target = format!("/api/agents/model-calls/openai/v1/audio/transcriptions?agent_id={agent}");
        let call = Call::to(stage.server.address(), &target).bearer(&studio.owner);
        let call = call.header("content-type", "multipart/form-data; boundary=b");
        call.bytes(&b"--b--"[..]).send().await.whole().await.expect(200);
        assert_eq!(stage.upstream.seen().await.body, b"--b--"[..]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_slash_is_a_slash() {
    let stage = stage().await;
    stage
        .call("openai/v1%2Fresponses")
        .json(&json!({}))
        .send()
        .await
        .whole()
        .await
        .expect(200);
    let seen = stage.upstream.seen().await;
    assert_eq!(
        (seen.target.as_str(), &seen.json()["model"]),
        ("/v1/responses", &json!("gpt-5.5"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_is_nearly_one_of_the_service_is_refused() {
    let stage = stage().await;
    let key = stage.key();
    let call = |more: &str| {
        let call = stage.call_with("openai/v1/responses", &key).and(more);
        call.json(&json!({"input": "x"}))
    };
    for (more, known) in [
        ("lable=production", "label"),
        ("Version=1", "version"),
        ("workspaceid=x", "workspace_id"),
        ("agent-id=x", "agent_id"),
    ] {
        call(more).refused(400, &[&format!("did you mean {known}?")]).await;
    }
    call("api-version=2025-01-01&limit=3")
        .send()
        .await
        .whole()
        .await
        .expect(200);
    assert_eq!(
        stage.upstream.seen().await.target,
        "/v1/responses?api-version=2025-01-01&limit=3"
    );
}
