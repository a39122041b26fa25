//! Applies of many agents.

use agentcfg_client::model::{AgentSpec, ApplyAction, ApplyAgents};
use agentcfg_tests::harness::{Request, Response, Studio, at_once};
use serde_json::{Value, json};

fn request(studio: &Studio<'_>, more: &str, body: &Value) -> Request {
    let target = format!("/api/agents/apply?workspace_id={}{more}", studio.id);
    studio.server.post(target).bearer(&studio.owner).json(body)
}

fn apply(studio: &Studio<'_>, body: &Value) -> Response {
    request(studio, "", body).send()
}

fn named(ids: &[&str]) -> Vec<Value> {
    let agent = |id: &&str| json!({"agent_id": id, "display_name": "Agent"});
    ids.iter().map(agent).collect()
}

/// The agents of an answer, with what was done to each.
fn actions(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|agent| (text(&agent["agent_id"]), text(&agent["action"])))
        .collect()
}

fn is(actions: &[(String, String)], expected: &[(&str, &str)]) {
    let actions: Vec<_> = actions.iter().map(|(agent, action)| (&**agent, &**action)).collect();
    assert_eq!(actions, expected);
}

#[test]
fn the_outcome_is_that_of_the_body_in_one_entry() {
    let studio = Studio::open();
    studio
        .create("old", &json!({"role": "r", "parameters": {"x": 1}}))
        .expect(201);
    studio.create("gone", &Value::Null).expect(201);
    studio.create("same", &Value::Null).expect(201);
    studio.remove("gone").expect(200);
    let before = (studio.list().json(), studio.audit().len());
    let body = json!({"agents": named(&["new", "old", "same", "gone"])});

    let planned = request(&studio, "&dry_run=true", &body).send().expect(200).json();
    assert_eq!(
        (studio.list().json(), studio.audit().len()),
        before,
        "a dry run changes nothing"
    );
    let done = apply(&studio, &body).expect(200).json();
    assert_eq!(planned["results"], done["results"]);
    is(
        &actions(&done),
        &[
            ("new", "create"),
            ("old", "update"),
            ("same", "none"),
            ("gone", "restore"),
        ],
    );
    assert_eq!(done["results"][1]["changes"]["role"], json!({"from": "r", "to": null}));
    assert_eq!(done["results"][2]["changes"], json!({}));
    let listed = studio.list().json();
    let old = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|agent| agent["agent_id"] == "old")
        .unwrap();
    assert_eq!((&old["role"], &old["parameters"]), (&Value::Null, &json!({})));

    let log = studio.audit();
    assert_eq!(log.len(), before.1 + 1);
    assert_eq!(log[0]["action"], "agents.applied");
    assert_eq!(log[0]["target"], json!({"type": "workspace", "id": studio.id}));
    assert_eq!(
        log[0]["changes"]["agents/gone/is_active"],
        json!({"from": false, "to": true})
    );
    assert_eq!(log[0]["changes"]["agents/old/role"], json!({"from": "r", "to": null}));
    assert!(
        log[0]["changes"]
            .as_object()
            .unwrap()
            .keys()
            .all(|path| path.starts_with("agents/"))
    );

    let again = apply(&studio, &body).expect(200).json();
    assert!(actions(&again).iter().all(|(_, action)| action == "none"));
    assert_eq!(again["cursor"], done["cursor"]);
    assert_eq!(studio.audit().len(), log.len());
}

