//! What follows from the answers of a receiver.

use std::time::Duration;

use agentcfg_tests::harness::{Studio, Wire, eventually, free_address, until};
use serde_json::json;

use super::*;
use crate::receiver::Plan;

#[test]
fn failures_are_sent_again_and_listed() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({}));
    receiver.plan([
        Plan::Full(302, "location", receiver.url("/elsewhere"), String::new()),
        Plan::Full(503, "retry-after", "1".into(), "later".into()),
    ]);
    studio.create("writer", &json!({})).expect(201);
    let messages = receiver.wait_for(3);
    assert!(
        messages.iter().all(|message| message.path == "/hook"),
        "no redirect is followed"
    );
    assert_eq!(
        (messages[0].id(), &messages[0].body),
        (messages[2].id(), &messages[2].body)
    );
    let timestamp = |at: usize| messages[at].header("webhook-timestamp").parse::<i64>().unwrap();
    assert!(
        (4..=7).contains(&(timestamp(1) - timestamp(0))),
        "five seconds and jitter"
    );
    assert!(
        (1..=3).contains(&(timestamp(2) - timestamp(1))),
        "as the receiver wished"
    );
    let attempts = until("three attempts are listed", || {
        let attempts = deliveries(&studio, &webhook);
        (attempts.len() == 3).then_some(attempts)
    });
    let column = |name: &str| attempts.iter().map(|attempt| attempt[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("attempt"), [3, 2, 1]);
    assert_eq!(column("status"), [200, 503, 302]);
    assert_eq!(column("response"), ["", "later", ""]);
    assert_eq!(column("error")[0], Value::Null);
    assert!(column("error")[2].as_str().unwrap().contains("redirect"));
    assert_eq!(attempts[0]["next_attempt_at"], Value::Null);
    assert!(attempts[1]["next_attempt_at"].as_str() > attempts[1]["at"].as_str());
    assert_eq!(column("id"), [messages[0].id(); 3]);
}

#[test]
fn gone_disables_at_once_and_enabling_goes_on() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    let webhook = create(&studio, &receiver, &json!({"ordered": true}));
    receiver.plan([Plan::Status(410)]);
    studio.create("writer", &json!({})).expect(201);
    eventually("the webhook is disabled", || list(&studio)[0]["enabled"] == false);
    assert_eq!(list(&studio)[0]["disabled_reason"], "gone");
    assert_eq!(list(&studio)[0]["cursor"], webhook["cursor"]);
    let entry = &studio.audit()[0];
    assert_eq!(entry["action"], "webhook.disabled");
    assert_eq!(entry["actor"], json!({"type": "system", "id": "webhooks"}));
    assert_eq!(entry["target"], json!({"type": "webhook", "id": webhook["id"]}));
    studio.create("reader", &json!({})).expect(201);
    let enable = json!({"enabled": true});
    let enabled = on(&studio, "PATCH", "", &webhook)
        .json(&enable)
        .send()
        .expect(200)
        .json();
    assert_eq!(
        (&enabled["enabled"], &enabled["disabled_reason"]),
        (&json!(true), &Value::Null)
    );
    let messages = receiver.wait_for(3);
    assert_eq!(messages[0].id(), messages[1].id(), "the refused event comes again");
    assert_eq!(messages[2].json()["data"]["target"]["id"], "reader");
}

#[test]
fn a_receiver_that_does_not_answer_delays_no_other() {
    let (dead, good) = (Receiver::start(), Receiver::start());
    let server = server_for(&[&dead, &good]);
    let studio = Studio::on(&server);
    let silent = create(&studio, &dead, &json!({}));
    create(&studio, &good, &json!({}));
    dead.plan([Plan::Silence]);
    for number in 0..50 {
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
    }
    good.wait_at_most(50, Duration::from_secs(10));
    assert_eq!(dead.messages().len(), 1);
    let attempt = until("the attempt has failed", || deliveries(&studio, &silent).pop());
    assert_eq!(
        (&attempt["status"], &attempt["error"]),
        (&Value::Null, &json!("no answer within 15 s"))
    );
    let took = attempt["duration_ms"].as_u64().unwrap();
    assert!((14_900..17_000).contains(&took), "{took}");
}

