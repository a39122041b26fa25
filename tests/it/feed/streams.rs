use std::time::{Duration, Instant};

use agentcfg_client::Client;
use agentcfg_client::model::{After, AgentPatch, Precondition};
use agentcfg_tests::harness::{Server, Studio, eventually, scratch};
use rustix::process::Signal;
use serde_json::json;

use super::{changes, follow, read};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_stream_begins_with_a_bookmark_and_shows_each_change_at_once() {
    let studio = Studio::open();
    let mut events = follow(&studio, &studio.owner, "after=now");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(events.head.need(name), value);
    }
    assert_eq!(events.head.header("content-encoding"), None);
    events.head.need("x-ratelimit-remaining");
    let first = events.event().unwrap();
    assert_eq!(first.name, "bookmark");
    assert_eq!(first.id.as_deref(), Some(events.head.need("change-cursor")));
    assert!((1000..=5000).contains(&first.retry.unwrap()), "{first:?}");
    for number in 0..3 {
        let begun = Instant::now();
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
        let event = events.event().unwrap();
        assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
        assert_eq!(
            (event.name.as_str(), event.id.as_deref()),
            ("change", event.data["cursor"].as_str())
        );
        assert_eq!(event.data, read(&studio, "after=start").json()[2 + number]);
    }
}

#[test]
fn a_stream_resumes_after_the_last_event_id() {
    let studio = Studio::open();
    for number in 0..5 {
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
    }
    let mut events = follow(&studio, &studio.owner, "after=start");
    let revisions: Vec<u64> = (0..4).map(|_| events.revision()).collect();
    assert_eq!(revisions, [1, 2, 3, 4]);
    let id = events.find("change").id.unwrap();
    drop(events);
    let request = changes(&studio, &studio.owner, "after=start").header("Last-Event-ID", id.clone());
    let mut events = request.follow();
    assert_eq!(events.event().unwrap().id, Some(id));
    assert_eq!((events.revision(), events.revision()), (6, 7));
}

#[test]
fn the_end_of_a_credential_ends_its_stream_and_no_later_event_is_sent() {
    let studio = Studio::open();
    let key = studio.key("read");
    let user = "rita";
    studio.set_member(user, "member").expect(200);
    let (rita, admin) = (studio.server.token(user), studio.member("admin"));
    studio.set_member("lola", "admin").expect(200);
    let lola = studio.server.token("lola");
    let mut by_key = follow(&studio, &key.key, "after=now");
    let mut removed = follow(&studio, &rita, "after=now");
    let mut lowered = follow(&studio, &lola, "after=now");
    let mut stays = follow(&studio, &admin, "after=now");
    studio.revoke(&key);
    let target = format!("/api/workspaces/members?workspace_id={}&user_id={user}", studio.id);
    studio.server.delete(target).bearer(&studio.owner).send().expect(200);
    studio.set_member("lola", "member").expect(200);
    studio.create("late", &json!({})).expect(201);
    for (events, said) in [
        (&mut by_key, "invalid credentials"),
        (&mut removed, "member"),
        (&mut lowered, "permission"),
    ] {
        let begun = Instant::now();
        let mut last = None;
        while let Some(event) = events.event() {
            assert_ne!(event.data["target"]["id"], "late", "{event:?}");
            last = Some(event);
        }
        let last = last.unwrap();
        assert_eq!(last.name, "end");
        assert!(last.data["error"].as_str().unwrap().contains(said), "{last:?}");
        assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
    }
    loop {
        let event = stays.find("change");
        if event.data["target"]["id"] == "late" {
            break;
        }
    }
}

