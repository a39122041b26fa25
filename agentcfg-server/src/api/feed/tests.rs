use std::time::Duration;

use agentcfg_core::model::{Environment, NewAgent, NewApiKey, NewWorkspace, Scope, WorkspaceId};
use agentcfg_core::store::MemoryStore;
use agentcfg_core::{AgentCfg, Caller};
use http_body_util::BodyExt;
use hyper::{Request, Response};
use tokio::time::Instant;

use super::Streams;
use crate::api::App;
use crate::http::{Body, Cors};

struct Stage {
    service: AgentCfg,
    ada: Caller,
    studio: WorkspaceId,
    app: App,
    streams: Streams,
}

impl Stage {
    async fn open(max: usize) -> Self {
        let service = AgentCfg::builder(MemoryStore::new()).build();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let studio = service.create_workspace(&ada, new).await.unwrap().id;
        let streams = Streams::new(max);
        let app = App::new(service.clone(), Cors::default()).with_streams(streams.clone());
        Self {
            service,
            ada,
            studio,
            app,
            streams,
        }
    }

    async fn key(&self) -> String {
        let new = NewApiKey::new(self.studio, "key", Environment::Production, Scope::Read);
        self.service.create_api_key(&self.ada, new).await.unwrap().key
    }

    async fn create(&self, agent_id: &str) {
        let new = NewAgent::new(self.studio, agent_id.parse().unwrap(), agent_id);
        self.service.create_agent(&self.ada, new).await.unwrap();
    }

    async fn ask(&self, method: &str, key: &str, query: &str) -> Response<Body> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/changes?workspace_id={}&{query}", self.studio))
            .header("Authorization", format!("Bearer {key}"))
            .header("Accept", "text/event-stream");
        self.app.respond(request.body(String::new()).unwrap()).await
    }

    async fn stream(&self, key: &str, query: &str) -> Response<Body> {
        let response = self.ask("GET", key, query).await;
        assert_eq!(response.status(), 200);
        response
    }
}

/// The next piece of a stream; none at its end.
async fn piece(stream: &mut Response<Body>) -> Option<String> {
    let frame = stream.body_mut().frame().await?;
    let data = frame.unwrap().into_data().unwrap();
    Some(String::from_utf8(data.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_retry_and_a_bookmark_and_has_one_every_15_seconds() {
    let stage = Stage::open(9).await;
    let mut stream = stage.stream(&stage.key().await, "after=start").await;
    let headers = stream.headers();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["cache-control"], "no-store, no-transform");
    assert_eq!(headers["x-accel-buffering"], "no");
    assert!(!headers.contains_key("content-encoding"));
    let cursor = headers["change-cursor"].to_str().unwrap().to_owned();
    let first = piece(&mut stream).await.unwrap();
    let (retry, rest) = first.strip_prefix("retry: ").unwrap().split_once('\n').unwrap();
    assert!((1000..=5000).contains(&retry.parse::<u32>().unwrap()), "{retry}");
    assert_eq!(rest, format!("event: bookmark\nid: {cursor}\ndata: {{}}\n\n"));
    stage.create("writer").await;
    let begun = Instant::now();
    let event = piece(&mut stream).await.unwrap();
    assert!(
        event.starts_with("event: change\nid: ") && event.contains("\"agent.created\""),
        "{event}"
    );
    assert!(event.ends_with("}\n\n") && event.lines().filter(|line| line.starts_with("data: ")).count() == 1);
    for round in 1..=3 {
        let bookmark = piece(&mut stream).await.unwrap();
        let is_bookmark = bookmark.starts_with("event: bookmark\nid: ");
        assert!(
            is_bookmark && bookmark.contains("-c3\n"),
            "it is after what is not shown: {bookmark}"
        );
        let passed = begun.elapsed().as_millis();
        assert!((15_000 * round..15_000 * round + 50).contains(&passed), "{passed} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_ten_minutes_give_or_take_a_fifth() {
    let stage = Stage::open(9).await;
    let key = stage.key().await;
    let mut ages = Vec::new();
    for _ in 0..6 {
        let begun = Instant::now();
        let mut stream = stage.stream(&key, "after=now").await;
        let mut last = String::new();
        while let Some(text) = piece(&mut stream).await {
            last = text;
        }
        assert!(last.starts_with("event: end\ndata: {\"error\":\""), "{last}");
        let age = begun.elapsed();
        assert!((480..=720).contains(&age.as_secs()), "{age:?}");
        ages.push(age);
    }
    ages.dedup();
    assert!(ages.len() > 1, "they are spread: {ages:?}");
    assert_eq!(stage.streams.open(), 0);
}

#[tokio::test]
async fn a_shutdown_ends_streams_and_waits() {
    let stage = Stage::open(9).await;
    let key = stage.key().await;
    let mut stream = stage.stream(&key, "after=now").await;
    piece(&mut stream).await.unwrap();
    let request = Request::get(format!("/api/changes?workspace_id={}&after=now&wait=30", stage.studio))
        .header("Authorization", format!("Bearer {key}"));
    let waiting = tokio::spawn(stage.app.exchange(request.body(String::new()).unwrap()));
    tokio::task::yield_now().await;
    stage.streams.close();
    let end = piece(&mut stream).await.unwrap();
    assert!(end.starts_with("event: end\n"), "{end}");
    assert_eq!(piece(&mut stream).await, None);
    let Ok(answer) = tokio::time::timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn streams_are_limited_by_caller_and_by_server() {
    let stage = Stage::open(12).await;
    let (one, other) = (stage.key().await, stage.key().await);
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(stage.stream(&one, "after=now").await);
    }
    let refused = stage.ask("GET", &one, "after=now").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    // An answer to HEAD has no stream, so it takes no place for longer than itself.
    for _ in 0..3 {
        let head = stage.ask("HEAD", &other, "after=now").await;
        assert_eq!(
            (head.status().as_u16(), head.headers()["content-type"].to_str().unwrap()),
            (200, "text/event-stream")
        );
    }
    streams.push(stage.stream(&other, "after=now").await);
    streams.push(stage.stream(&other, "after=now").await);
    assert_eq!(
        stage.ask("GET", &other, "after=now").await.status(),
        429,
        "the server has 12"
    );
    streams.remove(0);
    streams.push(stage.stream(&one, "after=now").await);
    drop(streams);
    assert_eq!(stage.streams.open(), 0);
}

/// The statuses of a large workspace come in pieces, before the changes, and all of them once.
#[tokio::test]
async fn a_long_update_comes_in_pieces() {
    const AGENTS: usize = 400;
    let stage = Stage::open(9).await;
    for number in 0..AGENTS {
        stage.create(&format!("agent-{number}")).await;
    }
    let mut stream = stage.stream(&stage.key().await, "after=start&status=true").await;
    piece(&mut stream).await.unwrap();
    let (mut pieces, mut created) = (Vec::new(), 0);
    while created < AGENTS {
        let next = piece(&mut stream).await.unwrap();
        created += next.matches("\"agent.created\"").count();
        pieces.push(next);
    }
    let longest = pieces.iter().map(String::len).max().unwrap();
    assert!(
        pieces.len() > 2 && longest < 20 << 10,
        "{} pieces of up to {longest} bytes",
        pieces.len()
    );
    let text = pieces.concat();
    assert_eq!(text.matches("event: status\n").count(), AGENTS);
    assert!(
        text.rfind("event: status\n") < text.find("event: change\n"),
        "statuses first"
    );
    let events = text.split_terminator("\n\n");
    for event in events {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str::<serde_json::Value>(data).unwrap();
    }
}
