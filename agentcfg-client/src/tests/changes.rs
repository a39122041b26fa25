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

/// The answer of a poll.
fn page(revision: u64, events: &[u64]) -> Reply {
    let events: Vec<Value> = events.iter().map(|revision| event(*revision)).collect();
    let head = format!("change-cursor: {}\r\n", cursor(revision));
    answer(200, &head, &json!(events).to_string())
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
        page(2, &[]),
        answer(
            503,
            "retry-after: 0\r\nx-request-id: r\r\n",
            r#"{"error":"storage is unavailable, try again"}"#,
        ),
        answer(
            503,
            "x-request-id: r\r\n",
            r#"{"error":"storage is unavailable, try again"}"#,
        ),
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
    assert_eq!(after, ["now", &two, &two, &two, &two, &two, &three, &four]);
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

/// What each request asks for: a stream, or a poll that waits so many seconds.
fn asked(server: &Server) -> Vec<String> {
    let one = |request: &String| {
        if request.contains("accept: text/event-stream") {
            return "stream".to_owned();
        }
        let wait = request
            .split("wait=")
            .nth(1)
            .and_then(|rest| rest.split([' ', '&']).next());
        format!("poll {}", wait.unwrap_or("0"))
    };
    server.requests().iter().map(one).collect()
}

#[tokio::test]
async fn what_a_stream_does_not_bring_is_polled_and_then_polls_replace_it() {
    let server = Server::start([
        stream(""),
        page(2, &[2]),
        stream(""),
        page(2, &[]),
        stream(""),
        page(3, &[3]),
        page(4, &[4]),
        answer(401, "x-request-id: r\r\n", r#"{"error":"invalid credentials"}"#),
    ])
    .await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    for expected in [2, 3] {
        assert_eq!(revision(&mut changes).await, expected);
    }
    // The polls are two seconds apart.
    tokio::time::pause();
    assert_eq!(revision(&mut changes).await, 4);
    assert!(changes.next_change().await.unwrap_err().is_unauthorized());
    let streams = ["stream", "poll 0", "stream", "poll 0", "stream"];
    assert_eq!(asked(&server)[..5], streams);
    assert_eq!(asked(&server)[5..], ["poll 0", "poll 10", "poll 10"]);
}

#[tokio::test]
async fn polls_replace_a_stream_that_the_server_has_no_room_for() {
    let server = Server::start([
        answer(429, "retry-after: 30\r\n", r#"{"error":"too many streams"}"#),
        page(2, &[2]),
    ])
    .await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    // A call that is dropped while the poll is under way begins it not again.
    let is_asked = async {
        while server.requests().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    let early = tokio::select! {
        biased;
        () = is_asked => None,
        event = changes.next_change() => Some(event.unwrap().revision),
    };
    let found = match early {
        Some(found) => found,
        None => revision(&mut changes).await,
    };
    assert_eq!(found, 2);
    assert_eq!(asked(&server), ["stream", "poll 0"]);
}

#[tokio::test]
async fn a_page_of_a_proxy_ends_no_stream_of_a_server_that_is_known() {
    let foreign =
        || Reply::Answer("HTTP/1.1 404 x\r\ncontent-type: text/html\r\ncontent-length: 1\r\n\r\nx".to_owned());
    let server = Server::start([stream(&change(1)), foreign(), page(2, &[2])]).await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    for expected in [1, 2] {
        assert_eq!(revision(&mut changes).await, expected);
    }
    let server = Server::start([foreign()]).await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    assert!(changes.next().await.unwrap_err().is_foreign(), "the URL may be wrong");
}

#[tokio::test]
async fn comments_of_a_proxy_keep_no_stream_alive() {
    let (head, comment) = (
        format!(
            "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n{}",
            bookmark(1)
        ),
        ": still here\n".to_owned(),
    );
    let server = Server::start([Reply::Drip(head, comment, Duration::from_secs(20)), stream(&change(2))]).await;
    let mut changes = client(&server).changes(workspace(), After::Now);
    let found = tokio::time::timeout(Duration::from_secs(3600), revision(&mut changes));
    assert_eq!(found.await.unwrap(), 2);
}
