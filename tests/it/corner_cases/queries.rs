//! Query parameters.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn a_parameter_given_twice_is_400_and_named() {
    let studio = Studio::open();
    for more in [
        format!("&workspace_id={}", studio.id),
        "&limit=1&limit=1".into(),
        "&x=1&x=2".into(),
        "&a&%61".into(),
    ] {
        studio.list_request(&more).send().refused(400, &["once"]);
    }
}

#[test]
fn the_endpoints_of_agents_and_status_ignore_unknown_parameters_that_are_no_mistyped_ones() {
    let studio = Studio::open();
    studio.create("writer", &json!({})).expect(201);
    let id = studio.id;
    let ask = |method: &str, path: &str, more: &str, body: Option<Value>| {
        let request = studio.server.request(method, format!("/api/agents/{path}{more}"));
        let request = request.bearer(&studio.owner);
        match body {
            Some(body) => request.json(&body).send(),
            None => request.send(),
        }
    };
    let new = json!({"workspace_id": id, "agent_id": "editor", "display_name": "Editor"});
    for (method, path, body) in [
        ("GET", format!("configs?workspace_id={id}"), None),
        ("POST", "configs?".to_owned(), Some(new)),
        ("PATCH", "configs?agent_id=writer".to_owned(), Some(json!({}))),
        ("GET", format!("status?workspace_id={id}"), None),
        ("DELETE", "configs?agent_id=writer".to_owned(), None),
    ] {
        for (mistyped, known) in [
            ("lable=x", "label"),
            ("Label=x", "label"),
            ("versions=1", "version"),
            ("agentid=writer", "agent_id"),
            ("workspaceid=x", "workspace_id"),
            ("dryrun=true", "dry_run"),
        ] {
            // Where the endpoint has no agent_id, it is no name to mean.
            if known == "agent_id" && (path.starts_with("status") || method == "POST") {
                continue;
            }
            let said = format!("did you mean {known}?");
            ask(method, &path, &format!("&{mistyped}"), body.clone()).refused(400, &[&said]);
        }
        ask(method, &path, "&dry_run=true", body.clone()).refused(400, &["dry_run is not known here"]);
        let answer = ask(method, &path, "&color=blue&=&x&utm_source=mail", body);
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
    }
    studio
        .list_request("&label=production")
        .send()
        .refused(400, &["label is not known here"]);
}

#[test]
fn other_endpoints_refuse_unknown_parameters() {
    let studio = Studio::open();
    studio.create("writer", &json!({})).expect(201);
    let id = studio.id;
    for (target, said) in [
        (
            format!("/api/agents/version?workspace_id={id}&agent_id=writer&lable=x"),
            "lable is not known (did you mean label?)",
        ),
        (
            format!("/api/audit-log?workspace_id={id}&zebra=1"),
            "zebra is not known (did you mean",
        ),
        (
            format!("/api/workspaces?workspace={id}"),
            "workspace is not known (did you mean workspace_id?)",
        ),
        (
            "/api/whoami?verbose=1".to_owned(),
            "verbose is not known (did you mean workspace_id?)",
        ),
        (
            format!("/api/agents/versions?workspace_id={id}&agent_id=writer&limits=1"),
            "did you mean limit?",
        ),
    ] {
        studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .refused(400, &[said]);
    }
    studio
        .server
        .get(format!("/api/whoami?workspace_id={id}"))
        .bearer(&studio.owner)
        .send()
        .expect(200);
    // Outside of the API nothing is strict.
    studio.server.get("/healthz?probe=1").send().expect(200);
    studio.server.get("/openapi.json?v=2").send().expect(200);
}

#[test]
fn percent_encoding_is_decoded_and_must_be_utf8() {
    let studio = Studio::open();
    let id = studio.id.to_string();
    let target = format!("/api/agents/configs?workspace%5Fid={}", id.replace('-', "%2D"));
    studio.server.get(target).bearer(&studio.owner).send().expect(200);
    for bad in ["%ff", "%c3%28", "%ed%a0%80", "%", "%4", "%zz"] {
        studio
            .list_request(&format!("&x={bad}"))
            .send()
            .refused(400, &["percent-encoded"]);
        studio.list_request(&format!("&{bad}=x")).send().expect(400);
    }
}

#[test]
fn a_uuid_is_hyphenated_in_any_case_and_answered_in_lower_case() {
    let studio = Studio::open();
    let id = studio.id.to_string();
    let upper = format!("/api/agents/configs?workspace_id={}", id.to_uppercase());
    studio.server.get(upper).bearer(&studio.owner).send().expect(200);
    let created = studio
        .create("writer", &json!({"workspace_id": id.to_uppercase()}))
        .expect(201)
        .json();
    assert_eq!(created["workspace_id"], id);
    let bare = id.replace('-', "");
    let other_notations = [
        format!("{{{id}}}"),
        format!("urn:uuid:{id}"),
        bare,
        format!("{id}x"),
        format!("%20{id}"),
        "%00".into(),
    ];
    for notation in other_notations {
        let target = format!("/api/agents/configs?workspace_id={notation}");
        studio
            .server
            .get(target)
            .bearer(&studio.owner)
            .send()
            .refused(400, &["workspace_id"]);
        let body = studio.agent("other", &json!({"workspace_id": notation}));
        let request = studio
            .server
            .post("/api/agents/configs")
            .bearer(&studio.owner)
            .json(&body);
        request.send().refused(400, &["workspace_id"]);
    }
}

#[test]
fn limit_and_offset_select_a_page() {
    let studio = Studio::open();
    for number in 0..5 {
        studio.create(&format!("a{number}"), &Value::Null).expect(201);
    }
    for (more, expected) in [
        ("&limit=2", &["a0", "a1"][..]),
        ("&limit=2&offset=3", &["a3", "a4"]),
        ("&offset=4", &["a4"]),
        ("&offset=5", &[]),
        ("&offset=18446744073709551615", &[]),
        ("&limit=1000&offset=0", &["a0", "a1", "a2", "a3", "a4"]),
        ("&agent_id=a3", &["a3"]),
        ("&agent_id=a3&limit=1&offset=1", &[]),
        ("&agent_id=nobody", &[]),
        ("&agent_id=Not%20An%20Id", &[]),
    ] {
        let list = studio.list_request(more).send().expect(200).json();
        let ids: Vec<_> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| agent["agent_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, expected, "{more}");
    }
}

#[test]
fn a_limit_or_offset_that_is_no_number_in_range_is_400() {
    let studio = Studio::open();
    for path in ["/api/agents/configs", "/api/audit-log"] {
        for (more, field) in [
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("limit=-1", "limit"),
            ("limit=x", "limit"),
            ("limit=", "limit"),
            ("limit=1.0", "limit"),
            ("limit=%2B1", "limit"),
            ("limit=99999999999999999999", "limit"),
            ("offset=-1", "offset"),
            ("offset=x", "offset"),
            ("offset=", "offset"),
            ("offset=99999999999999999999", "offset"),
        ] {
            let target = format!("{path}?workspace_id={}&{more}", studio.id);
            studio
                .server
                .get(target)
                .bearer(&studio.owner)
                .send()
                .refused(400, &[field]);
        }
    }
    studio
        .list_request("&limit=0&offset=x")
        .send()
        .refused(400, &["limit", "offset", "; "]);
}
