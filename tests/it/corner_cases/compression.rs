//! Responses in gzip for clients that accept it.

use agentcfg_tests::harness::{Request, Response, Server, Studio};
use serde_json::json;

/// A workspace whose list is long enough for compression.
fn studio() -> Studio<'static> {
    let studio = Studio::open();
    fill(&studio, 4, 500);
    studio
}

fn fill(studio: &Studio<'_>, agents: usize, length: usize) {
    for i in 0..agents {
        let prompt = format!("You are number {i}. ").repeat(length / 20);
        let created = studio.create(&format!("agent-{i}"), &json!({"persona_prompt": prompt}));
        created.expect(201);
    }
}

fn accepting_gzip(request: Request) -> Response {
    request.header("Accept-Encoding", "gzip").send()
}

/// Asserts a response without compression.
#[track_caller]
fn plain(response: Response) -> Response {
    assert_eq!(response.header("content-encoding"), None, "{response:?}");
    response
}

/// Asserts a response in gzip with the matching headers.
#[track_caller]
fn compressed(response: Response) -> Response {
    assert_eq!(response.need("content-encoding"), "gzip");
    assert_eq!(response.need("vary"), "Accept-Encoding");
    assert_eq!(response.number("content-length"), response.body.len() as i64);
    assert!(response.body.len() < response.plain_body().len());
    response
}

#[test]
fn a_list_in_gzip_is_the_same_list_and_shorter() {
    let studio = studio();
    let known = plain(studio.list());
    assert_eq!(known.need("vary"), "Accept-Encoding");
    for asked in ["gzip", "x-gzip", "gzip, deflate, br", "br;q=1, gzip;q=0.8", "*"] {
        let request = studio.list_request("").header("Accept-Encoding", asked);
        let list = compressed(request.send().expect(200));
        assert_eq!(list.plain_body(), known.body);
        assert_eq!(list.need("content-type"), "application/json");
        list.need("x-ratelimit-remaining");
    }
    // The compressed form of an older list is never returned.
    studio.change("agent-1", &json!({"role": "Changed"})).expect(200);
    assert_eq!(accepting_gzip(studio.list_request("")).json()[1]["role"], "Changed");
    assert_eq!(accepting_gzip(studio.list_request("")).json(), studio.list().json());
}

#[test]
fn without_accepting_gzip_the_response_is_plain_and_never_406() {
    let studio = studio();
    for asked in [
        "",
        "identity",
        "br",
        "gzip;q=0",
        "gzip;q=0.5, identity",
        "identity;q=0",
        "*;q=0",
        "nonsense,;,q=1",
    ] {
        let list = studio.list_request("").header("Accept-Encoding", asked).send();
        assert_eq!(plain(list.expect(200)).need("vary"), "Accept-Encoding", "{asked}");
    }
}

#[test]
fn each_encoding_has_its_own_tag_and_both_match() {
    let studio = studio();
    let tag = studio.list().etag();
    let other = accepting_gzip(studio.list_request("")).etag();
    assert_eq!(other, format!("{}-gzip\"", tag.trim_end_matches('"')));
    for known in [&tag, &other, &format!("\"x\", W/{other}")] {
        for method in ["GET", "HEAD"] {
            let target = format!("/api/agents/configs?workspace_id={}", studio.id);
            let request = studio.server.request(method, target).bearer(&studio.owner);
            let request = request.header("If-None-Match", known);
            let answer = plain(request.clone().send().expect(304));
            assert_eq!((&answer.etag(), answer.need("vary")), (&tag, "Accept-Encoding"));
            let answer = plain(accepting_gzip(request).expect(304));
            assert_eq!((&answer.etag(), answer.need("vary")), (&other, "Accept-Encoding"));
        }
    }
    studio.change("agent-0", &json!({})).expect(200);
    let stale = studio.list_request("").header("If-None-Match", other);
    compressed(accepting_gzip(stale).expect(200));
}

#[test]
fn head_has_the_headers_of_get() {
    let studio = studio();
    for target in [
        format!("/api/agents/configs?workspace_id={}", studio.id),
        format!("/api/agents/configs?workspace_id={}&limit=3", studio.id),
        "/openapi.json".into(),
    ] {
        let get = compressed(accepting_gzip(studio.server.get(&target).bearer(&studio.owner)));
        let head = accepting_gzip(studio.server.request("HEAD", &target).bearer(&studio.owner));
        for field in ["content-encoding", "content-length", "content-type", "vary", "etag"] {
            assert_eq!(head.header(field), get.header(field), "{field} of {target}");
        }
    }
}

