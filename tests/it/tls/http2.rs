//! Requests and answers over HTTP/2: the same rules as over HTTP/1.1.

use std::future::poll_fn;
use std::sync::Arc;

use agentcfg_tests::harness::{Server, eventually};
use bytes::Bytes;
use h2::client::ResponseFuture;
use hyper::Response;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::{
    Answer, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, Http2, RST_STREAM, TIMEOUT, frame,
};
use super::{Pair, workspace};

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_managed_over_one_connection() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Arc::new(Http2::connect(server.address()).await);
    let (bearer, workspace) = workspace(&server, &http, "ada").await;
    let auth = [("authorization", &*bearer)];
    let create = |number: u32| {
        let (http, bearer) = (Arc::clone(&http), bearer.clone());
        let body = json!({
            "workspace_id": workspace, "agent_id": format!("a{number}"), "display_name": "A",
            "persona_prompt": "\u{10ffff}".repeat(5000),
        });
        async move {
            let fields = [("authorization", &*bearer)];
            http.ask("POST", "/api/agents/configs", &fields, Some(&body)).await
        }
    };
    let mut creates: JoinSet<Answer> = (0..60).map(create).collect();
    while let Some(created) = creates.join_next().await {
        created.unwrap().expect(201);
    }
    let list = http
        .get(&format!("/api/agents/configs?workspace_id={workspace}"), &auth)
        .await
        .expect(200);
    assert_eq!(list.json().as_array().unwrap().len(), 60);
    assert!(list.body.len() > 1_000_000);
    assert_eq!(list.headers["content-length"], list.body.len().to_string());
    assert!(list.headers.contains_key("x-ratelimit-limit"));
    let etag = list.headers["etag"].to_str().unwrap();
    let again = http
        .get(
            &format!("/api/agents/configs?workspace_id={workspace}"),
            &[auth[0], ("if-none-match", etag)],
        )
        .await
        .expect(304);
    assert!(again.body.is_empty());
    let head = http
        .ask("HEAD", &format!("/api/models?workspace_id={workspace}"), &auth, None)
        .await
        .expect(200);
    assert!(head.body.is_empty());
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_too_long_get_the_errors_of_the_api() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    http.get(&format!("/{}", "x".repeat(8200)), &[])
        .await
        .refused(414, "8192");
    http.get("/healthz", &[("x-long", &"x".repeat(16_400))])
        .await
        .refused(431, "16384");
    http.get("/healthz", &[("x-long", &"x".repeat(15_000))])
        .await
        .expect(200);
    http.get("/api/%2f", &[]).await.expect(404);
    http.get("/api/agents/configs", &[]).await.refused(401, "Authorization");
    http.ask("CONNECT", "", &[], None).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_refused_leaves_the_connection_usable() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let (bearer, _) = workspace(&server, &http, "ada").await;
    let fields = [("authorization", &*bearer), ("content-type", "application/json")];
    let (response, mut stream) = http.begin("POST", "/api/agents/configs", &fields, false).await;
    stream.send_data(Bytes::from(vec![b'x'; 2 << 20]), true).unwrap();
    let answer = timeout(TIMEOUT, response).await.unwrap().unwrap();
    Answer::of(answer).await.refused(413, "1048576");
    http.get("/healthz", &[]).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_408_and_other_streams_go_on() {
    let pair = Pair::good();
    let server = pair.server().set("body_timeout", "1").start();
    let http = Http2::connect(server.address()).await;
    let (bearer, _) = workspace(&server, &http, "ada").await;
    let fields = [("authorization", &*bearer), ("content-type", "application/json")];
    let (response, mut stream) = http.begin("POST", "/api/workspaces", &fields, false).await;
    stream.send_data("{\"name\":".into(), false).unwrap();
    http.get("/healthz", &[]).await.expect(200);
    let answer = timeout(TIMEOUT, response).await.unwrap().unwrap();
    Answer::of(answer).await.refused(408, "in time");
    http.get("/healthz", &[]).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_100_is_asked_for_the_body_that_is_wanted() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let (bearer, _) = workspace(&server, &http, "ada").await;
    let mut fields = vec![("content-type", "application/json"), ("expect", "100-Continue")];

    // Refused by its head: there is no body to wait for.
    let (mut response, mut stream) = http.begin("POST", "/api/workspaces", &fields, false).await;
    assert!(interim(&mut response).await.is_none());
    let refused = timeout(TIMEOUT, response).await.unwrap().unwrap();
    Answer::of(refused).await.refused(401, "Authorization");
    // The server may have reset the stream by now.
    let _ = stream.send_data("{}".into(), true);

    fields.push(("authorization", &*bearer));
    let (mut response, mut stream) = http.begin("POST", "/api/workspaces", &fields, false).await;
    assert_eq!(interim(&mut response).await.unwrap().status(), 100);
    stream.send_data(r#"{"name":"Asked"}"#.into(), true).unwrap();
    let created = timeout(TIMEOUT, response).await.unwrap().unwrap();
    Answer::of(created).await.expect(201);

    // What has come whole is not asked for.
    let (mut response, _) = http.begin("GET", "/healthz", &fields, true).await;
    assert!(interim(&mut response).await.is_none());
    let healthy = timeout(TIMEOUT, response).await.unwrap().unwrap();
    Answer::of(healthy).await.expect(200);
}

/// The frames of a stream until its end at both sides, as their kinds.
async fn kinds_of_stream(frames: &mut Frames) -> Vec<u8> {
    let mut kinds = Vec::new();
    loop {
        let (kind, flags, stream, _) = frames.next().await.expect("the connection goes on");
        if stream == 1 {
            kinds.push(kind);
        }
        // The server reads for a while what follows a request that it has refused, and then resets the stream.
        if stream == 1 && kind == RST_STREAM {
            return kinds;
        }
        assert!(kind != GOAWAY, "{flags}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_follows_the_answer_to_a_request_whose_body_is_not_wanted() {
    let pair = Pair::good();
    let server = pair.server().start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let expecting = [("expect", "100-continue"), ("content-type", "application/json")];
    let head = frames.request("POST", "/api/workspaces", &expecting);
    frames.send(&frame(HEADERS, END_HEADERS, 1, &head)).await.unwrap();
    assert_eq!(kinds_of_stream(&mut frames).await, [HEADERS, DATA, RST_STREAM]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_head_request_has_no_body() {
    let pair = Pair::good();
    let server = pair.server().start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let head = frames.request("HEAD", "/healthz", &[("host", "other.example")]);
    let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, &head);
    frames.send(&head).await.unwrap();
    let (flags, _, payload) = frames.next_of(HEADERS).await.unwrap();
    assert_eq!(
        (flags & END_STREAM, payload[0]),
        (END_STREAM, 0x8c),
        "400 without a body"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_its_client_breaks_off_is_not_carried_out() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let (bearer, _) = workspace(&server, &http, "ada").await;
    let fields = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("content-length", "100"),
    ];
    for reason in [h2::Reason::NO_ERROR, h2::Reason::CANCEL] {
        let (_response, mut stream) = http.begin("POST", "/api/workspaces", &fields, false).await;
        stream.send_data(r#"{"name":"Broken off"}"#.into(), false).unwrap();
        stream.send_reset(reason);
    }
    let whole = json!({"name": "Whole"});
    http.ask("POST", "/api/workspaces", &fields[..1], Some(&whole))
        .await
        .expect(201);
    let listed = http.get("/api/workspaces", &fields[..1]).await.expect(200).json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert!(
        names.contains(&&json!("Whole")) && !names.contains(&&json!("Broken off")),
        "{names:?}"
    );
}

/// The interim response that comes first, if one does.
async fn interim(response: &mut ResponseFuture) -> Option<Response<()>> {
    let first = poll_fn(|cx| response.poll_informational(cx));
    let first = timeout(TIMEOUT, first).await.expect("a response");
    first.map(|interim| interim.unwrap())
}

/// The status of a request with these fields of the pseudo-header and others.
async fn status_of(server: &Server, authority: Option<&str>, fields: &[(&str, &str)]) -> Option<u8> {
    let mut frames = Frames::connect(server.address(), &[]).await;
    let mut block = vec![0x82, 0x87, 0x84];
    let mut literal = |name: &str, value: &str| {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    };
    if let Some(authority) = authority {
        literal(":authority", authority);
    }
    for (name, value) in fields {
        literal(name, value);
    }
    frames
        .send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block))
        .await
        .unwrap();
    // The status is the first field, indexed in the static table.
    frames.next_of(HEADERS).await.map(|(_, _, payload)| payload[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host() {
    const OK: u8 = 0x88;
    const BAD_REQUEST: u8 = 0x8c;
    let pair = Pair::good();
    let server = pair.server().start();
    assert_eq!(status_of(&server, Some("a.example"), &[]).await, Some(OK));
    assert_eq!(status_of(&server, None, &[("host", "a.example")]).await, Some(OK));
    assert_eq!(
        status_of(&server, Some("a.example"), &[("host", "a.example")]).await,
        Some(OK)
    );
    assert_eq!(
        status_of(&server, Some("a.example"), &[("host", "b.example")]).await,
        Some(BAD_REQUEST)
    );
    assert_eq!(status_of(&server, None, &[]).await, Some(BAD_REQUEST));
    let twice = [("host", "a.example"), ("host", "a.example")];
    assert_eq!(status_of(&server, None, &twice).await, Some(BAD_REQUEST));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_signs_in_over_http2() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let bearer = format!("Bearer {}", server.token("ada"));
    let made = http
        .ask("POST", "/api/sessions", &[("authorization", &bearer)], None)
        .await
        .expect(204);
    let set = made.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        set.starts_with("__Host-agentcfg-session=") && set.contains("; Secure"),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap();
    // A browser may send each cookie in a field of its own.
    let crumbs = [("cookie", "theme=dark"), ("cookie", cookie), ("cookie", "x=y")];
    let who = http.get("/api/whoami", &crumbs).await.expect(200).json();
    assert_eq!(who["id"], "ada");
    let own = format!("https://localhost:{}", server.address().port());
    let plain = own.replace("https", "http");
    let new = json!({"name": "Studio"});
    for (origin, status) in [(&*own, 201), (&*plain, 403), ("https://evil.example", 403)] {
        let fields = [("cookie", cookie), ("origin", origin)];
        http.ask("POST", "/api/workspaces", &fields, Some(&new))
            .await
            .expect(status);
    }
    let fetched = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
    http.ask("POST", "/api/workspaces", &fetched, Some(&new))
        .await
        .expect(201);
    let page = http.get("/", &[]).await.expect(200);
    assert!(page.headers.contains_key("content-security-policy"));
    assert!(
        !page.headers.contains_key("strict-transport-security"),
        "localhost has other ports without TLS"
    );
    let named = http.get("/", &[("host", "agents.example")]).await;
    assert_eq!(
        named.status,
        400,
        "Host and :authority differ: {:?}",
        String::from_utf8_lossy(&named.body)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_tell_browsers_to_keep_to_https() {
    let pair = Pair::good();
    let server = pair.server().set("public_url", "https://agents.example").start();
    let http = Http2::connect(server.address()).await;
    let page = http.get("/", &[]).await.expect(200);
    assert!(
        page.headers["strict-transport-security"]
            .to_str()
            .unwrap()
            .starts_with("max-age=")
    );
    let api = http.get("/healthz", &[]).await.expect(200);
    assert!(!api.headers.contains_key("strict-transport-security"));
    let plain = Server::start();
    assert_eq!(
        plain.get("/").send().expect(200).header("strict-transport-security"),
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_finishes_the_streams_in_flight() {
    let pair = Pair::good();
    let server = pair.server().start();
    let http = Http2::connect(server.address()).await;
    let (bearer, _) = workspace(&server, &http, "ada").await;
    let fields = [("authorization", &*bearer), ("content-type", "application/json")];
    let (response, mut stream) = http.begin("POST", "/api/workspaces", &fields, false).await;
    http.get("/healthz", &[]).await.expect(200);
    server.signal(rustix::process::Signal::TERM);
    agentcfg_tests::harness::eventually("it shuts down", || server.stderr().contains("shutting down"));
    stream
        .send_data(json!({"name": "Late"}).to_string().into(), true)
        .unwrap();
    let answer = timeout(TIMEOUT, response).await.unwrap().unwrap();
    let made: Value = Answer::of(answer).await.expect(201).json();
    assert_eq!(made["name"], "Late");
    // The close of the server and the last frames of the client may cross.
    if let Err(error) = http.ended().await {
        let kind = error.get_io().map(std::io::Error::kind);
        let crossed = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
        assert!(kind.is_some_and(|kind| crossed.contains(&kind)), "{error:?}");
    }
    assert!(server.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_about_to_stop_sends_goaway_and_serves() {
    let pair = Pair::good();
    let server = pair
        .server()
        .set("shutdown_delay", "60")
        .set("access_log", "true")
        .start();
    let mut frames = Frames::connect(server.address(), &[]).await;
    let get = frame(HEADERS, END_HEADERS | END_STREAM, 1, &frames.get("/healthz", &[]));
    frames.send(&get).await.unwrap();
    assert!(frames.next_of(HEADERS).await.is_some());
    server.signal(rustix::process::Signal::TERM);
    assert!(frames.next_of(GOAWAY).await.is_some());
    let http = Http2::connect(server.address()).await;
    http.get("/openapi.json", &[]).await.expect(200);
    eventually("the address is logged", || server.stderr().contains("client=127.0.0.1"));
    let http = Http2::connect(server.address()).await;
    http.get("/readyz", &[]).await.expect(503);
    server.kill();
}
