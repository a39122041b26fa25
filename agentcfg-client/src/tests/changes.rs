use std::time::Duration;

use agentcfg_core::model::After;
use serde_json::{Value, json};

use super::server::{Reply, Server, answer, hang_up};
use super::{client, workspace};
use crate::{ChangeStream, Followed};

fn cursor(revision: u64) -> String {
    format!("k3j9x0ab-{}-c{revision}", workspace())
}

/// The event of a revision, which changes an agent's model.
fn event(revision: u64) -> Value {
    json!({
        "cursor": cursor(revision), "revision": revision, "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "type": "agent.updated", "created_at": "2026-11-20T10:05:41.007Z",
        "actor": {"type": "user", "id": "ada"}, "target": {"type": "agent", "id": "writer"},
        "message": null, "version": null,
        "changes": {
            "model": {"from": null, "to": format!("model-{revision}")},
            "updated_at": {"from": null, "to": "2026-11-20T10:05:41.007Z"},
        },
    })
}

fn change(revision: u64) -> String {
    format!("event: change\nid: {}\ndata: {}\n\n", cursor(revision), event(revision))
}

fn bookmark(revision: u64) -> String {
    format!("event: bookmark\nid: {}\ndata: {{}}\n\n", cursor(revision))
}

/// A stream of this text, whose connection closes after it.
fn stream(text: &str) -> Reply {
    Reply::Last(format!(
        "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\nretry: 1\n{text}"
    ))
}

async fn revision(changes: &mut ChangeStream) -> u64 {
    changes.next_change().await.unwrap().revision
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_until_the_credential_ends() {
    let whole = format!("{}{}", bookmark(1), change(2));
    let cut = &change(4)[..60];
    let server = Server::start([
        stream(&whole),
        hang_up(),
        answer(
            503,
            "retry-after: 0\r\n",
            r#"{"error":"storage is unavailable, try again"}"#,
        ),
        answer(429, "retry-after: 0\r\n", r#"{"error":"too many streams"}"#),
        stream(&format!("{}{cut}", change(3))),
        stream(&format!("{}event: end\ndata: {{\"error\":\"later\"}}\n\n", change(4))),
        answer(401, "", r#"{"error":"invalid credentials"}"#),
    ])
    .await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    for expected in [2, 3, 4] {
        assert_eq!(revision(&mut changes).await, expected);
    }
    let error = changes.next().await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
    let requests = server.requests();
    let after: Vec<&str> = requests
        .iter()
        .map(|request| {
            request
                .split("after=")
                .nth(1)
                .unwrap()
                .split([' ', '&'])
                .next()
                .unwrap()
        })
        .collect();
    let (two, three, four) = (cursor(2), cursor(3), cursor(4));
    assert_eq!(after, ["now", &two, &two, &two, &two, &three, &four]);
    assert!(requests[0].contains("accept: text/event-stream\r\n"));
}

#[tokio::test]
async fn statuses_and_bookmarks_are_given_and_events_of_later_releases_are_passed_over() {
    let status = json!({
        "agent_id": "writer", "display_name": "Writer", "status": "idle", "current_task_id": null,
        "current_task_title": null, "reported_at": null,
    });
    let text = format!(
        "{}event: status\ndata: {status}\n\nevent: weather\ndata: rain\n\nevent: gone\ndata: {{\"error\":\"x\"}}\n\n",
        bookmark(7)
    );
    let server = Server::start([stream(&text), answer(410, "", r#"{"error":"read the list again"}"#)]).await;
    let mut changes = client(&server).changes(workspace(), After::Start).with_status();
    assert_eq!(
        changes.next().await.unwrap(),
        Followed::Bookmark(cursor(7).parse().unwrap())
    );
    assert_eq!(changes.position().to_string(), cursor(7));
    let Followed::Status(entry) = changes.next().await.unwrap() else {
        panic!("no status")
    };
    assert_eq!(entry.agent_id, "writer");
    assert!(changes.next().await.unwrap_err().is_gone());
    assert!(server.requests()[0].contains("status=true"));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_an_error() {
    for bad in ["event: change\ndata: {}\n\n", "event: bookmark\nid: x\ndata: {}\n\n"] {
        let server = Server::start([stream(bad)]).await;
        let error = client(&server)
            .changes(workspace(), After::Now)
            .next()
            .await
            .unwrap_err();
        assert_eq!(error.status(), None, "{error:?}");
    }
}

fn list(revision: u64, model: &str) -> Reply {
    let agent = super::AGENT.replace(r#""model":null"#, &format!(r#""model":"{model}""#));
    answer(
        200,
        &format!("change-cursor: {}\r\n", cursor(revision)),
        &format!("[{agent}]"),
    )
}

#[tokio::test]
async fn a_mirror_follows_the_changes_and_reads_the_list_again_when_it_must() {
    let server = Server::start([
        list(1, "first"),
        stream(&change(2)),
        answer(410, "", r#"{"error":"read the list again"}"#),
        list(9, "after the restore"),
        stream(&change(10)),
    ])
    .await;
    let mut mirror = client(&server).mirror(workspace()).await.unwrap();
    let writer = "writer".parse().unwrap();
    let model = |mirror: &crate::Mirror| mirror.get(&writer).unwrap().model.clone().unwrap();
    assert_eq!((model(&mirror), mirror.cursor().revision()), ("first".into(), 1));
    for expected in ["model-2", "after the restore", "model-10"] {
        tokio::time::timeout(Duration::from_secs(20), mirror.changed())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(model(&mirror), expected);
    }
    assert_eq!(mirror.agents().len(), 1);
}

#[tokio::test]
async fn a_page_is_read_with_its_cursor() {
    let body = json!([event(3)]).to_string();
    let server = Server::start([
        answer(200, &format!("change-cursor: {}\r\n", cursor(3)), &body),
        answer(200, "", "[]"),
    ])
    .await;
    let client = client(&server);
    let page = client
        .read_changes(workspace(), After::Start, Some(5), Duration::from_secs(3))
        .await
        .unwrap();
    assert_eq!((page.events.len(), page.cursor.revision()), (1, 3));
    assert!(server.requests()[0].contains("after=start&limit=5&wait=3 "));
    let error = client
        .read_changes(workspace(), After::Now, None, Duration::ZERO)
        .await
        .unwrap_err();
    assert!(error.message().contains("Change-Cursor"), "{error}");
}
