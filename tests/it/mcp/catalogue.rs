//! Resources and prompts.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

use super::{legacy, modern, result};

fn studio() -> Studio<'static> {
    let studio = Studio::open();
    let writer = json!({"display_name": "Writer", "description": "Writes notes.", "persona_prompt": "You write.\n"});
    studio.create("writer", &writer).expect(201);
    studio.create("silent", &Value::Null).expect(201);
    studio.create("empty", &json!({"persona_prompt": ""})).expect(201);
    studio
}

fn ask(studio: &Studio<'_>, method: &str, params: &Value) -> Value {
    result(modern(studio.server, &studio.owner, method, params).send())
}

#[test]
fn agents_and_their_status_are_resources() {
    let studio = studio();
    let list = ask(&studio, "resources/list", &json!({}));
    let uris: Vec<_> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["uri"].as_str().unwrap())
        .collect();
    let expected = [
        "agentcfg://status",
        "agentcfg://agents/writer",
        "agentcfg://agents/writer/prompt",
        "agentcfg://agents/silent",
        "agentcfg://agents/empty",
    ];
    assert_eq!(uris, expected);
    for uri in expected {
        let read = ask(&studio, "resources/read", &json!({ "uri": uri }));
        assert_eq!(read["contents"][0]["uri"], uri);
    }
    let text = |uri: &str| {
        let read = ask(&studio, "resources/read", &json!({ "uri": uri }));
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text("agentcfg://agents/writer/prompt"), "You write.\n");
    let agent: Value = serde_json::from_str(&text("agentcfg://agents/writer")).unwrap();
    assert_eq!(agent, studio.list().json()[0]);
    let status: Value = serde_json::from_str(&text("agentcfg://status")).unwrap();
    assert_eq!(status[0]["status"], "offline");
    let templates = ask(&studio, "resources/templates/list", &json!({}));
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
}

#[test]
fn unknown_resources_are_errors() {
    let studio = studio();
    for uri in [
        "agentcfg://agents/none",
        "agentcfg://agents/silent/prompt",
        "agentcfg://agents/empty/prompt",
        "agentcfg://agents/",
        "agentcfg://other",
        "file:///etc/passwd",
        "",
    ] {
        let params = json!({ "uri": uri });
        let refused = modern(studio.server, &studio.owner, "resources/read", &params)
            .send()
            .expect(200)
            .json();
        assert_eq!(refused["error"]["code"], -32602, "{uri}");
        let refused = legacy(studio.server, &studio.owner, "resources/read", &params)
            .send()
            .expect(200)
            .json();
        assert_eq!(refused["error"]["code"], -32002, "{uri}");
    }
    let refused = modern(studio.server, &studio.owner, "resources/list", &json!({"cursor": "x"}))
        .send()
        .expect(200);
    assert_eq!(refused.json()["error"]["code"], -32602);
}

