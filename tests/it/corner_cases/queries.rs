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
fn unknown_parameters_are_ignored() {
    let studio = Studio::open();
    studio.list_request("&color=blue&=&x").send().expect(200);
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
