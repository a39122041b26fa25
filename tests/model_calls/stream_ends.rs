//! Streams: delivery, back-pressure, and every way of ending.

use std::time::{Duration, Instant};

use agentcfg_tests::harness::until;
use hyper::Response;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::calls::{Answer, Call, TIMEOUT};
use crate::fixture::{Stage, stage, stage_with};
use crate::upstream::{Feed, Reply, events, streaming};

fn call(stage: &Stage) -> Call {
    let call = stage.call("openai/v1/chat/completions");
    call.json(&json!({"messages": [], "stream": true}))
}

/// A response in progress, with the feed of its body.
async fn started_stream(stage: &Stage) -> (Answer, Feed) {
    let (reply, feed) = events();
    stage.upstream.next(reply);
    let answer = call(stage).send().await;
    (answer, feed)
}

async fn within_timeout<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, what)
        .await
        .expect("the event occurs before the timeout")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_piece_arrives_before_the_next_is_sent() {
    let stage = stage().await;
    let (mut answer, feed) = started_stream(&stage).await;
    // The head arrives before any piece of the body.
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    for number in 0..50 {
        let piece = format!("data: {number}\n\n");
        feed.send(piece.clone()).await;
        answer.expect(piece).await;
    }
    drop(feed);
    assert_eq!(answer.next().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_read_exerts_back_pressure_on_the_provider() {
    const PIECE: usize = 1 << 20;
    let stage = stage().await;
    let (mut answer, feed) = started_stream(&stage).await;
    let mut sent = 0_usize;
    // The buffers of the system take some pieces; then back-pressure stops the provider.
    while tokio::time::timeout(Duration::from_millis(500), feed.send(vec![b'x'; PIECE]))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 100, "{sent} MiB were sent to a caller that does not read");
    }
    // The timeout cancelled the last send, so its piece was not sent.
    let ending = tokio::spawn(async move {
        feed.send("end").await;
    });
    let mut came = 0;
    while let Some(piece) = answer.next().await.unwrap() {
        came += piece.len();
    }
    ending.await.unwrap();
    assert_eq!(came, sent * PIECE + "end".len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_provider_cuts_ends_in_a_broken_connection() {
    let stage = stage().await;
    let sized = Response::builder().header("content-length", "1000").body(()).unwrap();
    for reply in [events(), streaming(sized)] {
        let (reply, feed) = reply;
        stage.upstream.next(reply);
        let mut answer = call(&stage).send().await;
        feed.send("data: 1\n\n").await;
        // Everything before the cut is delivered, and then the connection breaks without a regular end.
        feed.cut().await;
        answer.expect("data: 1\n\n").await;
        assert!(answer.next().await.is_err());
    }
    // A stream that is cut at once has a head and no regular end either.
    let (mut answer, feed) = started_stream(&stage).await;
    feed.cut().await;
    assert!(answer.next().await.is_err());
    call(&stage).send().await.whole().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_0_callers_see_that_a_stream_was_cut() {
    let stage = stage().await;
    for is_cut in [true, false] {
        let (reply, feed) = events();
        stage.upstream.next(reply);
        let mut stream = TcpStream::connect(stage.server.address()).await.unwrap();
        let request = format!(
            "POST /api/agents/model-calls/openai/v1/responses?agent_id=writer HTTP/1.0\r\nhost: x\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
            stage.key()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        feed.send("data: 1\n\n").await;
        let mut answer = String::new();
        while !answer.ends_with("data: 1\n\n") {
            answer.push(within_timeout(stream.read_u8()).await.unwrap().into());
        }
        // Without chunks and lengths, the end of the connection is the end of the body.
        assert!(!answer.contains("transfer-encoding"), "{answer}");
        if is_cut {
            feed.cut().await;
            assert!(within_timeout(stream.read_u8()).await.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
        } else {
            drop(feed);
            assert_eq!(within_timeout(stream.read(&mut [0; 9])).await.unwrap(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_stream_ends_in_a_broken_connection() {
    let stage = stage_with(|builder| builder.set("model_call_idle_timeout", "1")).await;
    let (mut answer, feed) = started_stream(&stage).await;
    feed.send("data: 1\n\n").await;
    answer.expect("data: 1\n\n").await;
    assert!(answer.next().await.is_err());
    within_timeout(feed.cancelled()).await;
    assert!(stage.server.stderr().contains("sent nothing for too long"));
}

/// The time of other answers is that of `body_timeout`; a provider that is silent has another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_read_is_cut_after_the_time_of_other_answers() {
    let stage = stage_with(|builder| builder.set("body_timeout", "2")).await;
    let (answer, feed) = started_stream(&stage).await;
    let begun = Instant::now();
    // The provider always has more, and the buffers of the system take some of it.
    let sending = tokio::spawn(async move { while feed.try_send(vec![b'x'; 1 << 20]).await {} });
    within_timeout(sending).await.unwrap();
    let took = begun.elapsed();
    assert!(
        (Duration::from_millis(1900)..Duration::from_secs(12)).contains(&took),
        "{took:?}"
    );
    drop(answer);
    call(&stage).send().await.whole().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_callers_connection_cancels_a_stream() {
    let stage = stage().await;
    let (mut answer, feed) = started_stream(&stage).await;
    feed.send("data: 1\n\n").await;
    answer.expect("data: 1\n\n").await;
    // No data is in flight, so only the close of the connection can be noticed.
    drop(answer);
    within_timeout(feed.cancelled()).await;

    // The same while the provider sends more than the caller reads.
    let (answer, feed) = started_stream(&stage).await;
    let sending = tokio::spawn(async move { while feed.try_send(vec![b'x'; 1 << 20]).await {} });
    drop(answer);
    within_timeout(sending).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_callers_connection_before_the_response_cancels_the_call() {
    let stage = stage().await;
    for reset in [false, true] {
        let (mut release, released) = oneshot::channel();
        stage.upstream.next(Reply::Delayed(released));
        let mut stream = TcpStream::connect(stage.server.address()).await.unwrap();
        let body = r#"{"messages":[]}"#;
        let request = format!(
            "POST /api/agents/model-calls/openai/v1/chat/completions?agent_id=writer HTTP/1.1\r\nhost: x\r\n\
             authorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            stage.key(),
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stage.upstream.seen().await;
        if reset {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        within_timeout(release.closed()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_streams_finish() {
    let stage = stage().await;
    let (mut answer, feed) = started_stream(&stage).await;
    feed.send("data: 1\n\n").await;
    answer.expect("data: 1\n\n").await;
    stage.server.signal(Signal::TERM);
    until("no connection is accepted any more", || {
        std::net::TcpStream::connect(stage.server.address())
            .is_err()
            .then_some(())
    });
    feed.send("data: 2\n\n").await;
    answer.expect("data: 2\n\n").await;
    drop(feed);
    assert_eq!(answer.next().await.unwrap(), None);
    assert!(stage.server.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_streams_after_its_timeout() {
    let stage = stage_with(|builder| builder.set("shutdown_timeout", "1")).await;
    let (mut answer, feed) = started_stream(&stage).await;
    feed.send("data: 1\n\n").await;
    answer.expect("data: 1\n\n").await;
    stage.server.signal(Signal::TERM);
    assert!(answer.next().await.is_err());
    within_timeout(feed.cancelled()).await;
    assert!(stage.server.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_usable_after_a_call() {
    let stage = stage().await;
    let key = stage.key();
    let mut stream = TcpStream::connect(stage.server.address()).await.unwrap();
    let request = format!(
        "POST /api/agents/model-calls/openai/v1/responses?agent_id=writer HTTP/1.1\r\nhost: x\r\n\
         authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    let read =
        format!("GET /api/workspaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n");
    stream
        .write_all(format!("{request}{request}{read}").as_bytes())
        .await
        .unwrap();
    let mut answers = String::new();
    within_timeout(stream.read_to_string(&mut answers)).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    assert_eq!(answers.matches("x-provider-request-id").count(), 2, "{answers}");
}