#[test]
fn a_stream_ends_when_the_token_or_the_key_expires() {
    let studio = Studio::open();
    let begun = Instant::now();
    let token = studio.server.fresh_token(&studio.user, 4);
    let soon = chrono::Utc::now() + chrono::TimeDelta::seconds(4);
    let key = studio.key_with(&json!({"scope": "read", "expires_at": soon.to_rfc3339()}));
    for mut events in [&token, &key.key].map(|credential| follow(&studio, credential, "after=now")) {
        let last = events.last();
        assert_eq!(
            (last.name.as_str(), last.data),
            ("end", json!({"error": "invalid credentials"}))
        );
        // Before the next bookmark, which comes after 15 s.
        assert!(begun.elapsed() < 12 * SECOND, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_stream_ends_with_the_overlap_of_a_rotation() {
    let studio = Studio::open();
    let key = studio.key("read");
    let mut events = follow(&studio, &key.key, "after=now");
    let begun = Instant::now();
    let rotate = studio.server.post(format!("/api/api-keys/rotate?key_id={}", key.id));
    let body = json!({"overlap_seconds": 1});
    rotate.bearer(&studio.owner).json(&body).send().expect(201);
    let last = events.last();
    assert_eq!(last.data, json!({"error": "invalid credentials"}), "{last:?}");
    assert!(
        (SECOND..10 * SECOND).contains(&begun.elapsed()),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn statuses_come_with_a_stream_that_asks_for_them() {
    let server = Server::builder()
        .set("status_ttl", "4")
        .set("default_plan", "enterprise")
        .start();
    let studio = Studio::on(&server);
    for agent in ["writer", "editor"] {
        studio.create(agent, &json!({})).expect(201);
    }
    let report = |body: serde_json::Value| {
        let target = format!("/api/agents/status?workspace_id={}&agent_id=writer", studio.id);
        server.put(target).bearer(&studio.owner).json(&body).send().expect(200)
    };
    let mut plain = follow(&studio, &studio.owner, "after=now");
    let mut events = follow(&studio, &studio.owner, "after=now&status=true");
    assert_eq!(events.event().unwrap().name, "bookmark");
    let first = events.event().unwrap();
    let entry = json!({
        "agent_id": "writer", "display_name": "Agent", "status": "offline",
        "current_task_id": null, "current_task_title": null, "reported_at": null,
    });
    assert_eq!((first.name.as_str(), first.id, first.data), ("status", None, entry));
    assert_eq!(events.event().unwrap().data["agent_id"], "editor");
    let begun = Instant::now();
    report(json!({"status": "working", "current_task_id": "T-7", "current_task_title": "Notes"}));
    let working = events.event().unwrap();
    assert!(begun.elapsed() < 10 * SECOND);
    assert_eq!(
        (&working.data["status"], &working.data["current_task_id"]),
        (&json!("working"), &json!("T-7"))
    );
    let aged = events.event().unwrap();
    assert_eq!(
        (&aged.data["agent_id"], &aged.data["status"]),
        (&json!("writer"), &json!("offline"))
    );
    assert_eq!(aged.data["reported_at"], working.data["reported_at"]);
    // The server rounds the time of the report down to a millisecond.
    let lifetime = 4 * SECOND - Duration::from_millis(1)..14 * SECOND;
    assert!(lifetime.contains(&begun.elapsed()), "{:?}", begun.elapsed());
    // A stream that did not ask has the bookmark alone.
    assert_eq!(plain.event().unwrap().name, "bookmark");
    assert!(plain.next_within(Duration::from_millis(300)).is_err());
}

#[test]
fn a_caller_has_ten_streams_and_a_closed_one_makes_room_at_once() {
    let studio = Studio::open();
    let key = studio.key("read").key;
    let mut streams: Vec<_> = (0..10).map(|_| follow(&studio, &key, "after=now")).collect();
    let request = changes(&studio, &key, "after=now").header("Accept", "text/event-stream");
    let refused = request.send().refused(429, &["10 streams"]);
    assert!(refused.number("retry-after") >= 1);
    follow(&studio, &studio.owner, "after=now");
    // Waiting for an answer in JSON takes no place.
    changes(&studio, &key, "after=now&wait=1").send().expect(200);
    streams.pop();
    eventually("the place of the closed stream is free", || {
        changes(&studio, &key, "after=now").follow().head.status == 200
    });
}

#[test]
fn a_server_has_max_streams() {
    let server = Server::builder().set("max_streams", "1").start();
    let studio = Studio::on(&server);
    let mut events = follow(&studio, &studio.owner, "after=now");
    events.event().unwrap();
    let request = changes(&studio, &studio.owner, "after=now").header("Accept", "text/event-stream");
    request.send().refused(429, &["as many streams as it may have, 1"]);
}

/// A client that does not read holds neither memory nor its place.
#[test]
fn a_stream_that_is_not_read_is_cut_off_and_frees_its_place() {
    let server = Server::builder()
        .set("max_streams", "1")
        .set("body_timeout", "1")
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .start();
    let studio = Studio::on(&server);
    studio.create("writer", &json!({})).expect(201);
    for round in 0..500 {
        // Each event has the text twice, so that all of them are longer than what the system buffers.
        let text = format!("{round}").repeat(1500);
        let persona: String = text
            .chars()
            .take(1500)
            .flat_map(|digit| [digit, 'é', '\u{1f980}'])
            .collect();
        studio.change("writer", &json!({"persona_prompt": persona})).expect(200);
    }
    let mut unread = follow(&studio, &studio.owner, "after=start");
    eventually("the place is free", || {
        changes(&studio, &studio.owner, "after=now").follow().head.status == 200
    });
    // What was received is whole events, and the client can resume after the last of them.
    let (mut last, mut count) = (String::new(), 0);
    while let Ok(Some(event)) = unread.next_within(SECOND) {
        last = event.id.unwrap_or(last);
        count += 1;
    }
    assert!((1..500).contains(&count), "{count} events arrived");
    eventually("the stream resumes", || {
        let request = changes(&studio, &studio.owner, "after=start").header("Last-Event-ID", &last);
        let mut events = request.follow();
        events.head.status == 200 && events.revision() == count
    });
}

#[test]
fn a_graceful_stop_ends_streams_in_order_and_they_resume_on_the_next_server() {
    let dir = scratch();
    let data = dir.path().join("data");
    let server = Server::builder().data(&data).start();
    let studio = Studio::on(&server);
    let mut events = follow(&studio, &studio.owner, "after=start");
    assert_eq!(events.revision(), 1);
    let id = events_cursor(&studio);
    let begun = Instant::now();
    server.signal(Signal::TERM);
    let last = events.last();
    assert_eq!(last.name, "end");
    assert!(last.data["error"].as_str().unwrap().contains("shutting down"));
    assert!(server.wait().success());
    assert!(begun.elapsed() < 10 * SECOND, "{:?}", begun.elapsed());
    let next = Server::builder().data(&data).start();
    let studio = Studio {
        server: &next,
        owner: next.token(&studio.user),
        ..studio
    };
    studio.create("writer", &json!({})).expect(201);
    let request = changes(&studio, &studio.owner, "after=start").header("Last-Event-ID", id);
    assert_eq!(request.follow().revision(), 2);
}

fn events_cursor(studio: &Studio<'_>) -> String {
    read(studio, "after=now").need("change-cursor").to_owned()
}

#[test]
fn the_clients_mirror_is_the_list() {
    let studio = Studio::open();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client: Client = studio.client();
        let mut mirror = client.mirror(studio.id).await.unwrap();
        let mut changes = client.changes(studio.id, After::Start);
        for number in 0..4 {
            studio
                .create(&format!("agent-{number}"), &json!({"parameters": {"wit": 0.7}}))
                .expect(201);
        }
        studio.remove("agent-1").expect(200);
        studio.change("agent-2", &json!({"role": "editor"})).expect(200);
        studio.restore("agent-1").expect(200);
        let patch = AgentPatch::default();
        let none = Precondition::None;
        client
            .update_agent(Some(studio.id), "agent-3", &patch, &none)
            .await
            .unwrap();
        let (list, cursor) = client
            .list_agents_with_cursor(studio.id, &Default::default())
            .await
            .unwrap();
        while mirror.cursor() != cursor {
            mirror.changed().await.unwrap();
        }
        let copy: Vec<_> = mirror.agents().into_iter().cloned().collect();
        assert_eq!(copy, list);
        for revision in 1..=cursor.revision() {
            assert_eq!(changes.next_change().await.unwrap().revision, revision);
        }
    });
}

#[test]
fn a_stream_that_follows_a_label_has_what_it_releases() {
    let studio = Studio::open();
    studio
        .create("writer", &json!({"persona_prompt": "You write."}))
        .expect(201);
    let mut following = follow(&studio, &studio.owner, "after=now&label=production");
    let mut without = follow(&studio, &studio.owner, "after=now");
    let target = format!(
        "/api/agents/labels?workspace_id={}&agent_id=writer&label=production",
        studio.id
    );
    let set = studio
        .server
        .put(&target)
        .bearer(&studio.owner)
        .json(&json!({"version": 1}));
    set.send().expect(200);
    let (with, plain) = (following.find("change").data, without.find("change").data);
    let released = format!("/api/agents/released?workspace_id={}&label=production", studio.id);
    assert_eq!(
        with["released"],
        studio
            .server
            .get(released)
            .bearer(&studio.owner)
            .send()
            .expect(200)
            .json()
    );
    assert_eq!(with["released"][0]["config"]["persona_prompt"], "You write.");
    let mut rest = with;
    rest.as_object_mut().unwrap().remove("released");
    assert_eq!(rest, plain);
    // A page is what the log has.
    assert_eq!(
        *read(&studio, "after=start&label=production")
            .json()
            .as_array()
            .unwrap()
            .last()
            .unwrap(),
        plain
    );

    let key = studio.key_with(&json!({"scope": "read", "label": "production"})).key;
    for (credential, query, status, says) in [
        (&studio.owner, "label=No%20label", 400, "label"),
        (&studio.owner, "lable=production", 400, "label"),
        (&key, "label=staging", 403, "production"),
    ] {
        let request = changes(&studio, credential, &format!("after=now&{query}"));
        let refused = request.header("Accept", "text/event-stream").send().expect(status);
        assert!(refused.error().contains(says), "{query}: {}", refused.error());
    }
    let refused = changes(&studio, &studio.owner, "after=start&label=No%20label").send();
    refused.expect(400);
}
