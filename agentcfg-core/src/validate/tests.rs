//! The rules, applied to values that were made in Rust.

use super::*;
use crate::model::{
    AgentPatch, Environment, LiveStatus, NewAgent, NewApiKey, Patch, Scope, StatusReport, WorkspaceId, WorkspacePatch,
};

fn workspace() -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(1))
}

fn check(rules: impl FnOnce(&mut Faults)) -> Result<(), Invalid> {
    let mut faults = Faults::default();
    rules(&mut faults);
    faults.into_result()
}

fn faults(result: Result<(), Invalid>) -> String {
    result.err().map(|invalid| invalid.to_string()).unwrap_or_default()
}

#[test]
fn a_new_agent_gets_the_rules_of_a_body() {
    let good = NewAgent::new(workspace(), "a".parse().unwrap(), "A");
    assert_eq!(faults(good.validate()), "");
    let bad = NewAgent {
        display_name: "\u{3000}".into(),
        role: Some("r\0".into()),
        description: Some("d".repeat(2001)),
        model: Some("m".repeat(101)),
        color: Some("blue".into()),
        persona_prompt: Some("p".repeat(200_001)),
        capabilities: vec![String::new()],
        parameters: [("n".repeat(101), 1.into())].into(),
        ..good
    };
    assert_eq!(
        faults(bad.validate()),
        format!(
            "display_name must not be blank; role must not contain a NUL character; \
             description must be at most 2000 characters, got 2001; model must be at most 100 characters, got 101; \
             color must be # and 3, 4, 6 or 8 hexadecimal digits; \
             persona_prompt must be at most 200000 characters, got 200001 (the setting max_persona_prompt is the limit); \
             capabilities[0] must be 1 to 100 characters, got 0; \
             the name of parameters.{}… must be at most 100 characters, got 101",
            "n".repeat(60)
        )
    );
}

#[test]
fn a_patch_is_checked_where_it_sets_something() {
    assert_eq!(faults(AgentPatch::default().validate()), "");
    let clears = AgentPatch {
        role: Patch::Null,
        color: Patch::Null,
        ..AgentPatch::default()
    };
    assert_eq!(faults(clears.validate()), "");
    let bad = AgentPatch {
        display_name: Some(String::new()),
        role: Patch::Set("r".repeat(101)),
        capabilities: Some(vec![" ".into()]),
        parameters: Some([(String::new(), 1.into())].into()),
        ..AgentPatch::default()
    };
    assert_eq!(
        faults(bad.validate()),
        "display_name must be 1 to 100 characters, got 0; role must be at most 100 characters, got 101; \
         capabilities[0] must not be blank; the name of parameters.\"\" must be 1 to 100 characters, got 0"
    );
}

#[test]
fn user_ids() {
    for good in ["a", "auth0|5f", "ada@example.org", "ä b", &"😀".repeat(200)] {
        assert!(is_user_id(good), "{good}");
        assert_eq!(faults(check(|faults| user_id(good, &"user_id", faults))), "");
    }
    for (bad, message) in [
        ("", "user_id must be 1 to 200 characters, got 0"),
        (&*"😀".repeat(201), "user_id must be 1 to 200 characters, got 201"),
        ("a\0", "user_id must not contain control characters"),
        ("a\n", "user_id must not contain control characters"),
        ("\u{85}", "user_id must not contain control characters"),
        ("\u{7f}", "user_id must not contain control characters"),
    ] {
        assert!(!is_user_id(bad), "{bad:?}");
        assert_eq!(faults(check(|faults| user_id(bad, &"user_id", faults))), message);
    }
}

#[test]
fn reports_keys_and_workspaces() {
    assert_eq!(faults(StatusReport::idle().validate()), "");
    assert_eq!(faults(StatusReport::working("t", "T").validate()), "");
    let idle_with_a_task = StatusReport {
        status: LiveStatus::Idle,
        ..StatusReport::working("t", "T")
    };
    assert_eq!(
        faults(idle_with_a_task.validate()),
        "current_task_id must be absent when status is idle; current_task_title must be absent when status is idle"
    );
    let key = NewApiKey::new(workspace(), "", Environment::Production, Scope::Read).rate_limit(0);
    assert_eq!(
        faults(key.validate()),
        "name must be 1 to 100 characters, got 0; rate_limit must be an integer from 1 to 1000000"
    );
    let patch = WorkspacePatch {
        name: Some("n".repeat(101)),
        plan: None,
    };
    assert_eq!(faults(patch.validate()), "name must be at most 100 characters, got 101");
    assert_eq!(faults(WorkspacePatch::default().validate()), "");
}

