//! Bodies that are no JSON object at all.

use proptest::prelude::*;

use super::{create, fault};
use crate::model::{AgentPatch, NewAgent};

#[test]
fn a_body_is_one_json_object() {
    for (body, message) in [
        ("", "body must be a JSON object, got nothing"),
        ("[]", "body must be a JSON object, got an array"),
        ("null", "body must be a JSON object, got null"),
        ("\"{}\"", "body must be a JSON object, got a string"),
        ("1", "body must be a JSON object, got a number"),
        ("true", "body must be a JSON object, got a boolean"),
        ("\u{feff}{}", "body must not start with a byte order mark"),
    ] {
        assert_eq!(fault(AgentPatch::from_json(body.as_bytes())), message, "{body:?}");
    }
    for body in [
        " ",
        "{",
        "{}}",
        "{} {}",
        "{'a':1}",
        "{\"role\":}",
        "{\"role\":\"a\",}",
        "{role:1}",
        "{\"role\":\"a\nb\"}",
        "{}\0",
        "// x\n{}",
    ] {
        let message = fault(AgentPatch::from_json(body.as_bytes()));
        assert!(message.starts_with("body must be valid JSON: "), "{body:?}: {message}");
    }
    assert_eq!(fault(AgentPatch::from_json(b" \t\r\n{ } \n")), "");
}

#[test]
fn texts_are_valid_unicode() {
    assert_eq!(
        fault(AgentPatch::from_json(b"{\"role\":\"\xff\"}")),
        "body must be UTF-8"
    );
    assert_eq!(
        fault(AgentPatch::from_json(b"{\"role\":\"\xed\xa0\x80\"}")),
        "body must be UTF-8"
    );
    for lone in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\u0041", r"\udc00\ud800"] {
        for body in [format!("{{\"role\":\"{lone}\"}}"), format!("{{\"{lone}\":1}}")] {
            let message = fault(AgentPatch::from_json(body.as_bytes()));
            assert!(message.starts_with("body must be valid JSON: "), "{body}: {message}");
        }
    }
}

#[test]
fn a_field_given_twice_is_refused_in_every_spelling_and_place() {
    for more in [
        r#""agent_id":"writer""#,
        r#""display_n\u0061me":"Writer""#,
        r#""workspace_id":null"#,
    ] {
        let message = fault(NewAgent::from_json(create(more).as_bytes()));
        assert!(message.ends_with("must not appear more than once"), "{more}: {message}");
    }
    // Inside what is unknown or of the wrong type, that alone refuses the body.
    assert_ne!(
        fault(NewAgent::from_json(create(r#""x":{"a":1,"a":1}"#).as_bytes())),
        ""
    );
    assert_ne!(
        fault(NewAgent::from_json(
            create(r#""parameters":{"x":{"a":1,"a":1}}"#).as_bytes()
        )),
        ""
    );
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for open in ["[", "{\"a\":"] {
        let body = format!("{{\"x\":{}", open.repeat(100_000));
        let message = fault(AgentPatch::from_json(body.as_bytes()));
        assert_eq!(message, "body must be at most 127 levels deep");
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(crate::json::parse(nested(127).as_bytes()).is_ok());
    assert!(crate::json::parse(nested(128).as_bytes()).is_err());
}

proptest! {
    /// The reader answers for any input, without a panic, and every value that it accepts passes the rules for records
    /// too.
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = AgentPatch::from_json(&bytes);
        let _ = NewAgent::from_json(&bytes);
    }

    #[test]
    fn what_is_read_is_valid_and_reads_back(
        role in proptest::option::of("\\PC{0,110}"),
        name in "\\PC{0,110}",
        tags in proptest::collection::vec("[ a-z]{0,3}", 0..4),
        parameters in proptest::collection::btree_map("\\PC{0,3}", any::<i32>(), 0..4),
    ) {
        let body = serde_json::json!({
            "display_name": name, "role": role, "capabilities": tags, "parameters": parameters,
        });
        if let Ok(patch) = AgentPatch::from_json(body.to_string().as_bytes()) {
            prop_assert!(patch.validate().is_ok());
            let text = serde_json::to_vec(&*patch).unwrap();
            prop_assert_eq!(AgentPatch::from_json(&text).unwrap(), patch);
        }
    }
}
