//! Providers that are unreachable or do not respond.

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::fixture::{Stage, stage, stage_with};
use crate::upstream::Reply;

async fn stage_at(url: String) -> Stage {
    stage_with(|builder| builder.set("openai_base_url", url)).await
}

fn call(stage: &Stage) -> crate::calls::Call {
    stage.call("openai/v1/responses").json(&json!({}))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_provider_is_502() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for url in [format!("http://{gone}"), "http://nobody.invalid".to_owned()] {
        let stage = stage_at(url.clone()).await;
        let answer = call(&stage).refused(502, &["openai cannot be reached"]).await;
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(answer.header("x-should-retry"), Some("true"), "nothing was sent");
        assert!(answer.header("x-ratelimit-limit").is_some());
        // The response contains no address; the log has the cause.
        assert!(!format!("{answer:?}").contains(url.trim_start_matches("http://")));
        let id = answer.header("x-request-id").unwrap();
        let log = stage.server.stderr();
        let line = log
            .lines()
            .find(|line| line.contains(id))
            .unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains("cannot connect"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_not_ready_in_time_is_504_and_is_not_tried_again() {
    // It takes connections, and answers no handshake.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", silent.local_addr().unwrap());
    let stage = stage_with(|builder| {
        let builder = builder.set("openai_base_url", url);
        builder.set("model_call_first_byte_timeout", "1")
    });
    let answer = call(&stage.await)
        .refused(504, &["openai did not answer within 1 s"])
        .await;
    assert_eq!(answer.header("x-should-retry"), Some("false"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_tls_handshake_is_502() {
    // A server without TLS behind an `https` URL.
    let stage = stage().await;
    let plain = stage.upstream.url().replace("http:", "https:");
    let stage = stage_at(plain).await;
    call(&stage).refused(502, &["openai cannot be reached"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_closes_the_connection_is_502() {
    let stage = stage().await;
    stage.upstream.next(Reply::Close);
    let answer = call(&stage).refused(502, &["openai broke the connection"]).await;
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.header("agent-version"), Some("1"));
    // A call is never retried: the provider may have processed the first attempt.
    stage.upstream.seen().await;
    assert!(stage.upstream.has_no_unseen_request().await);
    call(&stage).send().await.whole().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_answer_is_504() {
    let stage = stage_with(|builder| builder.set("model_call_first_byte_timeout", "1")).await;
    let (mut release, released) = oneshot::channel();
    stage.upstream.next(Reply::Delayed(released));
    let answer = call(&stage).refused(504, &["openai did not answer within 1 s"]).await;
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    // The call to the provider is cancelled, so that it does not go on working.
    tokio::time::timeout(crate::calls::TIMEOUT, release.closed())
        .await
        .unwrap();
    call(&stage).send().await.whole().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_no_http_is_502() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n").await;
        }
    });
    let stage = stage_at(url).await;
    call(&stage).refused(502, &["openai"]).await;
}
