//! Limits: rate and sizes.

use agentcfg_client::AgentFilter;
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::{Run, Server, Studio, scratch};
use serde_json::{Value, json};

#[tokio::test]
async fn a_key_may_make_a_hundred_requests_a_minute_by_default() {
    let studio = Studio::open();
    let client = studio.server.client(&studio.key("read").key);
    let everything = AgentFilter::default();
    for left in (0..100).rev() {
        client.list_agents(studio.id, &everything).await.unwrap();
        let rate = client.rate_limit().unwrap();
        assert_eq!((rate.limit, rate.remaining), (100, left));
    }
    let error = client.list_agents(studio.id, &everything).await.unwrap_err();
    assert!(error.is_rate_limited() && error.message().contains("100"), "{error:?}");
    assert!(
        error
            .retry_after()
            .is_some_and(|wait| (1..=60).contains(&wait.as_secs())),
        "{error:?}"
    );
}

#[test]
fn a_key_may_have_a_limit_of_its_own() {
    let studio = Studio::open();
    let key = studio.key_with(&json!({"rate_limit": 3})).key;
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    for left in [2, 1, 0] {
        let answer = studio.server.get(&target).bearer(&key).send().expect(200);
        assert_eq!(
            (
                answer.number("x-ratelimit-limit"),
                answer.number("x-ratelimit-remaining")
            ),
            (3, left)
        );
    }
    studio.server.get(&target).bearer(&key).send().refused(429, &["3"]);
}

#[test]
fn each_key_has_its_own_rate_window() {
    let studio = Studio::open();
    let target = format!("/api/agents/configs?workspace_id={}", studio.id);
    let [first, second] = [(); 2].map(|()| studio.key_with(&json!({"rate_limit": 1})).key);
    studio.server.get(&target).bearer(&first).send().expect(200);
    studio.server.get(&target).bearer(&first).send().expect(429);
    studio.server.get(&target).bearer(&second).send().expect(200);
}

#[test]
fn the_three_headers_have_limit_remaining_and_the_end_of_the_window() {
    let studio = Studio::open();
    let answer = studio.list();
    assert_eq!(answer.number("x-ratelimit-limit"), 600);
    assert!((0..600).contains(&answer.number("x-ratelimit-remaining")));
    let wait = answer.number("x-ratelimit-reset") - SystemClock.now().unix_millis() / 1000;
    assert!((0..=61).contains(&wait), "{answer:?}");
}

#[test]
fn each_text_may_be_as_long_as_its_limit_and_no_longer() {
    let studio = Studio::open();
    let limits = [
        ("display_name", 100),
        ("role", 100),
        ("description", 2000),
        ("model", 100),
        ("persona_prompt", 5000),
    ];
    for (number, (field, max)) in limits.into_iter().enumerate() {
        // Each crab is one character of four bytes.
        let (longest, longer) = ("🦀".repeat(max), "🦀".repeat(max + 1));
        let id = format!("agent-{number}");
        let said = format!("{field} must be at most {max} characters, got {}", max + 1);
        studio.create(&id, &json!({field: longer})).refused(400, &[&said]);
        let record = studio.create(&id, &json!({field: longest})).expect(201).json();
        assert_eq!(record[field], longest);
        studio.change(&id, &json!({field: longer})).refused(400, &[&said]);
        studio.change(&id, &json!({field: longest})).expect(200);
    }
    studio
        .create(&"a".repeat(51), &Value::Null)
        .refused(400, &["agent_id must be at most 50 characters, got 51"]);
    studio.create(&"a".repeat(50), &Value::Null).expect(201);
    let color = format!("#{}", "f".repeat(20));
    studio
        .create("colourful", &json!({"color": color}))
        .refused(400, &["color must be at most 20 characters, got 21"]);
}