#[test]
fn an_agent_with_a_persona_is_a_prompt() {
    let studio = studio();
    let list = ask(&studio, "prompts/list", &json!({}));
    let prompts = list["prompts"].as_array().unwrap();
    assert_eq!(prompts.len(), 1);
    assert_eq!(
        (&prompts[0]["name"], &prompts[0]["title"], &prompts[0]["description"]),
        (&json!("writer"), &json!("Writer"), &json!("Writes notes."))
    );
    assert_eq!(prompts[0]["arguments"][0]["name"], "task");
    assert_eq!(prompts[0]["arguments"][0]["required"], false);
    let text = |arguments: Value| {
        let got = ask(
            &studio,
            "prompts/get",
            &json!({"name": "writer", "arguments": arguments}),
        );
        assert_eq!(got["messages"][0]["role"], "user");
        got["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(json!({})), "You write.\n");
    let with_task = text(json!({"task": "Release 2.4"}));
    assert!(
        with_task.starts_with("You write.") && with_task.ends_with("Release 2.4"),
        "{with_task}"
    );
    // At a label it is the persona of that version.
    studio
        .change("writer", &json!({"persona_prompt": "You edit."}))
        .expect(200);
    let label = format!(
        "/api/agents/labels?workspace_id={}&agent_id=writer&label=production",
        studio.id
    );
    let released = studio
        .server
        .put(label)
        .bearer(&studio.owner)
        .json(&json!({"version": 1}));
    released.send().expect(200);
    let at =
        |name: &str| ask(&studio, "prompts/get", &json!({ "name": name }))["messages"][0]["content"]["text"].clone();
    assert_eq!(
        (at("writer"), at("writer@production")),
        (json!("You edit."), json!("You write.\n"))
    );
    assert_eq!(at("writer@latest"), "You edit.");
    // A key that is pinned to a label gets the version at it, and no other.
    let pinned = studio.key_with(&json!({"scope": "read", "label": "production"})).key;
    let ask_pinned = |method: &str, params: Value| {
        modern(studio.server, &pinned, method, &params)
            .send()
            .expect(200)
            .json()
    };
    for name in ["writer", "writer@production"] {
        let prompt = ask_pinned("prompts/get", json!({ "name": name }));
        assert_eq!(
            prompt["result"]["messages"][0]["content"]["text"], "You write.\n",
            "{name}"
        );
    }
    let resource = ask_pinned("resources/read", json!({"uri": "agentcfg://agents/writer/prompt"}));
    assert_eq!(resource["result"]["contents"][0]["text"], "You write.\n");
    // So do the lists.
    studio
        .change("writer", &json!({"persona_prompt": null, "description": "Now"}))
        .expect(200);
    studio
        .change("silent", &json!({"persona_prompt": "You speak."}))
        .expect(200);
    let listed = ask_pinned("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| &prompt["name"])
        .collect();
    assert_eq!(names, ["writer"]);
    let listed = ask_pinned("resources/list", json!({}))["result"]["resources"].clone();
    let names = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap());
    let prompts: Vec<_> = names.filter(|name| name.ends_with("/prompt")).collect();
    assert_eq!(prompts, ["writer/prompt"]);
    let unknown = ask_pinned("prompts/get", json!({"name": "silent"}));
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("has no label"), "{message}");
    studio.change("silent", &json!({"persona_prompt": null})).expect(200);
    let refused = ask_pinned("prompts/get", json!({"name": "writer@latest"}));
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("pinned"),
        "{refused}"
    );
    for params in [
        json!({"name": "writer@none"}),
        json!({"name": "none@production"}),
        json!({"name": "writer@"}),
        json!({"name": "silent"}),
        json!({"name": "empty"}),
        json!({"name": "none"}),
        json!({"name": "writer", "arguments": {"task": 7}}),
        json!({"name": "writer", "arguments": {"other": "x"}}),
    ] {
        let refused = modern(studio.server, &studio.owner, "prompts/get", &params)
            .send()
            .expect(200)
            .json();
        assert_eq!(refused["error"]["code"], -32602, "{params}");
    }
}

#[test]
fn a_user_of_several_workspaces_has_empty_lists() {
    let studio = studio();
    studio.sibling();
    assert_eq!(ask(&studio, "resources/list", &json!({}))["resources"], json!([]));
    assert_eq!(ask(&studio, "prompts/list", &json!({}))["prompts"], json!([]));
    let read = json!({"uri": "agentcfg://agents/writer"});
    let refused = modern(studio.server, &studio.owner, "resources/read", &read)
        .send()
        .expect(200)
        .json();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("several workspaces"),
        "{refused}"
    );
}

#[test]
fn long_lists_have_pages() {
    let studio = Studio::open();
    for number in 0..501 {
        studio.create(&format!("agent-{number:03}"), &Value::Null).expect(201);
    }
    let first = ask(&studio, "resources/list", &json!({}));
    assert_eq!(
        first["resources"].as_array().unwrap().len(),
        501,
        "500 agents and the status"
    );
    let next = ask(&studio, "resources/list", &json!({"cursor": first["nextCursor"]}));
    assert_eq!(next["resources"][0]["uri"], "agentcfg://agents/agent-500");
    assert_eq!(next["resources"].as_array().unwrap().len(), 1);
    assert!(next.get("nextCursor").is_none());
}
