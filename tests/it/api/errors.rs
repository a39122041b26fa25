//! Errors.

use agentcfg_tests::harness::{Response, Studio};
use serde_json::{Value, json};

/// One refused request for each status that a request can cause.
fn refusals() -> Vec<(u16, Response)> {
    let studio = Studio::on_plan("free");
    let limited = studio.key_with(&json!({"rate_limit": 1})).key;
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    studio.server.get(&target).bearer(&limited).send().expect(200);
    for id in ["a", "b", "c"] {
        studio.create(id, &Value::Null).expect(201);
    }
    let server = studio.server;
    vec![
        (400, server.get("/api/agents/configs").bearer(&studio.owner).send()),
        (400, studio.create("Bad Id", &Value::Null)),
        (400, server.patch(&target).bearer(&studio.owner).json(&json!({})).send()),
        (400, server.delete(&target).bearer(&studio.owner).send()),
        (401, server.get(&target).send()),
        (403, server.get(&target).bearer(studio.outsider()).send()),
        (404, studio.change("nobody", &json!({}))),
        (404, studio.remove("nobody")),
        (409, studio.create("a", &Value::Null)),
        (422, studio.create("d", &Value::Null)),
        (429, server.get(&target).bearer(&limited).send()),
    ]
}

#[test]
fn each_cause_has_its_status_and_a_message_in_error_alone() {
    for (status, response) in refusals() {
        let response = response.expect(status);
        assert!(response.error().chars().count() > 8, "{response:?}");
    }
}

#[test]
fn a_message_is_for_people_and_shows_no_internals() {
    for (_, response) in refusals() {
        let message = response.error();
        for internal in ["redb", "panicked", "src/", "Some(", "Err(", "::"] {
            assert!(!message.contains(internal), "{message}");
        }
    }
}

#[test]
fn a_400_names_the_faulty_fields_in_a_header_and_the_body_has_the_message_alone() {
    let studio = Studio::open();
    let long = "x".repeat(101);
    let body = json!({
        "display_name": long, "capabilities": ["a", ""], "parameters": {"gr\u{f6}\u{df}e, x": "y"}, "colour": "#fff",
    });
    let refused = studio.create("a", &body).expect(400);
    let names = "display_name, capabilities[1], parameters.gr%C3%B6%C3%9Fe%2C%20x, colour";
    assert_eq!(refused.need("fault-fields"), names);
    assert_eq!(refused.json(), json!({ "error": refused.error() }));
    for place in [
        "display_name must",
        "capabilities[1] must",
        "colour is not a known field",
    ] {
        assert!(refused.error().contains(place), "{refused:?}");
    }
    studio.create("a", &Value::Null).expect(201);
    let faulty = studio.change("a", &json!({"role": 7})).expect(400);
    assert_eq!(faulty.need("fault-fields"), "role");
    let text = studio.on_agent("PATCH", "a").text("no JSON");
    assert_eq!(text.send().expect(400).need("fault-fields"), "body");

    let labels = format!(
        "/api/agents/labels?workspace_id={}&agent_id=a&label=production",
        studio.id
    );
    let neither = studio
        .server
        .put(labels)
        .bearer(&studio.owner)
        .json(&json!({}))
        .send()
        .expect(400);
    assert_eq!(neither.need("fault-fields"), "version, label");
    let from_to = format!("/api/usage?workspace_id={}&from=2026-11-20&to=2026-11-19", studio.id);
    let parameter = studio.server.get(from_to).bearer(&studio.owner).send().expect(400);
    // A day alone is no moment.
    assert_eq!(parameter.need("fault-fields"), "from, to");

    for (target, names) in [
        ("agents/released?", "label"),
        ("agents/released?label=p&foo=1", "foo"),
        ("agents/released?label=p&label=q", "label"),
        ("agents/configs?revision=99999", "revision"),
        ("agents/configs?at=2000-01-01T00:00:00Z", "at"),
        ("agents/configs?at=2000-01-01T00:00:00Z&revision=1", "at, revision"),
        ("agents/version?agent_id=a&version=1&label=p", "version, label"),
        ("agents/configs?workspace_id=x", "workspace_id"),
        ("agents/labels/history?label=latest", "label"),
        ("changes?", "after"),
        ("changes?after=e-01a229cf-87b5-74a8-b0f7-45403edef3fe-c3", "after"),
        ("agents/diff?from=1&to=2", "from"),
    ] {
        let workspace = match target.contains("workspace_id") {
            true => String::new(),
            false => format!("&workspace_id={}", studio.id),
        };
        let request = studio.server.get(format!("/api/{target}{workspace}"));
        let refused = request.bearer(&studio.owner).send().expect(400);
        assert_eq!(refused.need("fault-fields"), names, "{target}: {refused:?}");
    }
    let path = studio
        .server
        .get("/api/agents/%FF")
        .bearer(&studio.owner)
        .send()
        .expect(400);
    assert_eq!(path.error(), "the path must be percent-encoded UTF-8");

    // Answers that are no 400 have none.
    let taken = studio.create("a", &Value::Null).expect(409);
    let done = studio.change("a", &json!({"role": "author"})).expect(200);
    for answer in [taken, done] {
        assert_eq!(answer.header("fault-fields"), None, "{answer:?}");
    }
}

#[test]
fn a_body_of_many_faults_has_a_bounded_header() {
    let studio = Studio::open();
    let unknown = (0..20_000).map(|number| (format!("field{number}"), Value::Null));
    let refused = studio.create("a", &Value::Object(unknown.collect())).expect(400);
    let named = refused.need("fault-fields");
    assert!((1000..=1024).contains(&named.len()), "{named}");
    assert!(named.split(", ").all(|name| name.starts_with("field")), "{named}");
}