#[test]
fn bad_bodies_name_the_field_and_the_rule() {
    let studio = Studio::open();
    let other = studio.sibling();
    let many: Vec<_> = (0..1001)
        .map(|i| json!({"agent_id": format!("a{i}"), "display_name": "A"}))
        .collect();
    for (body, said) in [
        (json!({}), "agents is required"),
        (
            json!({"agents": {}}),
            "agents must be an array of objects, got an object",
        ),
        (json!({"agents": [1]}), "agents[0] must be an object, got a number"),
        (
            json!({"agents": []}),
            "agents must have at least one element unless prune is true",
        ),
        (
            json!({"agents": [], "set": "s"}),
            "agents must have at least one element unless prune is true",
        ),
        (
            json!({"agents": many}),
            "agents must have at most 1000 elements, got 1001",
        ),
        (
            json!({"agents": named(&["a"]), "prune": true}),
            "set is required when prune is true",
        ),
        (
            json!({"agents": named(&["a"]), "prune": null}),
            "prune must not be null",
        ),
        (
            json!({"agents": named(&["a"]), "prune": "yes"}),
            "prune must be true or false, got a string",
        ),
        (
            json!({"agents": named(&["a", "b", "a"])}),
            "agents[2].agent_id must not name the agent of agents[0] again",
        ),
        (
            json!({"agents": named(&["a"]), "set": "-s"}),
            "set must be 1 to 50 of a-z, 0-9, ., _ and -",
        ),
        (
            json!({"agents": named(&["a"]), "set": "s".repeat(51)}),
            "set must be at most 50 characters, got 51",
        ),
        (
            json!({"agents": named(&["a"]), "base": "now"}),
            "base must be a cursor that this service has given out",
        ),
        (json!({"agents": named(&["a"]), "more": 1}), "more is not a known field"),
        (
            json!({"agents": [{"agent_id": "A"}]}),
            "agents[0].agent_id must be 1 to 50",
        ),
        (
            json!({"agents": [{"agent_id": "A"}]}),
            "agents[0].display_name is required",
        ),
        (
            json!({"agents": [{"agent_id": "a", "display_name": "A", "id": 1}]}),
            "agents[0].id is read-only",
        ),
        (
            json!({"agents": [{"agent_id": "a", "display_name": "A", "parameters": {"": 1}}]}),
            "the name of agents[0].parameters.\"\" must be 1 to 100 characters, got 0",
        ),
        (
            json!({"agents": [{"agent_id": "a", "display_name": "A", "workspace_id": other.id}]}),
            "agents[0].workspace_id must be the workspace of the request",
        ),
        (
            json!({"agents": [{"agent_id": "a", "display_name": "A", "workspace_id": null}]}),
            "agents[0].workspace_id must not be null",
        ),
    ] {
        apply(&studio, &body).refused(400, &[said]);
    }
    request(&studio, "&dry_run=yes", &json!({"agents": named(&["a"])}))
        .send()
        .refused(400, &["dry_run"]);
    let cursor = apply(&other, &json!({"agents": named(&["a"])})).expect(200).json()["cursor"].clone();
    let foreign = json!({"agents": named(&["a"]), "base": cursor});
    apply(&studio, &foreign).refused(400, &["base is a cursor of another workspace"]);
    assert_eq!(studio.agent_ids(), [""; 0]);
    let own = json!({"agents": [{"agent_id": "a", "display_name": "A", "workspace_id": studio.id}], "set": null});
    apply(&studio, &own).expect(200);
}

#[test]
fn membership_and_role_come_before_the_body() {
    let studio = Studio::open();
    let target = format!("/api/agents/apply?workspace_id={}", studio.id);
    let send = |credential: &str, body: Vec<u8>| {
        let request = studio.server.post(&target).bearer(credential);
        request.header("content-type", "application/json").bytes(body).send()
    };
    for credential in [studio.outsider(), studio.member("viewer")] {
        send(&credential, b"no JSON".to_vec()).expect(403);
    }
    send(&studio.owner, b"no JSON".to_vec()).expect(400);
    let unnamed = studio.server.post("/api/agents/apply").bearer(&studio.owner);
    unnamed
        .json(&json!({"agents": []}))
        .send()
        .refused(400, &["workspace_id"]);
    // Many small values take far more memory than their text.
    let values = format!("{{\"agents\":[{}0]}}", "0,".repeat(4 << 20));
    send(&studio.owner, values.into_bytes()).refused(400, &["more than 1000000 elements"]);
    send(&studio.owner, vec![b' '; (10 << 20) + 1]).expect(413);
}

