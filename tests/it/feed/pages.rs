use std::time::{Duration, Instant};

use agentcfg_tests::harness::Studio;
use serde_json::json;

use super::{changes, read, revisions};

#[test]
fn a_list_has_the_cursor_of_the_changes_after_it() {
    let studio = Studio::open();
    studio.create("writer", &json!({})).expect(201);
    let list = studio.list();
    let cursor = list.need("change-cursor").to_owned();
    for more in [
        "&agent_id=writer",
        "&agent_id=none",
        "&state=all",
        "&limit=1",
        "&offset=9",
    ] {
        let part = studio.list_request(more).send().expect(200);
        assert_eq!(part.need("change-cursor"), cursor, "{more}");
    }
    let known = studio.list_request("").header("If-None-Match", list.etag());
    assert_eq!(known.send().expect(304).need("change-cursor"), cursor);
    let zipped = studio.list_request("").header("Accept-Encoding", "gzip");
    assert_eq!(zipped.send().expect(200).need("change-cursor"), cursor);

    let none = read(&studio, &format!("after={cursor}"));
    assert_eq!((none.json(), none.need("change-cursor")), (json!([]), &*cursor));
    studio.change("writer", &json!({"model": "gpt-5.5"})).expect(200);
    let record = studio.list().json()[0].clone();
    let page = read(&studio, &format!("after={cursor}"));
    let event = page.json()[0].clone();
    assert_eq!(event["cursor"], *page.need("change-cursor"));
    assert_ne!(event["cursor"], cursor);
    assert_eq!(event["type"], "agent.updated");
    assert_eq!(event["target"], json!({"type": "agent", "id": "writer"}));
    assert_eq!(event["actor"], json!({"type": "user", "id": studio.user}));
    assert_eq!(event["changes"]["model"], json!({"from": null, "to": "gpt-5.5"}));
    assert_eq!(event["changes"]["updated_at"]["to"], record["updated_at"]);
    assert_eq!(event["message"], json!(null));
    let entry = studio.audit()[0].clone();
    for field in ["id", "created_at", "actor", "target"] {
        assert_eq!(event[field], entry[field], "the event is the audit entry");
    }
    let fields: Vec<&String> = event.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 10, "{fields:?}");
    assert_eq!(page.need("cache-control"), "no-store, no-transform");
    // The list now is the one of that cursor.
    assert_eq!(studio.list().need("change-cursor"), page.need("change-cursor"));
}

#[test]
fn pages_are_in_order_and_bounded() {
    let studio = Studio::open();
    for number in 0..12 {
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
    }
    let all: Vec<u64> = (1..=14).collect();
    assert_eq!(revisions(&read(&studio, "after=start")), all, "a plan was set too");
    let first = read(&studio, "after=start&limit=5");
    assert_eq!(revisions(&first), [1, 2, 3, 4, 5]);
    let next = format!("after={}&limit=1000", first.need("change-cursor"));
    assert_eq!(revisions(&read(&studio, &next)), all[5..]);
    let now = read(&studio, "after=now");
    assert!(revisions(&now).is_empty());
    assert!(now.need("change-cursor").ends_with("-c14"));
    // HEAD answers as GET, without the body.
    let target = format!("/api/changes?workspace_id={}&after=start&limit=5", studio.id);
    let head = studio
        .server
        .request("HEAD", target)
        .bearer(&studio.owner)
        .send()
        .expect(200);
    assert_eq!(head.need("change-cursor"), first.need("change-cursor"));
}

#[test]
fn a_query_that_breaks_a_rule_is_400_and_names_it() {
    let studio = Studio::open();
    let other = studio.sibling();
    let foreign = read(&other, "after=now").need("change-cursor").to_owned();
    let ask = |query: &str| changes(&studio, &studio.owner, query).send();
    ask("").refused(400, &["after", "required", "Last-Event-ID"]);
    ask("after=").refused(400, &["after", "required"]);
    ask("after=yesterday").refused(400, &["the query parameter after", "cursor"]);
    ask("after=NOW").refused(400, &["after"]);
    ask(&format!("after={foreign}")).refused(400, &["another workspace"]);
    for (query, name) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("wait=31", "wait"),
        ("wait=-1", "wait"),
        ("status=yes", "status"),
    ] {
        ask(&format!("after=now&{query}")).refused(400, &[name]);
    }
    ask("after=now&limit=0&wait=31").refused(400, &["limit", "wait"]);
    ask("after=now&after=start").refused(400, &["once"]);
    let header = |value: &str| {
        changes(&studio, &studio.owner, "after=start")
            .header("Last-Event-ID", value)
            .send()
    };
    header("now").refused(400, &["Last-Event-ID"]);
    header(&foreign).refused(400, &["Last-Event-ID", "another workspace"]);
    // The header replaces the parameter.
    let cursor = read(&studio, "after=start&limit=1").need("change-cursor").to_owned();
    assert_eq!(revisions(&header(&cursor).expect(200)), [2]);
}

