use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const PERSONA: &str = "You are \"terse\".\nNo\ttabs: \u{1F642}";

fn fill(format: Format, body: &str) -> String {
    let draft = Draft::read(format, &Bytes::copy_from_slice(body.as_bytes())).unwrap();
    let filled = draft.fill(Some("gpt-5.5"), Some(PERSONA), &ModelSettings::default());
    String::from_utf8(filled.to_vec()).unwrap()
}

fn settings(text: &str) -> ModelSettings {
    serde_json::from_str(text).unwrap()
}

/// A body with these settings, and no model and persona of the agent.
fn set(format: Format, body: &str, text: &str) -> String {
    let draft = Draft::read(format, &Bytes::copy_from_slice(body.as_bytes())).unwrap();
    String::from_utf8(draft.fill(None, None, &settings(text)).to_vec()).unwrap()
}

#[test]
fn settings_are_inserted_where_the_body_lacks_them() {
    let two = r#"{"temperature":0.20,"tools":[{"a": 1}]}"#;
    for (body, expected) in [
        ("{}", r#"{"temperature":0.20,"tools":[{"a": 1}]}"#),
        ("{ \"x\" : 1 }", r#"{"temperature":0.20,"tools":[{"a": 1}], "x" : 1 }"#),
        (
            r#"{"temperature": null,"x":1}"#,
            r#"{"tools":[{"a": 1}],"temperature": null,"x":1}"#,
        ),
        (
            r#"{"t\u0065mperature":1,"tools":[]}"#,
            r#"{"t\u0065mperature":1,"tools":[]}"#,
        ),
        // Members of members are no members of the body.
        (
            r#"{"x":{"tools":1},"temperature":1}"#,
            r#"{"tools":[{"a": 1}],"x":{"tools":1},"temperature":1}"#,
        ),
    ] {
        for format in [Format::ChatCompletions, Format::Responses, Format::Messages] {
            assert_eq!(set(format, body, two), expected, "{format:?}");
        }
    }
    assert_eq!(
        set(Format::Responses, r#"{"a":1}"#, r#"{"\u0061":2,"b":null}"#),
        r#"{"b":null,"a":1}"#
    );
    assert_eq!(set(Format::Responses, r#" {"a":1} "#, "{}"), r#" {"a":1} "#);
}

#[test]
fn model_persona_and_settings_are_inserted_together() {
    let filled = |format, body: &str| {
        let draft = Draft::read(format, &Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let filled = draft.fill(Some("m"), Some("p"), &settings(r#"{"top_p":1}"#));
        String::from_utf8(filled.to_vec()).unwrap()
    };
    assert_eq!(
        filled(Format::Responses, "{}"),
        r#"{"model":"m","instructions":"p","top_p":1}"#
    );
    assert_eq!(
        filled(Format::ChatCompletions, r#"{"model":"","messages":[]}"#),
        r#"{"top_p":1,"model":"m","messages":[{"role":"system","content":"p"}]}"#
    );
    assert_eq!(
        filled(Format::Messages, r#"{"system":null,"max_tokens":1}"#),
        r#"{"model":"m","top_p":1,"system":"p","max_tokens":1}"#
    );
}

fn persona() -> String {
    serde_json::to_string(PERSONA).unwrap()
}

fn requested(body: &str) -> Option<String> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let draft = Draft::read(Format::Responses, &body).unwrap();
    draft.requested_model().map(str::to_owned)
}

#[test]
fn members_go_behind_the_opening_brace() {
    let persona = persona();
    assert_eq!(
        fill(Format::Responses, " {\n \"input\" : \"hi\" }\n"),
        format!(" {{\"model\":\"gpt-5.5\",\"instructions\":{persona},\n \"input\" : \"hi\" }}\n")
    );
    assert_eq!(
        fill(Format::Messages, "{ }"),
        format!("{{\"model\":\"gpt-5.5\",\"system\":{persona} }}")
    );
    assert_eq!(
        fill(Format::Messages, r#"{"model":"x","max_tokens":1}"#),
        format!(r#"{{"system":{persona},"model":"x","max_tokens":1}}"#)
    );
    assert_eq!(
        fill(Format::Messages, r#"{"system":[]}"#),
        r#"{"model":"gpt-5.5","system":[]}"#
    );
}

#[test]
fn an_empty_string_counts_as_absent() {
    assert_eq!(
        fill(Format::Responses, r#"{"model":"","instructions":""}"#),
        format!(r#"{{"model":"gpt-5.5","instructions":{}}}"#, persona())
    );
    assert_eq!(
        fill(Format::Messages, r#"{"model":"x","system":""}"#),
        format!(r#"{{"model":"x","system":{}}}"#, persona())
    );
    assert_eq!(requested(r#"{"model":""}"#), None);
    assert_eq!(
        Draft::opaque(&Bytes::from_static(br#"{"model":""}"#))
            .unwrap()
            .requested_model(),
        None
    );
}

#[test]
fn long_models_and_many_members_are_refused() {
    let refused = |format, body: &str| {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Draft::read(format, &body).map(|_| ()).unwrap_err().message
    };
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(257));
    for format in [Format::ChatCompletions, Format::Responses, Format::Messages] {
        assert!(refused(format, &long).contains("at most 256 characters"));
    }
    assert!(Draft::opaque(&Bytes::from(long)).is_err());
    let twice = Draft::opaque(&Bytes::from_static(br#"{"m\u006fdel":"a","model":"b"}"#));
    assert_eq!(
        twice.map(|_| ()).unwrap_err().message,
        "model must not appear more than once"
    );
    assert!(requested(&format!(r#"{{"model":"{}"}}"#, "m".repeat(256))).is_some());
    let many: String = (0..10_001).map(|number| format!("\"{number}\":0,")).collect();
    assert!(refused(Format::Responses, &format!("{{{many}\"a\":1}}")).contains("at most 10000 members"));
}

#[test]
fn a_list_of_models_is_seen() {
    for (body, expected) in [
        (r#"{"models":["a"]}"#, true),
        (r#"{"m\u006fdels":[]}"#, true),
        (r#"{"models":null}"#, false),
        (r#"{"input":{"models":["a"]}}"#, false),
    ] {
        let body = Bytes::copy_from_slice(body.as_bytes());
        assert_eq!(Draft::read(Format::Responses, &body).unwrap().lists_models(), expected);
        assert_eq!(Draft::opaque(&body).unwrap().lists_models(), expected);
    }
}

#[test]
fn the_settings_can_add_a_list_of_models_where_the_body_has_none() {
    for (body, expected) in [
        (r#"{"input":"models"}"#, true),
        ("{}", true),
        (r#"{"models":null}"#, false),
        (r#"{"m\u006fdels":[]}"#, false),
    ] {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let draft = Draft::read(Format::Responses, &body).unwrap();
        assert_eq!(draft.takes_list_of_models(), expected, "{body:?}");
        assert!(!Draft::opaque(&body).unwrap().takes_list_of_models());
    }
}

#[test]
fn a_persona_is_the_first_message() {
    let message = format!(r#"{{"role":"system","content":{}}}"#, persona());
    assert_eq!(
        fill(
            Format::ChatCompletions,
            r#"{"model":"m","messages": [ {"role":"user"}] }"#
        ),
        format!(r#"{{"model":"m","messages": [{message}, {{"role":"user"}}] }}"#)
    );
    assert_eq!(
        fill(Format::ChatCompletions, r#"{"model":"m","messages":[ ]}"#),
        format!(r#"{{"model":"m","messages":[{message} ]}}"#)
    );
    // The model before and the persona behind.
    assert_eq!(
        fill(Format::ChatCompletions, r#"{"messages":[1]}"#),
        format!(r#"{{"model":"gpt-5.5","messages":[{message},1]}}"#)
    );
}

#[test]
fn what_the_request_has_stays() {
    for body in [
        r#"{"model":"m","messages":[{"role":"system","content":"x"}]}"#,
        r#"{"model":"m","messages":[{"role":"user"},{"content":"x","role":"developer"}]}"#,
        r#"{"model":"m","messages":[{"r\u006fle":"s\u0079stem"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","role":"system"}]}"#,
        r#"{"model":" ","messages":[{"role":"system"}]}"#,
        r#"{"model":5,"messages":"none"}"#,
        r#"{"mod\u0065l":"m","messages":{}}"#,
        r#"{"model":"m"}"#,
        r#"{"model":"m","messages":null}"#,
    ] {
        assert_eq!(fill(Format::ChatCompletions, body), body);
    }
    let body = r#"{"model":"m","instructions":" "}"#;
    assert_eq!(fill(Format::Responses, body), body);
}

#[test]
fn null_counts_as_absent() {
    let persona = persona();
    assert_eq!(
        fill(Format::Responses, r#"{"instructions": null ,"model":null}"#),
        format!(r#"{{"instructions": {persona} ,"model":"gpt-5.5"}}"#)
    );
}

#[test]
fn odd_texts_survive() {
    let odd = concat!(
        r#"{"a":1e400,"a":-0,"b":1.000000000000000000000000000001,"c":"\ud800","\udfff":"\/","#,
        "\"d\":[[[]]],\"d\":{\"x\":1,\"x\":2},\r\n\t\"model\":\"m\",\"system\":\"s\"}"
    );
    assert_eq!(fill(Format::Messages, odd), odd);
    let depth = 100_000;
    let deep = format!(
        r#"{{"model":"m","system":"s","x":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    assert_eq!(fill(Format::Messages, &deep), deep);
}

#[test]
fn without_an_agents_own_nothing_is_added() {
    let body = Bytes::from_static(b"{\"messages\":[]}");
    let draft = Draft::read(Format::ChatCompletions, &body).unwrap();
    assert_eq!(draft.fill(None, None, &ModelSettings::default()), body);
}

#[test]
fn the_model_is_read_also_where_it_is_written_with_escapes() {
    assert_eq!(requested(r#"{"model":"a"}"#).as_deref(), Some("a"));
    assert_eq!(requested(r#"{"mod\u0065l":"\u0061"}"#).as_deref(), Some("a"));
    for none in ["{}", r#"{"model":null}"#, r#"{"model":5}"#, r#"{"x":{"model":"a"}}"#] {
        assert_eq!(requested(none), None, "{none}");
    }
}

#[test]
fn what_decides_is_there_once() {
    for (format, body, name) in [
        (Format::Responses, r#"{"model":"a","mod\u0065l":"b"}"#, "model"),
        (
            Format::Responses,
            r#"{"instructions":null,"instructions":"x"}"#,
            "instructions",
        ),
        (Format::Messages, r#"{"system":"a","system":"a"}"#, "system"),
        (Format::ChatCompletions, r#"{"messages":[],"messages":[]}"#, "messages"),
    ] {
        let failure = Draft::read(format, &Bytes::from_static(body.as_bytes())).unwrap_err();
        assert_eq!(
            (failure.status.as_u16(), failure.message.contains(name)),
            (400, true),
            "{body}"
        );
    }
}

#[test]
fn what_is_no_object_is_refused() {
    let refusal = |body: &[u8]| {
        let failure = Draft::read(Format::Messages, &Bytes::copy_from_slice(body)).unwrap_err();
        assert_eq!(failure.status, 400);
        failure.message
    };
    for body in ["[]", "[{}]", "1", "\"secret\"", "null", "true"] {
        assert_eq!(refusal(body.as_bytes()), "the body must be a JSON object", "{body}");
    }
    for body in [
        "",
        " ",
        "{",
        "{}{}",
        "{} x",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":01}",
        "\u{feff}{}",
        "{,}",
    ] {
        assert!(refusal(body.as_bytes()).starts_with("the body must be JSON"), "{body}");
    }
    assert_eq!(refusal(b"{\"a\":\"\xff\"}"), "the body must be UTF-8");
}

#[test]
fn an_unknown_format_is_looked_at_and_kept() {
    for (body, model) in [
        (&b"{\"model\":\"m\",\"instructions\":null}"[..], Some("m")),
        (b"--boundary\r\n\xff\x00", None),
        (b"", None),
    ] {
        let body = Bytes::copy_from_slice(body);
        let draft = Draft::opaque(&body).unwrap();
        assert_eq!(draft.requested_model(), model);
        assert_eq!(
            draft.fill(Some("gpt-5.5"), Some(PERSONA), &ModelSettings::default()),
            body
        );
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("system")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::from),
        ]
    })
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        Just("model".to_owned()),
        Just("messages".to_owned()),
        Just("instructions".to_owned()),
        Just("system".to_owned()),
        Just("role".to_owned()),
        ".{0,4}",
    ];
    prop::collection::vec((name, value), 0..6).prop_map(|members| members.into_iter().collect())
}

/// The same by values instead of text.
fn expected(format: Format, mut body: Map<String, Value>) -> Value {
    let is_missing = |value: Option<&Value>| value.is_none_or(|value| value.is_null() || value == "");
    if is_missing(body.get("model")) {
        body.insert("model".into(), "gpt-5.5".into());
    }
    match format {
        Format::ChatCompletions => {
            if let Some(Value::Array(messages)) = body.get_mut("messages") {
                let instructs = |message: &Value| message["role"] == "system" || message["role"] == "developer";
                if !messages.iter().any(instructs) {
                    messages.insert(0, json!({"role": "system", "content": PERSONA}));
                }
            }
        }
        Format::Responses if is_missing(body.get("instructions")) => {
            body.insert("instructions".into(), PERSONA.into());
        }
        Format::Messages if is_missing(body.get("system")) => {
            body.insert("system".into(), PERSONA.into());
        }
        _ => {}
    }
    body.into()
}

proptest! {
    #[test]
    fn splicing_is_what_inserting_would_be(body in members(value()), pretty in any::<bool>()) {
        for format in [Format::ChatCompletions, Format::Responses, Format::Messages] {
            let whole = Value::from(body.clone());
            let text = if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) };
            let filled = fill(format, &text.unwrap());
            prop_assert_eq!(serde_json::from_str::<Value>(&filled).unwrap(), expected(format, body.clone()));
        }
    }

    #[test]
    fn the_callers_bytes_stay_in_their_order(body in members(value())) {
        let text = Value::from(body).to_string();
        let filled = fill(Format::Messages, &text);
        // Only null and the empty string are replaced.
        let blank = ["\"model\":null", "\"system\":null", "\"model\":\"\"", "\"system\":\"\""];
        let kept = blank.iter().fold(text, |text, blank| text.replace(blank, ""));
        let mut rest = kept.chars().peekable();
        for character in filled.chars() {
            rest.next_if_eq(&character);
        }
        prop_assert_eq!(rest.next(), None);
    }

    #[test]
    fn any_bytes_are_read_without_harm(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = Bytes::from(body);
        for format in [Format::ChatCompletions, Format::Responses, Format::Messages] {
            if let Ok(draft) = Draft::read(format, &body) {
                draft.fill(Some("m"), Some("p"), &ModelSettings::default());
            }
        }
        prop_assert_eq!(Draft::opaque(&body).unwrap().fill(Some("m"), Some("p"), &settings(r#"{"temperature":1}"#)), body);
    }
}