#[test]
fn every_long_response_is_compressed() {
    let studio = studio();
    let known = studio.server.get("/openapi.json").send();
    let again = compressed(accepting_gzip(studio.server.get("/openapi.json")));
    assert_eq!(again.plain_body(), plain(known).body);
    assert!(again.body.len() * 4 < again.plain_body().len());
    for _ in 0..12 {
        studio.key("read");
    }
    for path in ["/api/audit-log", "/api/api-keys"] {
        let request = studio.server.get(format!("{path}?workspace_id={}", studio.id));
        let request = request.bearer(&studio.owner);
        let known = plain(request.clone().send().expect(200));
        assert_eq!(known.need("vary"), "Accept-Encoding");
        assert_eq!(compressed(accepting_gzip(request)).plain_body(), known.body);
    }
    let long = json!({"persona_prompt": "z".repeat(2000)});
    let changed = accepting_gzip(studio.on_agent("PATCH", "agent-0").json(&long));
    compressed(changed.expect(200));
    let create = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    compressed(accepting_gzip(create.json(&studio.agent("new", &long))).expect(201));
    let events = format!("/api/changes?workspace_id={}&after=start", studio.id);
    compressed(accepting_gzip(studio.server.get(events).bearer(&studio.owner)).expect(200));
    // A refusal, and what a tool of an assistant answers.
    let unknown: serde_json::Map<_, _> = (0..100).map(|i| (format!("unknown_{i}"), json!(1))).collect();
    let create = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    compressed(accepting_gzip(create.json(&json!(unknown))).expect(400));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let list = studio.server.post("/mcp").bearer(&studio.owner).json(&list);
    let known = plain(list.clone().send().expect(200));
    assert_eq!(compressed(accepting_gzip(list)).plain_body(), known.body);
}

#[test]
fn what_is_streamed_is_compressed_as_it_goes() {
    let studio = Studio::open();
    fill(&studio, 40, 5000);
    for i in 0..300 {
        studio
            .change(
                &format!("agent-{}", i % 40),
                &json!({"role": format!("r{i}"), "persona_prompt": format!("{i} ").repeat(1200)}),
            )
            .expect(200);
    }
    for (path, more) in [("/api/audit-log", "&limit=300"), ("/api/workspaces/export", "")] {
        let request = studio.server.get(format!("{path}?workspace_id={}{more}", studio.id));
        let answer = accepting_gzip(request.bearer(&studio.owner)).expect(200);
        assert_eq!(
            (answer.need("content-encoding"), answer.need("vary")),
            ("gzip", "Accept-Encoding")
        );
        let plain = answer.plain_body();
        assert!(
            plain.len() > 1 << 20 && answer.body.len() < plain.len(),
            "{} of {}",
            answer.body.len(),
            plain.len()
        );
        match path {
            "/api/audit-log" => assert_eq!(answer.json().as_array().unwrap().len(), 300),
            _ => assert!(plain.ends_with(b"}\n")),
        }
    }
}

#[test]
fn short_responses_stay_plain() {
    let studio = studio();
    for (answer, status) in [
        (accepting_gzip(studio.list_request("&limit=1&offset=9")), 200),
        (accepting_gzip(studio.server.get("/healthz")), 200),
        (accepting_gzip(studio.server.get("/nowhere")), 404),
        (accepting_gzip(studio.server.get("/api/workspaces")), 401),
        (
            accepting_gzip(studio.list_request(&format!("&limit={}", "9".repeat(3000)))),
            400,
        ),
        (
            accepting_gzip(studio.on_agent("PATCH", "agent-0").json(&json!({}))),
            200,
        ),
    ] {
        let vary = plain(answer.expect(status));
        assert!(vary.header("vary").is_none_or(|vary| vary == "Accept-Encoding"));
    }
}

#[test]
fn the_list_of_one_keeps_the_tag_of_the_record() {
    let studio = studio();
    let long = json!({"persona_prompt": "z".repeat(5000)});
    let tag = studio.create("long", &long).etag();
    for more in ["&agent_id=long", "&agent_id=long&limit=5"] {
        let one = compressed(accepting_gzip(studio.list_request(more)));
        assert_eq!(one.etag(), tag);
        let known = studio.list_request(more).header("If-None-Match", &tag);
        let unchanged = accepting_gzip(known).expect(304);
        assert_eq!(unchanged.etag(), tag);
    }
    // A compressing proxy may have changed the tag in the same way.
    let through = format!("{}-gzip\"", tag.trim_end_matches('"'));
    let change = studio.on_agent("PATCH", "long").json(&json!({}));
    change
        .clone()
        .header("If-Match", format!("W/{through}"))
        .send()
        .expect(412);
    change.clone().header("If-Match", &through).send().expect(200);
    change.header("If-Match", through).send().expect(412);
}

#[test]
fn pages_of_a_long_list_are_complete_in_both_encodings() {
    let studio = Studio::open();
    fill(&studio, 30, 5000);
    let all = studio.list().json();
    for (more, expected) in [
        ("", &all.as_array().unwrap()[..]),
        ("&offset=1", &all.as_array().unwrap()[1..]),
        ("&limit=29", &all.as_array().unwrap()[..29]),
        ("&limit=20&offset=5", &all.as_array().unwrap()[5..25]),
        ("&limit=5&offset=5", &all.as_array().unwrap()[5..10]),
    ] {
        let page = plain(studio.list_request(more).send().expect(200));
        assert_eq!(page.json().as_array().unwrap(), expected, "{more}");
        assert_eq!(page.number("content-length"), page.body.len() as i64);
        assert_eq!(
            compressed(accepting_gzip(studio.list_request(more))).plain_body(),
            page.body
        );
    }
}

#[test]
fn vary_names_origin_and_accept_encoding() {
    let server = Server::builder().set("cors_origins", "https://app.example.com").start();
    let answer = accepting_gzip(server.get("/openapi.json"));
    let varies: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "vary").collect();
    assert_eq!(varies.len(), 2, "{answer:?}");
}

#[test]
fn a_setting_turns_compression_off() {
    let server = Server::builder().set("compression", "false").start();
    let answer = plain(accepting_gzip(server.get("/openapi.json")));
    assert_eq!(answer.header("vary"), None);
}