#[test]
fn a_cursor_of_another_epoch_or_from_the_future_is_410() {
    let studio = Studio::open();
    let cursor = read(&studio, "after=now").need("change-cursor").to_owned();
    // A part of the workspace's identifier may begin with "-c2", too.
    let future = format!("{}-c3", cursor.strip_suffix("-c2").unwrap());
    let (epoch, rest) = cursor.split_once('-').unwrap();
    let other: String = epoch.chars().rev().collect::<String>().replace('0', "1");
    for gone in [
        future,
        format!("{other}x-{rest}").replace(&format!("{other}x"), "zzzzzzzz"),
    ] {
        let request = changes(&studio, &studio.owner, &format!("after={gone}"));
        request.send().refused(410, &["read the list again"]);
        request
            .header("Accept", "text/event-stream")
            .send()
            .refused(410, &["read the list again"]);
    }
    let eve = studio.outsider();
    changes(&studio, &eve, &format!("after={cursor}9"))
        .send()
        .refused(403, &["member"]);
}

#[test]
fn without_the_audit_log_agents_are_shown_alone() {
    let studio = Studio::open();
    let viewer = studio.member("viewer");
    let key = studio.key("read").key;
    studio.create("writer", &json!({})).expect(201);
    studio.member("member");
    for credential in [&viewer, &key] {
        let page = changes(&studio, credential, "after=start").send().expect(200);
        assert_eq!(page.json()[0]["type"], "agent.created");
        assert_eq!(page.json().as_array().unwrap().len(), 1);
        let last = read(&studio, "after=now").need("change-cursor").to_owned();
        assert_eq!(page.need("change-cursor"), last, "the cursor moves all the same");
    }
}

#[test]
fn a_wait_ends_with_its_credential_and_401_has_no_rate_headers() {
    let studio = Studio::open();
    let key = studio.key("read");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| changes(&studio, &key.key, "after=now&wait=25").send());
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished());
        studio.revoke(&key);
        let refused = waiting.join().unwrap().expect(401);
        assert_eq!(refused.header("x-ratelimit-remaining"), None, "{refused:?}");
    });
}

#[test]
fn an_empty_answer_waits_for_an_event_that_is_shown() {
    let studio = Studio::open();
    let viewer = studio.member("viewer");
    let begun = Instant::now();
    let none = changes(&studio, &viewer, "after=now&wait=1").send().expect(200);
    assert_eq!(none.json(), json!([]));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let page = changes(&studio, &viewer, "after=now&wait=25").send().expect(200);
            (page, Instant::now())
        });
        std::thread::sleep(Duration::from_millis(300));
        studio.member("member");
        std::thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished(), "a member is not shown to a viewer");
        studio.create("writer", &json!({})).expect(201);
        let made = Instant::now();
        let (page, answered) = waiting.join().unwrap();
        assert_eq!(page.json()[0]["type"], "agent.created");
        assert!(answered.saturating_duration_since(made) < Duration::from_secs(5));
    });
    // An event that is there ends the wait before it begins.
    let begun = Instant::now();
    assert!(!revisions(&read(&studio, "after=start&wait=25")).is_empty());
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_last_event_wins_over_any_after() {
    let studio = Studio::open();
    studio.create("writer", &json!({})).expect(201);
    let cursor = studio.list().need("change-cursor").to_owned();
    studio.change("writer", &json!({"model": "gpt-5"})).expect(200);
    for after in ["", "&after=start", "&after=no-cursor", "&after="] {
        let request = changes(&studio, &studio.owner, &format!("limit=10{after}")).header("Last-Event-ID", &*cursor);
        assert_eq!(revisions(&request.send().expect(200)), [4], "{after}");
    }
    let broken = changes(&studio, &studio.owner, "after=start").header("Last-Event-ID", "no-cursor");
    broken.send().refused(400, &["Last-Event-ID"]);
}

#[test]
fn the_members_of_a_definition_stay_in_their_order() {
    let studio = Studio::open();
    let definition = r#"{"z":1,"a":{"y":2,"b":3}}"#;
    let body = format!(
        r#"{{"workspace_id":"{}","agent_id":"a","display_name":"A","definition":{definition}}}"#,
        studio.id
    );
    let create = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    create.text(body).send().expect(201);
    let target = format!("/api/changes?workspace_id={}&after=start", studio.id);
    let page = studio.server.get(target).bearer(&studio.owner).send().expect(200);
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(
        text.contains(&format!(r#""definition":{{"from":null,"to":{definition}}}"#)),
        "{text}"
    );
}
