use std::path::PathBuf;
use std::time::Duration;

use agentcfg_core::model::Label;
use serde_json::json;

use super::server::{Reply, Server, answer};
use super::{client, workspace};
use crate::ReleasedMirror;
use crate::released_file::ReleasedFile;

fn cursor(revision: u64) -> String {
    format!("k3j9x0ab-{}-c{revision}", workspace())
}

/// What the label releases: the writer at a version.
fn released(revision: u64, version: u64) -> Reply {
    list(revision, &[("writer", version)])
}

/// An agent that the label releases, at a version.
fn row((agent_id, version): &(&str, u64)) -> serde_json::Value {
    let config = json!({
        "display_name": "Writer", "role": null, "description": null, "agent_type": "ai", "model": null, "color": null,
        "persona_prompt": null, "capabilities": [], "parameters": {},
    });
    json!({
        "agent_id": agent_id, "label": "production", "version": version, "updated_at": "2026-11-20T09:30:00.123Z",
        "config": config,
    })
}

/// What the label releases: agents at their versions.
fn list(revision: u64, agents: &[(&str, u64)]) -> Reply {
    let tag: u64 = agents.iter().map(|(_, version)| version).sum();
    let head = format!("change-cursor: {}\r\netag: \"k3j9x0ab-s{tag}\"\r\n", cursor(revision));
    let rows: Vec<_> = agents.iter().map(row).collect();
    answer(200, &head, &json!(rows).to_string())
}

/// The event of a promotion, by the path of its change.
fn event(revision: u64, path: &str) -> serde_json::Value {
    json!({
        "cursor": cursor(revision), "revision": revision, "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "type": "label.promoted", "created_at": "2026-11-20T10:05:41.007Z",
        "actor": {"type": "user", "id": "ada"}, "target": {"type": "workspace", "id": workspace()},
        "message": null, "version": null, "changes": {path: {"from": 1, "to": 2}},
    })
}

/// A stream of these events, whose connection closes after it.
fn stream_of(events: &[serde_json::Value]) -> Reply {
    let text = |event: &serde_json::Value| {
        let id = event["cursor"].as_str().unwrap();
        format!("event: change\nid: {id}\ndata: {event}\n\n")
    };
    let text: String = events.iter().map(text).collect();
    Reply::Last(format!(
        "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\nretry: 1\n{text}"
    ))
}

/// A stream of events about these paths, without what is released.
fn stream(events: &[(u64, &str)]) -> Reply {
    let events: Vec<_> = events.iter().map(|(revision, path)| event(*revision, path)).collect();
    stream_of(&events)
}

/// The event of a release of these agents.
fn release(revision: u64, agents: &[(&str, u64)]) -> serde_json::Value {
    let mut event = event(revision, MOVED);
    event["released"] = agents.iter().map(row).collect();
    event
}

fn not_modified(revision: u64) -> Reply {
    Reply::Answer(format!(
        "HTTP/1.1 304 x\r\netag: \"k3j9x0ab-s1\"\r\nchange-cursor: {}\r\n\r\n",
        cursor(revision)
    ))
}

async fn mirror(server: &Server) -> ReleasedMirror {
    let production: Label = "production".parse().unwrap();
    client(server).mirror(workspace()).label(production).await.unwrap()
}

async fn next(mirror: &mut ReleasedMirror) -> u64 {
    let changed = tokio::time::timeout(Duration::from_secs(20), mirror.changed());
    changed.await.unwrap().unwrap();
    mirror.get("writer").unwrap().version
}

const MOVED: &str = "agents/writer/labels/production";

