//! Lists of the past over HTTP.

use agentcfg_tests::harness::{Studio, at_once};
use serde_json::{Value, json};

use super::on;

#[test]
fn each_list_is_answered_again() {
    let studio = Studio::open();
    let mut seen = vec![];
    let mut look = || {
        let log = studio.audit();
        seen.push((log[0]["revision"].as_u64().unwrap(), studio.list().plain_body()));
    };
    look();
    for id in ["a", "b", "a-b"] {
        studio
            .create(id, &json!({"parameters": {"x": 0.5, "y": 70}}))
            .expect(201);
        look();
    }
    studio.change("a", &json!({"role": "é"})).expect(200);
    look();
    studio.change("a", &json!({})).expect(200);
    look();
    studio.remove("b").expect(200);
    look();
    studio.set_member("bob", "viewer").expect(200);
    look();
    studio.restore("b").expect(200);
    look();
    on(&studio, "POST", "rollback", "a", "")
        .json(&json!({"version": 1}))
        .send()
        .expect(200);
    look();
    for (revision, list) in &seen {
        let answer = studio.list_request(&format!("&revision={revision}")).send().expect(200);
        assert_eq!(answer.plain_body(), *list, "{revision}");
        let cursor = answer.need("change-cursor");
        assert!(cursor.ends_with(&format!("-c{revision}")), "{cursor}");
        let known = studio.list_request(&format!("&revision={revision}"));
        known.header("If-None-Match", answer.etag()).send().expect(304);
    }
    let log = studio.audit();
    for entry in &log {
        let revision = entry["revision"].as_u64().unwrap();
        let at = entry["created_at"].as_str().unwrap();
        let later = log
            .iter()
            .any(|other| other["created_at"] == at && other["revision"].as_u64() > Some(revision));
        if !later {
            let answer = studio.list_request(&format!("&at={at}")).send().expect(200);
            let (_, list) = seen.iter().rfind(|(known, _)| *known <= revision).unwrap_or(&seen[0]);
            assert_eq!(answer.plain_body(), *list, "{at}");
            assert!(!answer.etag().is_empty());
            // The present cursor would hide the changes since.
            assert_eq!(answer.header("change-cursor"), None);
        }
    }
    let future = studio.list_request("&at=2099-01-01T00:00:00Z").send().expect(200);
    assert_eq!(future.plain_body(), studio.list().plain_body());
}

#[test]
fn wrong_moments_are_refused() {
    let studio = Studio::open();
    studio.create("a", &Value::Null).expect(201);
    for (more, said) in [
        ("&revision=999", "revision must be 1 to"),
        ("&revision=0", "revision must be 1"),
        ("&revision=x", "revision must be a whole number"),
        ("&at=2001-01-01T00:00:00Z", "before the workspace existed"),
        (
            "&revision=99999999999999999999",
            "revision must be at most 18446744073709551615",
        ),
        ("&at=now", "at must be an RFC 3339 timestamp"),
        (
            "&at=2001-01-01T00:00:00+01:00",
            "at must have the + of its offset written as %2B",
        ),
        ("&at=2099-01-01T00:00:00Z&revision=1", "at and revision"),
    ] {
        studio.list_request(more).send().refused(400, &[said]);
    }
}

#[test]
fn concurrent_changes_leave_a_past_without_gaps() {
    const WRITERS: usize = 16;
    let studio = Studio::open();
    studio.create("shared", &Value::Null).expect(201);
    at_once(WRITERS, |number| {
        studio
            .change("shared", &json!({"role": format!("by {number}")}))
            .expect(200);
        studio.create(&format!("own-{number}"), &Value::Null).expect(201);
    });
    let versions = on(&studio, "GET", "versions", "shared", "").send().expect(200).json();
    let numbers: Vec<_> = versions
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=WRITERS as u64 + 1).rev().collect::<Vec<_>>());
    // Each entry changes the list of the revision before it in one agent.
    let mut before = studio.list_request("&revision=2").send().expect(200).json();
    for entry in studio.audit().iter().rev().skip(2) {
        let after = studio
            .list_request(&format!("&revision={}", entry["revision"]))
            .send()
            .expect(200)
            .json();
        let id = &entry["target"]["id"];
        let others = |list: &Value| -> Vec<Value> {
            let all = list.as_array().unwrap().iter();
            all.filter(|agent| agent["agent_id"] != *id).cloned().collect()
        };
        assert_eq!(others(&before), others(&after), "{entry}");
        let changed = after
            .as_array()
            .unwrap()
            .iter()
            .find(|agent| agent["agent_id"] == *id)
            .unwrap();
        assert_eq!(changed["updated_at"], entry["created_at"]);
        if entry["action"] == "agent.updated" {
            assert_eq!(changed["role"], entry["changes"]["role"]["to"]);
        }
        before = after;
    }
    assert_eq!(before, studio.list().json());
}