#[test]
fn a_deployment_may_allow_longer_personas() {
    let server = Server::builder().set("max_persona_prompt", "6000").start();
    let studio = Studio::on(&server);
    let (longest, longer) = ("🦀".repeat(6000), "🦀".repeat(6001));
    let said = "persona_prompt must be at most 6000 characters, got 6001 (the setting max_persona_prompt is the limit)";
    studio
        .create("writer", &json!({"persona_prompt": longer}))
        .refused(400, &[said]);
    studio
        .create("writer", &json!({"persona_prompt": longer, "color": "red"}))
        .refused(400, &[said, "color must be"]);
    let record = studio
        .create("writer", &json!({"persona_prompt": longest}))
        .expect(201)
        .json();
    assert_eq!(record["persona_prompt"], longest);
    studio
        .change("writer", &json!({"persona_prompt": longer}))
        .refused(400, &[said]);
    let agents = json!({"agents": [
        {"agent_id": "editor", "display_name": "Editor"},
        {"agent_id": "writer", "display_name": "Writer", "persona_prompt": longer},
    ]});
    server
        .post(format!("/api/agents/apply?workspace_id={}", studio.id))
        .bearer(&studio.owner)
        .json(&agents)
        .send()
        .refused(400, &[&format!("agents[1].{said}")]);

    let me = server
        .get("/api/whoami")
        .bearer(&studio.owner)
        .send()
        .expect(200)
        .json();
    assert_eq!(me["workspaces"][0]["limits"], json!({"persona_prompt": 6000}));
    let document = server.get("/openapi.json").send().expect(200).json();
    let schemas = &document["components"]["schemas"];
    for name in ["NewAgent", "AgentPatch", "AgentSpec"] {
        let persona = &schemas[name]["properties"]["persona_prompt"];
        assert_eq!(persona["maxLength"], 6000, "{name}: {persona}");
    }
    let gzip = server
        .get("/openapi.json")
        .header("Accept-Encoding", "gzip")
        .send()
        .expect(200);
    assert_eq!(gzip.need("content-encoding"), "gzip");
    let plain: Value = serde_json::from_slice(&gzip.plain_body()).unwrap();
    assert_eq!(plain, document);
}

#[test]
fn a_persona_that_is_longer_than_a_new_limit_stays() {
    let dir = scratch();
    let start = |limit: &str| {
        let server = Server::builder().data(dir.path().join("data"));
        server.set("max_persona_prompt", limit).start()
    };
    let (long, other) = ("a".repeat(5500), "b".repeat(5500));
    let before = start("200000");
    let first = Studio::on(&before);
    first.create("writer", &json!({"persona_prompt": long})).expect(201);
    let identity = first.identity();
    before.stop();

    let server = start("5000");
    let studio = identity.on(&server);
    let said = "persona_prompt must be at most 5000 characters, got 5500 (the setting max_persona_prompt is the limit)";
    studio.change("writer", &json!({"role": "author"})).expect(200);
    studio
        .change("writer", &json!({"persona_prompt": long, "role": "editor"}))
        .expect(200);
    studio
        .change("writer", &json!({"persona_prompt": other}))
        .refused(400, &[said]);
    let apply = |persona: &str| {
        let agent = json!({"agent_id": "writer", "display_name": "Writer", "persona_prompt": persona});
        let request = server.post(format!("/api/agents/apply?workspace_id={}", studio.id));
        request.bearer(&studio.owner).json(&json!({"agents": [agent]})).send()
    };
    assert_eq!(apply(&long).expect(200).json()["results"][0]["action"], "update");
    apply(&other).refused(400, &[&format!("agents[0].{said}")]);
    studio.change("writer", &json!({"persona_prompt": "short"})).expect(200);
    studio
        .change("writer", &json!({"persona_prompt": long}))
        .refused(400, &[said]);
    let target = format!("/api/agents/rollback?workspace_id={}&agent_id=writer", studio.id);
    let restored = server
        .post(target)
        .bearer(&studio.owner)
        .json(&json!({"version": 1}))
        .send()
        .expect(200)
        .json();
    assert_eq!(restored["persona_prompt"], long);
}

#[test]
fn the_limit_of_personas_is_from_1_to_200000() {
    for limit in ["0", "200001", "-1", "many"] {
        Run::new(["serve"])
            .env("AGENTCFG_MAX_PERSONA_PROMPT", limit)
            .finish()
            .failed_with(&["AGENTCFG_MAX_PERSONA_PROMPT", "from 1 to 200000"]);
    }
}