#[tokio::test]
async fn a_mirror_reads_again_only_after_what_may_release_something_else() {
    let unavailable = || {
        answer(
            503,
            "retry-after: 0\r\n",
            r#"{"error":"storage is unavailable, try again"}"#,
        )
    };
    let server = Server::start([
        released(3, 1),
        // One that was read already, one of another label, an edit, and at last a deletion that changes nothing that is
        // shown.
        stream(&[
            (3, MOVED),
            (4, "agents/writer/labels/staging"),
            (5, "agents/writer/model"),
            (6, "agents/editor/is_active"),
        ]),
        not_modified(6),
        stream(&[(7, MOVED)]),
        // The failures pass within the attempts of one call, and after them.
        unavailable(),
        unavailable(),
        unavailable(),
        unavailable(),
        released(8, 2),
        stream(&[(8, MOVED), (9, MOVED)]),
        released(9, 3),
    ])
    .await;
    let mut mirror = mirror(&server).await;
    assert_eq!((mirror.get("writer").unwrap().version, mirror.agents().len()), (1, 1));
    assert_eq!(next(&mut mirror).await, 2);
    assert_eq!(next(&mut mirror).await, 3);
    let requests = server.requests();
    assert_eq!(requests.len(), 11);
    assert!(requests[0].contains("label=production"));
    assert!(requests[1].contains("label=production"), "{}", requests[1]);
    assert!(requests[2].contains("if-none-match: \"k3j9x0ab-s1\"\r\n"));
    assert!(requests[3].contains(&format!("after={}", cursor(6))), "{}", requests[3]);
}

#[tokio::test]
async fn a_mirror_takes_what_an_event_releases_without_a_request() {
    let server = Server::start([
        list(3, &[("writer", 1), ("editor", 5)]),
        stream_of(&[
            release(4, &[("writer", 2)]),
            release(5, &[("editor", 6), ("writer", 3)]),
            // One that was not released before: its place in the list is not known.
            release(6, &[("new", 1), ("writer", 4)]),
            // It was read already.
            release(7, &[("writer", 9)]),
            release(8, &[("writer", 5)]),
        ]),
        list(7, &[("writer", 4), ("new", 1), ("editor", 6)]),
    ])
    .await;
    let mut mirror = mirror(&server).await;
    let versions = |mirror: &ReleasedMirror| -> Vec<_> {
        let agents = mirror.agents().iter();
        agents
            .map(|agent| (agent.agent_id.to_string(), agent.version))
            .collect()
    };
    let before = mirror.snapshot();
    assert_eq!(next(&mut mirror).await, 2);
    assert_eq!(mirror.snapshot().cursor.revision(), 4);
    assert_eq!(before.get("writer").unwrap().version, 1, "a snapshot stays as it is");
    assert_eq!(next(&mut mirror).await, 3);
    assert_eq!(versions(&mirror), [("writer".into(), 3), ("editor".into(), 6)]);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(next(&mut mirror).await, 4);
    assert_eq!(mirror.agents().len(), 3);
    assert_eq!(next(&mut mirror).await, 5);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        !requests[2].contains("if-none-match"),
        "the tag is not that of this state"
    );
}

#[tokio::test]
async fn an_event_of_another_epoch_replaces_nothing() {
    let mut of_another = release(4, &[("writer", 2)]);
    of_another["cursor"] = json!(cursor(4).replacen('k', "l", 1));
    let server = Server::start([released(3, 1), stream_of(&[of_another]), released(5, 3)]).await;
    let mut mirror = mirror(&server).await;
    assert_eq!(next(&mut mirror).await, 3);
}

