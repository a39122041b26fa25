//! Races between changes of agents.

use agentcfg_tests::harness::{Response, Studio, at_once};
use serde_json::{Value, json};

const MANY: usize = 16;

/// The number of responses with this status; all others must have the status `others`.
#[track_caller]
fn count(answers: &[Response], status: u16, others: u16) -> usize {
    for answer in answers {
        assert!([status, others].contains(&answer.status), "{answer:?}");
    }
    answers.iter().filter(|answer| answer.status == status).count()
}

#[test]
fn one_concurrent_creation_takes_the_last_slot() {
    let studio = Studio::on_plan("free");
    for id in ["a", "b"] {
        studio.create(id, &Value::Null).expect(201);
    }
    let answers = at_once(MANY, |number| studio.create(&format!("racer-{number}"), &Value::Null));
    assert_eq!(count(&answers, 201, 422), 1);
    assert_eq!(studio.agent_ids().len(), 3);
}

#[test]
fn creations_and_restorations_share_the_last_slot() {
    let studio = Studio::on_plan("free");
    for _ in 0..3 {
        for id in ["x", "y", "z"] {
            let created = studio.create(id, &Value::Null);
            assert!([201, 409].contains(&created.status));
            studio.restore(id);
        }
        studio.remove("x").expect(200);
        let answers = at_once(MANY, |number| match number % 2 {
            0 => studio.restore("x"),
            _ => studio.create(&agentcfg_tests::harness::unique("c"), &Value::Null),
        });
        let made = answers.iter().filter(|answer| answer.status < 300).count();
        assert_eq!(made, 1, "{answers:?}");
        assert_eq!(studio.agent_ids().len(), 3);
        for id in studio.agent_ids() {
            studio.remove(&id).expect(200);
        }
    }
}

#[test]
fn one_concurrent_creation_takes_an_agent_id() {
    let studio = Studio::open();
    let answers = at_once(MANY, |_| studio.create("contested", &Value::Null));
    assert_eq!(count(&answers, 201, 409), 1);
    let winner = answers.iter().find(|answer| answer.status == 201).unwrap();
    assert_eq!(studio.list().json(), json!([winner.json()]));
}

#[test]
fn one_concurrent_deletion_or_restoration_succeeds() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    for _ in 0..3 {
        assert_eq!(count(&at_once(MANY, |_| studio.remove("a")), 200, 404), 1);
        assert_eq!(count(&at_once(MANY, |_| studio.restore("a")), 200, 409), 1);
    }
}

#[test]
fn one_concurrent_change_of_a_version_succeeds() {
    let studio = Studio::open();
    let mut tag = studio.create("a", &Value::Null).etag();
    for round in 0..5 {
        let answers = at_once(MANY, |number| {
            let request = studio.on_agent("PATCH", "a").header("If-Match", &tag);
            request.json(&json!({"role": format!("{round}-{number}")})).send()
        });
        assert_eq!(count(&answers, 200, 412), 1);
        let winner = answers.iter().find(|answer| answer.status == 200).unwrap();
        tag = winner.etag();
        assert_eq!(studio.list().json()[0], winner.json());
    }
}

#[test]
fn changes_of_different_fields_lose_nothing() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    let fields = ["role", "description", "model", "persona_prompt"];
    let answers = at_once(MANY, |number| {
        studio
            .change("a", &json!({fields[number % 4]: format!("by {}", number % 4)}))
            .expect(200)
            .json()
    });
    let record = studio.list().json()[0].clone();
    for (number, field) in fields.iter().enumerate() {
        assert_eq!(record[field], format!("by {number}"));
    }
    let mut times: Vec<_> = answers
        .iter()
        .map(|answer| answer["updated_at"].as_str().unwrap())
        .collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), MANY, "each change has a unique time");
}

#[test]
fn the_plan_counter_is_exact_after_any_mixture_of_changes() {
    let studio = Studio::on_plan("free");
    at_once(MANY, |number| {
        let id = format!("a{}", number % 5);
        for _ in 0..6 {
            studio.create(&id, &Value::Null);
            studio.remove(&id);
            studio.restore(&id);
        }
    });
    let active = studio.agent_ids().len();
    assert!(active <= 3, "{active}");
    let created = (0..5).map(|number| studio.create(&format!("more-{number}"), &Value::Null));
    assert_eq!(created.filter(|answer| answer.status == 201).count(), 3 - active);
}

#[test]
fn each_concurrent_change_has_its_entry_in_the_log() {
    let studio = Studio::open();
    let before = studio.audit().len();
    let changed: usize = at_once(MANY, |number| {
        let id = format!("a{number}");
        let answers = [
            studio.create(&id, &Value::Null),
            studio.change(&id, &json!({"role": "x"})),
            studio.create(&id, &Value::Null),
            studio.remove(&id),
        ];
        answers.iter().filter(|answer| answer.status < 300).count()
    })
    .into_iter()
    .sum();
    assert_eq!(changed, 3 * MANY);
    let entries = studio.audit();
    assert_eq!(entries.len(), before + changed);
    let ids: std::collections::HashSet<_> = entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), entries.len());
}