#[test]
fn a_replay_repeats_what_was_sent() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    studio.create("before", &json!({})).expect(201);
    let webhook = create(&studio, &receiver, &json!({}));
    for number in 0..3 {
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
    }
    let first = receiver.wait_for(3);
    eventually("the cursor has moved", || {
        list(&studio)[0]["cursor"] != webhook["cursor"]
    });
    let replay = |after: &Value| {
        on(&studio, "POST", "/replay", &webhook)
            .json(&json!({"after": after}))
            .send()
    };
    let replayed = replay(&webhook["cursor"]).expect(200).json();
    assert_eq!(replayed["cursor"], webhook["cursor"]);
    assert_eq!(replayed["secret"], Value::Null);
    let again = receiver.wait_for(6);
    let ids = |messages: &[crate::receiver::Message]| {
        let mut ids: Vec<_> = messages.iter().map(|message| message.id().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&again[3..]), ids(&first));
    replay(&json!("now")).refused(
        400,
        &["after must be a cursor that this service has given out, or start"],
    );
    replay(&json!("start")).expect(200);
    let all = receiver.wait_for(10);
    assert_eq!(
        all[6..]
            .iter()
            .filter(|message| message.json()["data"]["target"]["id"] == "before")
            .count(),
        1
    );
    let actions: Vec<_> = studio
        .audit()
        .into_iter()
        .take(2)
        .map(|entry| entry["action"].clone())
        .collect();
    assert_eq!(actions, ["webhook.replayed", "webhook.replayed"]);
}

#[test]
fn deliveries_are_counted() {
    let metrics = free_address();
    let receiver = Receiver::start();
    let server = Server::builder()
        .set("webhook_allowed_hosts", receiver.address().to_string())
        .set("metrics_listen", metrics.to_string())
        .start();
    let studio = Studio::on(&server);
    create(&studio, &receiver, &json!({}));
    receiver.plan([Plan::Full(500, "retry-after", "1".into(), String::new())]);
    studio.create("writer", &json!({})).expect(201);
    let scrape = || {
        let answer = Wire::connect(metrics)
            .send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .receive("GET")
            .unwrap();
        String::from_utf8(answer.body).unwrap()
    };
    for line in [
        r#"agentcfg_webhook_deliveries_total{result="delivered"} 1"#,
        r#"agentcfg_webhook_deliveries_total{result="failed"} 1"#,
        "agentcfg_webhook_events_given_up_total 0",
        "agentcfg_webhook_lag_revisions 0",
    ] {
        eventually(line, || scrape().lines().any(|found| found == line));
    }
}

#[test]
fn nothing_is_sent_after_the_workspace_is_erased() {
    let receiver = Receiver::start();
    let server = server_for(&[&receiver]);
    let studio = Studio::on(&server);
    receiver.pause(Duration::from_millis(300));
    create(&studio, &receiver, &json!({}));
    for number in 0..60 {
        studio.create(&format!("agent-{number}"), &json!({})).expect(201);
    }
    receiver.wait_for(16);
    let target = format!("/api/workspaces?workspace_id={}&confirm=Studio", studio.id);
    server.delete(target).bearer(&studio.owner).send().expect(200);
    let begun = receiver.messages().len();
    // The answers to what is in flight are followed by nothing. An event of another workspace tells that they are
    // through.
    let other = Studio::on(&server);
    let hook = create(&other, &receiver, &json!({}));
    other.create("last", &json!({})).expect(201);
    until("the event of the other workspace is delivered", || {
        deliveries(&other, &hook).pop()
    });
    assert_eq!(receiver.messages().len(), begun + 1);
}
