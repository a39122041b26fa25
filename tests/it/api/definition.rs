//! The definition of an agent: the tenth field, which a record has only where one is set.

use agentcfg_tests::harness::{Response, Studio};
use serde_json::{Value, json};

/// The member of a definition that makes a text of this many bytes, with everything around it.
fn of_length(bytes: usize) -> String {
    let frame = r#"{"text":""}"#.len();
    format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes - frame))
}

/// Creates an agent with the text of a definition.
fn create(studio: &Studio<'_>, agent_id: &str, definition: &str) -> Response {
    let id = studio.id;
    let text = format!(
        r#"{{"workspace_id":"{id}","agent_id":"{agent_id}","display_name":"Agent","definition":{definition}}}"#
    );
    let request = studio.server.post("/api/agents/configs").bearer(&studio.owner);
    request.text(text).send()
}

/// The text of an agent's record.
fn record(studio: &Studio<'_>, agent_id: &str) -> String {
    let list = studio.on_agent("GET", agent_id).send().expect(200);
    let text = String::from_utf8(list.plain_body()).unwrap();
    text.strip_prefix('[').unwrap().strip_suffix(']').unwrap().to_owned()
}

fn get(studio: &Studio<'_>, target: &str) -> Value {
    let separator = if target.contains('?') { '&' } else { '?' };
    let target = format!("/api/agents/{target}{separator}workspace_id={}", studio.id);
    studio
        .server
        .get(target)
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json()
}

#[test]
fn an_agent_without_one_has_the_fields_of_the_specification() {
    let studio = Studio::open();
    for body in [json!({}), json!({"definition": null})] {
        let agent_id = format!("a{}", body.as_object().unwrap().len());
        let created = studio.create(&agent_id, &body).expect(201).json();
        let names: Vec<&String> = created.as_object().unwrap().keys().collect();
        assert!(!names.iter().any(|name| *name == "definition"), "{names:?}");
        assert_eq!(names.len(), 15);
        assert!(!record(&studio, &agent_id).contains("definition"));
        let version = get(&studio, &format!("version?agent_id={agent_id}"));
        assert!(version["config"].get("definition").is_none(), "{version}");
    }
}

#[test]
fn a_definition_is_shown_as_it_was_sent() {
    let studio = Studio::open();
    let sent = r#"{"z":1,"a":{"y":1.50,"b":[true,null,"\u00e9\/"]},"tools":["search"]}"#;
    let compact = r#""definition":{"z":1,"a":{"y":1.5,"b":[true,null,"é/"]},"tools":["search"]}"#;
    create(&studio, "writer", sent).expect(201);
    assert!(
        record(&studio, "writer").contains(compact),
        "{}",
        record(&studio, "writer")
    );
    let version = studio
        .server
        .get(format!(
            "/api/agents/version?workspace_id={}&agent_id=writer",
            studio.id
        ))
        .bearer(&studio.owner)
        .send();
    assert!(
        String::from_utf8(version.expect(200).plain_body())
            .unwrap()
            .contains(compact)
    );
}

