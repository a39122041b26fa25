//! Limits: rate and sizes.

use agentcfg_client::AgentFilter;
use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_tests::harness::Studio;
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
