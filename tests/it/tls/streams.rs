//! Streams of changes over one HTTP/2 connection, and clients that do not read.

use agentcfg_tests::harness::eventually;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::client::{END_HEADERS, END_STREAM, Frames, HEADERS, Http2, RST_STREAM, TIMEOUT, frame, piece, tls};
use super::{Pair, workspace};

/// The value of a metric.
fn metric(address: &str, name: &str) -> Option<f64> {
    let mut wire = agentcfg_tests::harness::Wire::connect(address.parse().unwrap());
    let answer = wire.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").receive("GET")?;
    let text = String::from_utf8(answer.body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok())
}

/// An address that was free a moment ago.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_tabs_follow_changes_over_one_connection() {
    let pair = Pair::good();
    let metrics = free_address();
    let server = pair.server().set("metrics_listen", &metrics).start();
    let http = Http2::connect(server.address()).await;
    let mut tabs = Vec::new();
    // A user may have ten streams.
    for user in ["ada", "bob"] {
        let (bearer, workspace) = workspace(&server, &http, user).await;
        let fields = [("authorization", &*bearer), ("accept", "text/event-stream")];
        let path = format!("/api/changes?workspace_id={workspace}&after=now");
        for _ in 0..10 {
            let (response, _) = http.begin("GET", &path, &fields, true).await;
            let response = timeout(TIMEOUT, response).await.unwrap().unwrap();
            assert_eq!(response.status(), 200);
            tabs.push(response.into_body());
        }
        let new = json!({"workspace_id": workspace, "agent_id": "writer", "display_name": "Writer"});
        let auth = [("authorization", &*bearer)];
        http.ask("POST", "/api/agents/configs", &auth, Some(&new))
            .await
            .expect(201);
    }
    for tab in &mut tabs {
        let mut seen = String::new();
        while !seen.contains("agent.created") {
            seen += std::str::from_utf8(&piece(tab).await.expect("the stream goes on")).unwrap();
        }
    }
    assert_eq!(metric(&metrics, "agentcfg_streams"), Some(20.0));
    // A tab that is closed resets its stream.
    tabs.truncate(5);
    eventually("the server notices", || {
        metric(&metrics, "agentcfg_streams") == Some(5.0)
    });
    http.get("/healthz", &[]).await.expect(200);
    // The others end with the connection.
    drop((tabs, http));
    eventually("all end", || metric(&metrics, "agentcfg_streams") == Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_response_is_not_read_is_reset_and_others_go_on() {
    const INITIAL_WINDOW: u16 = 4;
    let pair = Pair::good();
    let server = pair.server().set("body_timeout", "1").start();
    let mut frames = Frames::connect(server.address(), &[(INITIAL_WINDOW, 10)]).await;
    let block = frames.get("/openapi.json", &[]);
    frames
        .send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block))
        .await
        .unwrap();
    let (_, stream, _) = frames.next_of(RST_STREAM).await.expect("a reset");
    assert_eq!(stream, 1);
    let block = frames.get("/healthz", &[]);
    frames
        .send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &block))
        .await
        .unwrap();
    assert_eq!(frames.next_of(HEADERS).await.expect("an answer").1, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_and_those_with_streams_are_not() {
    let pair = Pair::good();
    let server = pair
        .server()
        .set("idle_timeout", "3")
        .set("header_timeout", "3")
        .start();
    let silent = Http2::connect(server.address()).await;
    let idle = Http2::connect(server.address()).await;
    let busy = Http2::connect(server.address()).await;
    let (bearer, workspace) = workspace(&server, &busy, "ada").await;
    let fields = [("authorization", &*bearer), ("accept", "text/event-stream")];
    let path = format!("/api/changes?workspace_id={workspace}&after=now");
    let (response, _) = busy.begin("GET", &path, &fields, true).await;
    let tab = timeout(TIMEOUT, response).await.unwrap().unwrap();
    idle.get("/healthz", &[]).await.expect(200);
    for ended in [silent, idle] {
        let _ = ended.ended().await;
    }
    busy.get("/healthz", &[]).await.expect(200);
    drop(tab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_http1_that_leaves_ends_its_stream() {
    let pair = Pair::good();
    let metrics = free_address();
    let server = pair.server().set("metrics_listen", &metrics).start();
    let http = Http2::connect(server.address()).await;
    let (bearer, workspace) = workspace(&server, &http, "ada").await;
    for is_orderly in [true, false] {
        let mut stream = tls(server.address(), &["http/1.1"]).await.unwrap();
        let request = format!(
            "GET /api/changes?workspace_id={workspace}&after=now HTTP/1.1\r\nHost: localhost\r\n\
             Accept: text/event-stream\r\nAuthorization: {bearer}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 15];
        timeout(TIMEOUT, stream.read_exact(&mut start)).await.unwrap().unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        eventually("the stream is open", || {
            metric(&metrics, "agentcfg_streams") == Some(1.0)
        });
        if is_orderly {
            stream.shutdown().await.unwrap();
        }
        drop(stream);
        eventually("the server notices", || {
            metric(&metrics, "agentcfg_streams") == Some(0.0)
        });
    }
}