#[tokio::test]
async fn a_mirror_starts_again_where_the_feed_leads_no_further() {
    let server = Server::start([
        released(3, 1),
        answer(410, "", r#"{"error":"read the list again"}"#),
        released(1, 1),
        stream(&[(2, MOVED)]),
        released(2, 2),
        answer(401, "", r#"{"error":"invalid credentials"}"#),
    ])
    .await;
    let mut mirror = mirror(&server).await;
    assert_eq!(next(&mut mirror).await, 2, "the state after the restore was the same");
    let requests = server.requests();
    assert!(!requests[2].contains("if-none-match"), "the position is needed");
    assert!(requests[3].contains(&format!("after={}", cursor(1))), "{}", requests[3]);
    let error = mirror.changed().await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
    assert_eq!(mirror.get("writer").unwrap().version, 2, "the copy stays");
}

fn foreign() -> Reply {
    Reply::Answer("HTTP/1.1 404 x\r\ncontent-type: text/html\r\ncontent-length: 1\r\n\r\nx".to_owned())
}

/// A file with what the label released at this revision.
async fn file_of(folder: &Folder, revision: u64, version: u64) -> PathBuf {
    let path = folder.0.join("agents.json");
    let server = Server::start([released(revision, version)]).await;
    let production: Label = "production".parse().unwrap();
    let mirror = client(&server).mirror(workspace()).label(production).file(&path).await;
    mirror.unwrap();
    path
}

/// A folder that ends with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("agentcfg-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn an_answer_of_something_else_leaves_the_file_and_a_refusal_does_not() {
    let folder = Folder::new("foreign");
    let path = file_of(&folder, 3, 1).await;
    let html = || Reply::Answer("HTTP/1.1 200 x\r\ncontent-type: text/html\r\ncontent-length: 1\r\n\r\nx".to_owned());
    let gateway = || answer(401, "", r#"{"error":"of a gateway"}"#);
    let production: Label = "production".parse().unwrap();
    let start = async |server: &Server| {
        let made = client(server).mirror(workspace()).label(production.clone());
        made.file(&path).await
    };
    for (reply, then) in [(foreign(), foreign()), (html(), html()), (gateway(), foreign())] {
        let server = Server::start([reply, then, stream(&[(4, MOVED)]), released(4, 2)]).await;
        let mut mirror = start(&server).await.unwrap();
        assert!(mirror.is_from_file());
        // The proxy of the second answer passes too, where a poll follows.
        drop(tokio::time::timeout(Duration::from_millis(1), mirror.changed()).await);
    }
    let server = Server::start([answer(401, "x-request-id: r\r\n", r#"{"error":"invalid credentials"}"#)]).await;
    assert!(start(&server).await.unwrap_err().is_unauthorized());
    // Without the file, the URL may be wrong.
    let server = Server::start([foreign()]).await;
    let without = client(&server).mirror(workspace()).label(production.clone()).await;
    assert!(without.unwrap_err().is_foreign());
}

#[tokio::test]
async fn a_process_that_is_behind_leaves_the_file_of_another_one() {
    let folder = Folder::new("behind");
    let path = file_of(&folder, 7, 2).await;
    let production: Label = "production".parse().unwrap();
    let loaded = || {
        ReleasedFile::new(path.clone(), workspace(), production.clone())
            .load()
            .unwrap()
            .unwrap()
    };
    file_of(&folder, 5, 1).await;
    assert_eq!(loaded().cursor.revision(), 7);
    file_of(&folder, 8, 3).await;
    assert_eq!(loaded().cursor.revision(), 8);
    let text = std::fs::read_to_string(&path).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(saved["confirmed_at"].as_str().unwrap().ends_with('Z'), "{saved}");
    assert_eq!(
        std::fs::read_dir(&folder.0).unwrap().count(),
        1,
        "no temporary file is left"
    );
}

#[tokio::test]
async fn a_file_that_was_altered_is_not_read() {
    let folder = Folder::new("altered");
    let path = file_of(&folder, 3, 1).await;
    let production: Label = "production".parse().unwrap();
    let file = ReleasedFile::new(path.clone(), workspace(), production);
    let whole = std::fs::read_to_string(&path).unwrap();
    let without = format!("{{{}", &whole[20..]);
    for altered in [
        whole.replace("\"version\":1", "\"version\":2"),
        format!("{whole}\n"),
        without,
    ] {
        assert_ne!(altered, whole);
        std::fs::write(&path, &altered).unwrap();
        assert!(file.load().unwrap_err().to_string().contains("damaged"));
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(file.load().unwrap().unwrap().cursor.revision(), 3);
}

#[cfg(unix)]
#[tokio::test]
async fn a_change_is_told_although_the_call_was_dropped_while_it_was_saved() {
    let folder = Folder::new("dropped");
    let path = file_of(&folder, 3, 1).await;
    let server = Server::start([released(3, 1), stream(&[(4, MOVED)]), released(4, 2)]).await;
    let production: Label = "production".parse().unwrap();
    let mut mirror = client(&server)
        .mirror(workspace())
        .label(production)
        .file(&path)
        .await
        .unwrap();
    // A pipe in place of the file: the write waits until something opens the other end.
    std::fs::remove_file(&path).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let opened = tokio::task::spawn_blocking(move || std::fs::OpenOptions::new().write(true).open(path).unwrap());
    tokio::select! {
        _ = mirror.changed() => panic!("the write is under way"),
        pipe = opened => drop(pipe.unwrap()),
    }
    assert_eq!(next(&mut mirror).await, 2);
    assert!(mirror.file_error().is_none(), "{:?}", mirror.file_error());
}