#[test]
fn sets_prune_and_bases_refuse() {
    let studio = Studio::open();
    studio.create("by-hand", &Value::Null).expect(201);
    let first = apply(&studio, &json!({"agents": named(&["a", "b"]), "set": "docs"}))
        .expect(200)
        .json();
    apply(&studio, &json!({"agents": named(&["a"]), "set": "other"})).refused(409, &["a", "docs"]);
    studio.change("b", &json!({})).expect(200);
    let based = json!({"agents": named(&["a"]), "set": "docs", "base": first["cursor"]});
    apply(&studio, &based).refused(412, &["base", "b"]);
    request(&studio, "&dry_run=true", &based)
        .send()
        .refused(412, &["base", "b"]);
    let epoch = first["cursor"].as_str().unwrap().replacen(|_: char| true, "", 8);
    let restored = json!({"agents": named(&["a"]), "base": format!("00000000{epoch}")});
    apply(&studio, &restored).refused(412, &["restored"]);

    let pruned = json!({"agents": named(&["a"]), "set": "docs", "prune": true});
    is(
        &actions(&apply(&studio, &pruned).expect(200).json()),
        &[("a", "none"), ("b", "deactivate")],
    );
    assert_eq!(studio.agent_ids(), ["by-hand", "a"]);
    let emptied = json!({"agents": [], "set": "docs", "prune": true});
    is(
        &actions(&apply(&studio, &emptied).expect(200).json()),
        &[("a", "deactivate")],
    );

    let studio = Studio::on_plan("free");
    apply(&studio, &json!({"agents": named(&["a", "b", "c"]), "set": "docs"})).expect(200);
    apply(&studio, &json!({"agents": named(&["d", "e"])})).refused(422, &["3 active agents", "5", "free"]);
    let swapped = json!({"agents": named(&["d", "e", "f"]), "set": "docs", "prune": true});
    apply(&studio, &swapped).expect(200);
}

/// The greatest apply: 1,000 agents with prompts of 5,000 characters.
#[test]
fn a_thousand_agents_are_one_change() {
    let studio = Studio::open();
    let specs = |text: &str| {
        let agents = (0..1000)
            .map(|i| AgentSpec::new(format!("agent-{i}").parse().unwrap(), "Agent").persona_prompt(text.repeat(5000)));
        ApplyAgents::of(agents.collect()).set(Some("all".parse().unwrap()))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = studio.client();
        for (text, action) in [
            ("p", ApplyAction::Create),
            ("q", ApplyAction::Update),
            ("q", ApplyAction::Keep),
        ] {
            let started = std::time::Instant::now();
            let applied = client.apply_agents(studio.id, &specs(text), false).await.unwrap();
            println!("{action} of 1,000 agents took {:?}", started.elapsed());
            assert_eq!(applied.results.len(), 1000);
            assert!(applied.results.iter().all(|agent| agent.action == action));
        }
    });
    assert_eq!(studio.agent_ids().len(), 1000);
    assert_eq!(
        studio
            .audit()
            .iter()
            .filter(|entry| entry["action"] == "agents.applied")
            .count(),
        2
    );
}

/// Concurrent applies of the same agents: each is there as a whole, so all agents are of the last one.
#[test]
fn concurrent_applies_do_not_mix() {
    let studio = Studio::open();
    let ids: Vec<_> = (0..20).map(|i| format!("a{i}")).collect();
    let answers = at_once(8, |writer| {
        let agents = ids
            .iter()
            .map(|id| json!({"agent_id": id, "display_name": "A", "role": format!("w{writer}")}));
        let body = json!({"agents": agents.collect::<Vec<_>>(), "set": "docs", "prune": true});
        (
            writer,
            apply(&studio, &body).expect(200).json()["cursor"]
                .as_str()
                .unwrap()
                .to_owned(),
        )
    });
    let revision = |cursor: &str| cursor.rsplit("-c").next().unwrap().parse::<u64>().unwrap();
    let (last, _) = answers.iter().max_by_key(|(_, cursor)| revision(cursor)).unwrap();
    let list = studio.list().json();
    assert_eq!(list.as_array().unwrap().len(), 20);
    for agent in list.as_array().unwrap() {
        assert_eq!(agent["role"], format!("w{last}"));
    }
    let creations = studio
        .audit()
        .iter()
        .filter(|entry| {
            entry["changes"]["agents/a0/is_active"]["from"].is_null()
                && entry["changes"]["agents/a0/is_active"]["to"] == true
        })
        .count();
    assert_eq!(creations, 1);
}