#[test]
fn every_answer_keeps_the_order_of_its_keys() {
    let studio = Studio::open();
    create(&studio, "writer", r#"{"z":1,"a":{"y":2,"b":[{"q":1,"c":2}]}}"#).expect(201);
    let changed = r#"{"definition":{"z":2,"a":{"y":2,"b":[{"q":1,"c":2}]}}}"#;
    studio.on_agent("PATCH", "writer").text(changed).send().expect(200);
    let id = studio.id;
    let apply = r#"{"agents":[{"agent_id":"writer","display_name":"Agent","definition":{"z":3,"a":{"y":2,"b":[{"q":1,"c":2}]}}}]}"#;
    let tool = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_agent","arguments":{{"workspace_id":"{id}","agent_id":"writer"}}}}}}"#
    );
    let server = studio.server;
    let requests = [
        server.get(format!(
            "/api/agents/diff?workspace_id={id}&agent_id=writer&from=1&to=2"
        )),
        server.get(format!("/api/audit-log?workspace_id={id}&target_type=agent")),
        server.get(format!("/api/changes?workspace_id={id}&after=start")),
        server.get(format!("/api/agents/released?workspace_id={id}&label=latest")),
        server.get(format!("/api/workspaces/export?workspace_id={id}")),
        server
            .post(format!("/api/agents/apply?workspace_id={id}&dry_run=true"))
            .text(apply),
        server
            .post("/mcp")
            .header("accept", "application/json, text/event-stream")
            .text(tool),
    ];
    for request in requests {
        let answer = request.bearer(&studio.owner).send().expect(200);
        // A tool answers JSON within a text.
        let text = String::from_utf8(answer.plain_body()).unwrap().replace('\\', "");
        for member in [r#""a":{"y":2,"b":[{"q":1,"c":2}]}"#, r#"{"z":"#] {
            assert!(text.contains(member), "{member} in {text}");
        }
        assert!(!text.contains(r#"{"a":"#), "{text}");
    }
}

#[test]
fn a_patch_replaces_it_whole_and_null_removes_it() {
    let studio = Studio::open();
    studio
        .create("writer", &json!({"definition": {"a": 1, "b": 2}}))
        .expect(201);
    let changed = studio
        .change("writer", &json!({"definition": {"c": 3}}))
        .expect(200)
        .json();
    assert_eq!(changed["definition"], json!({"c": 3}));
    let kept = studio.change("writer", &json!({"role": "author"})).expect(200).json();
    assert_eq!(kept["definition"], json!({"c": 3}));
    let empty = studio.change("writer", &json!({"definition": {}})).expect(200).json();
    assert_eq!(empty["definition"], json!({}));
    let removed = studio.change("writer", &json!({"definition": null})).expect(200).json();
    assert!(removed.get("definition").is_none(), "{removed}");
    let versions = get(&studio, "versions?agent_id=writer");
    assert_eq!(versions.as_array().unwrap().len(), 5);
}

#[test]
fn another_order_and_other_spellings_are_the_same_content() {
    let studio = Studio::open();
    create(&studio, "writer", r#"{"b":1,"a":[1,{"d":10,"c":0}]}"#).expect(201);
    let text = r#"{"definition": { "a" : [1.0, {"c":-0.0,"d":1e1}], "b":1 }}"#;
    let request = studio.on_agent("PATCH", "writer");
    let same = request.text(text).send().expect(200);
    assert_eq!(same.need("agent-version"), "1");
    assert!(record(&studio, "writer").contains(r#""definition":{"b":1,"a":[1,{"d":10,"c":0}]}"#));
    let request = studio.on_agent("PATCH", "writer");
    let other = request.text(r#"{"definition":{"a":[{"c":0,"d":10},1],"b":1}}"#).send();
    assert_eq!(other.expect(200).need("agent-version"), "2");
    let apply = |definition: Value| {
        let agents = json!({"agents": [{"agent_id": "writer", "display_name": "Agent", "definition": definition}]});
        let request = studio
            .server
            .post(format!("/api/agents/apply?workspace_id={}", studio.id));
        let results = request.bearer(&studio.owner).json(&agents).send().expect(200).json();
        results["results"][0]["action"].clone()
    };
    assert_eq!(apply(json!({"b": 1.0, "a": [{"d": 10, "c": 0}, 1]})), "none");
    assert_eq!(apply(json!({"b": 2})), "update");
    assert_eq!(apply(Value::Null), "update");
    assert!(!record(&studio, "writer").contains("definition"));
}

#[test]
fn history_shows_it_as_any_other_field() {
    let studio = Studio::open();
    studio.create("writer", &json!({})).expect(201);
    studio
        .change("writer", &json!({"definition": {"tools": ["a"]}}))
        .expect(200);
    studio
        .change("writer", &json!({"definition": {"tools": ["b"]}}))
        .expect(200);
    let diff = |from: u8, to: u8| get(&studio, &format!("diff?agent_id=writer&from={from}&to={to}"))["changes"].clone();
    let (a, b) = (json!({"tools": ["a"]}), json!({"tools": ["b"]}));
    assert_eq!(diff(1, 2), json!({"definition": {"from": null, "to": a}}));
    assert_eq!(diff(2, 3), json!({"definition": {"from": a, "to": b}}));
    assert_eq!(diff(3, 1), json!({"definition": {"from": b, "to": null}}));
    assert_eq!(
        get(&studio, "version?agent_id=writer&version=2")["config"]["definition"],
        a
    );
    let back = |version: u8| {
        let target = format!("/api/agents/rollback?workspace_id={}&agent_id=writer", studio.id);
        let request = studio.server.post(target).bearer(&studio.owner);
        request.json(&json!({ "version": version })).send().expect(200).json()
    };
    assert_eq!(back(2)["definition"], a);
    assert!(back(1).get("definition").is_none());
    let entry = studio
        .audit()
        .into_iter()
        .find(|entry| entry["action"] == "agent.updated")
        .unwrap();
    assert!(entry["changes"].get("definition").is_some(), "{entry}");
}

#[test]
fn it_has_a_length_and_a_depth() {
    let studio = Studio::open();
    create(&studio, "longest", &of_length(65_536)).expect(201);
    create(&studio, "longer", &of_length(65_537)).refused(
        400,
        &["definition must be at most 65536 bytes as compact JSON, got 65537"],
    );
    // White space and escapes that JSON does not require do not count.
    let spaced = format!(
        "{}{}",
        " ".repeat(1000),
        of_length(65_536).replace("xxxx", r"\u0078xxx")
    );
    create(&studio, "spaced", &spaced).expect(201);
    let nested = |levels: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    create(&studio, "deepest", &nested(32)).expect(201);
    create(&studio, "deeper", &nested(33)).refused(400, &["definition.a[0]", "within 32 levels"]);
}

#[test]
fn what_no_reader_may_have_to_decide_is_refused_with_its_path() {
    let studio = Studio::open();
    for (definition, said) in [
        (
            r#"{"a":{"b":1,"b":1}}"#,
            "definition.a.b must not appear more than once",
        ),
        (
            r#"{"a":[{"b":"x\u0000"}]}"#,
            "definition.a[0].b must not contain a NUL character",
        ),
        (r#"{"a\u0000":1}"#, "NUL character"),
        (
            r#"{"a":[1,1e999]}"#,
            "definition.a[1] must be a number that a finite double can hold",
        ),
        (r#"{"a":"\ud800"}"#, "must be valid JSON"),
        ("[]", "definition must be an object, got an array"),
        ("\"{}\"", "definition must be an object, got a string"),
        ("1", "definition must be an object, got a number"),
    ] {
        create(&studio, "writer", definition).refused(400, &[said]);
    }
}

#[test]
fn the_members_that_are_known_have_rules() {
    let studio = Studio::open();
    let texts = |count: usize| json!(vec!["x"; count]);
    let servers = |count: usize| {
        let server = |i: usize| json!({"name": format!("s{i}"), "command": "run"});
        Value::from((0..count).map(server).collect::<Vec<_>>())
    };
    let named = |count: usize, value: &Value| {
        let entry = |i: usize| (format!("n{i}"), value.clone());
        Value::Object((0..count).map(entry).collect())
    };
    let server = |more: Value| {
        let mut server = json!({"name": "s"});
        server
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"mcp_servers": [server]})
    };
    let refused = [
        (json!({"tools": null}), "definition.tools must be an array, got null"),
        (
            json!({"tools": texts(201)}),
            "definition.tools must have at most 200 elements, got 201",
        ),
        (
            json!({"tools": [""]}),
            "definition.tools[0] must be 1 to 200 characters, got 0",
        ),
        (
            json!({"tools": ["a", "x".repeat(201)]}),
            "definition.tools[1] must be at most 200 characters, got 201",
        ),
        (
            json!({"tools": [1]}),
            "definition.tools[0] must be a string or an object, got a number",
        ),
        (
            json!({"mcp_servers": servers(51)}),
            "definition.mcp_servers must have at most 50 elements, got 51",
        ),
        (
            json!({"mcp_servers": ["x"]}),
            "definition.mcp_servers[0] must be an object, got a string",
        ),
        (
            json!({"mcp_servers": [{"command": "x"}]}),
            "definition.mcp_servers[0].name is required",
        ),
        (
            json!({"mcp_servers": [{"name": "", "command": "x"}]}),
            "definition.mcp_servers[0].name must be 1 to 100",
        ),
        (
            server(json!({})),
            "definition.mcp_servers[0] must have a url or a command",
        ),
        (
            server(json!({"url": "ftp://x"})),
            "definition.mcp_servers[0].url must be an http or https URL",
        ),
        (
            server(json!({"url": "https://"})),
            "definition.mcp_servers[0].url must be an http or https URL",
        ),
        (
            server(json!({"url": null})),
            "definition.mcp_servers[0].url must be a string, got null",
        ),
        (
            server(json!({"command": ""})),
            "definition.mcp_servers[0].command must be 1 to 1000 characters, got 0",
        ),
        (
            json!({"mcp_servers": [{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]}),
            "definition.mcp_servers[1].name must not be that of another server",
        ),
        (
            json!({"skills": texts(101)}),
            "definition.skills must have at most 100 elements, got 101",
        ),
        (
            json!({"skills": ["x".repeat(201)]}),
            "definition.skills[0] must be at most 200 characters",
        ),
        (
            json!({"output_schema": []}),
            "definition.output_schema must be an object, got an array",
        ),
        (
            json!({"model_settings": "x"}),
            "definition.model_settings must be an object, got a string",
        ),
        (
            json!({"fallback_models": texts(6)}),
            "definition.fallback_models must have at most 5 elements, got 6",
        ),
        (
            json!({"fallback_models": [{}]}),
            "definition.fallback_models[0] must be a string, got an object",
        ),
        (
            json!({"variables": named(101, &json!({}))}),
            "definition.variables must have at most 100 entries, got 101",
        ),
        (
            json!({"variables": {"1a": {}}}),
            "the name of definition.variables.1a must be a letter or _",
        ),
        (json!({"variables": {"x".repeat(65): {}}}), "must be a letter or _"),
        (
            json!({"variables": {"a": "x"}}),
            "definition.variables.a must be an object, got a string",
        ),
        (
            json!({"variables": {"a": {"default": 1}}}),
            "definition.variables.a.default must be a string, got a number",
        ),
        (
            json!({"variables": {"a": {"required": "yes"}}}),
            "definition.variables.a.required must be true or false",
        ),
        (
            json!({"variables": {"a": {"description": null}}}),
            "definition.variables.a.description must be a string",
        ),
        (
            json!({"metadata": named(101, &json!("x"))}),
            "definition.metadata must have at most 100 entries, got 101",
        ),
        (
            json!({"metadata": {"": "x"}}),
            "the name of definition.metadata.\"\" must be 1 to 100 characters, got 0",
        ),
        (
            json!({"metadata": {"a": "x".repeat(1001)}}),
            "definition.metadata.a must be at most 1000 characters, got 1001",
        ),
        (
            json!({"metadata": {"a": 1}}),
            "definition.metadata.a must be a string, got a number",
        ),
    ];
    for (definition, said) in &refused {
        studio
            .create("writer", &json!({"definition": definition}))
            .refused(400, &[said]);
    }
    for name in [
        "model",
        "messages",
        "input",
        "system",
        "instructions",
        "prompt",
        "stream",
    ] {
        let definition = json!({"model_settings": {name: 1}});
        let said = format!("definition.model_settings.{name} is no setting");
        studio
            .create("writer", &json!({"definition": definition}))
            .refused(400, &[&said]);
    }
    let all = json!({"definition": {"tools": 1, "skills": 2, "metadata": {"a": 3}}, "role": 4});
    studio.create("writer", &all).refused(
        400,
        &[
            "role must be",
            "definition.tools",
            "definition.skills",
            "definition.metadata.a",
        ],
    );

    let longest = json!({
        "tools": texts(200), "mcp_servers": servers(50), "skills": texts(100), "fallback_models": texts(5),
        "variables": named(100, &json!({"default": "", "required": true, "description": "", "more": null})),
        "metadata": {"x".repeat(100): "x".repeat(1000)},
        "output_schema": {}, "model_settings": {"temperature": null},
        "unknown": {"model": 1, "tools": null},
    });
    let created = studio
        .create("writer", &json!({"definition": longest}))
        .expect(201)
        .json();
    assert_eq!(created["definition"], longest);
    let both = server(json!({"url": "HTTPS://x/${TOKEN}", "command": "x", "headers": {"a": "${B}"}}));
    studio.change("writer", &json!({"definition": both})).expect(200);
}