#[test]
fn each_fault_has_its_field_and_its_rule() {
    let patch = AgentPatch {
        display_name: Some(String::new()),
        capabilities: Some(vec!["a".into(), " ".into()]),
        ..AgentPatch::default()
    };
    let invalid = patch.validate().unwrap_err();
    let faults: Vec<(&str, &str)> = invalid.faults().iter().map(|f| (f.field(), f.rule())).collect();
    assert_eq!(
        faults,
        [
            ("display_name", "must be 1 to 100 characters, got 0"),
            ("capabilities[1]", "must not be blank"),
        ]
    );
    assert_eq!(
        invalid.to_string(),
        "display_name must be 1 to 100 characters, got 0; capabilities[1] must not be blank"
    );
}

#[test]
fn the_place_of_a_name_is_its_entry() {
    let mut faults = Faults::default();
    faults.push("the name of parameters.tone", "must be at most 50 characters");
    faults.push("parameters.tone", "must not be blank");
    let invalid = faults.into_result().unwrap_err();
    let places: Vec<_> = invalid.faults().iter().map(Fault::place).collect();
    assert_eq!(places, ["parameters.tone", "parameters.tone"]);
}

#[test]
fn a_part_has_the_room_that_the_whole_has_left() {
    let mut faults = Faults::default();
    let mut kept = 0;
    while faults.has_room() {
        assert!(faults.of_part().has_room());
        faults.push("a", "b");
        kept += 1;
    }
    let mut part = faults.of_part();
    assert!(!part.has_room());
    part.push("c", "d");
    faults.add_under(&"e", part);
    assert_eq!(
        (faults.count(), kept),
        (kept + 1, faults.into_result().unwrap_err().faults().len())
    );
}

#[test]
fn what_may_be_stored_already_is_no_fault_within_a_part_either() {
    let mut faults = Faults::default();
    for _ in 0..2 {
        let mut part = faults.of_part();
        part.push_unless_stored("persona_prompt", "must be at most 10 characters");
        faults.add_under(&"agents[0]", part);
    }
    assert_eq!(faults.count(), 0);
    faults.push("role", "must not be blank");
    assert_eq!(faults.count(), 1);
    let invalid = faults.into_result().unwrap_err();
    assert_eq!(invalid.faults().len(), 3);
    assert_eq!(invalid.faults()[1].field(), "agents[0].persona_prompt");
}

#[test]
fn names_of_sets_labels_and_messages_have_a_form() {
    let broken = |rule: fn(&str, &dyn std::fmt::Display, &mut Faults), text: &str| {
        check(|faults| rule(text, &"field", faults)).is_err()
    };
    let long = "a".repeat(100);
    for good in ["a", "0", "a.b_c-d9", &long[..MAX_SET_NAME]] {
        assert!(!broken(text::set_name, good), "{good}");
    }
    for bad in ["", "A", ".a", "-", "_a", "a b", "ä", "a/", &long[..=MAX_SET_NAME]] {
        assert!(broken(text::set_name, bad), "{bad}");
    }
    for good in ["a", "v1", "1a", "a.b_c-d9", "2026-11-30", &long[..MAX_LABEL]] {
        assert!(!broken(text::label, good), "{good}");
    }
    for bad in [
        "",
        "A",
        "aB",
        ".a",
        "-1",
        "_",
        "12",
        "a b",
        "ä",
        "a/",
        &long[..=MAX_LABEL],
    ] {
        assert!(broken(text::label, bad), "{bad}");
    }
    let longest = "ä".repeat(MAX_MESSAGE);
    for good in ["", "a\nb\t", &longest] {
        assert!(!broken(text::message, good), "{good}");
    }
    for bad in ["a\0", &format!("{longest}b")] {
        assert!(broken(text::message, bad), "{bad}");
    }
    for (id, is_good) in [("0".repeat(20), true), ("0".repeat(19), false), ("-".repeat(20), false)] {
        assert_eq!(broken(text::api_key_id, &id), !is_good, "{id}");
    }
}
