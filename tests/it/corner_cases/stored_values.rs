//! Values of an agent's fields: stored exactly as sent.

use agentcfg_tests::harness::Studio;
use serde_json::{Value, json};

#[test]
fn omitted_lists_read_back_empty() {
    let studio = Studio::open();
    let record = studio.create("writer", &Value::Null).json();
    assert_eq!(
        (&record["capabilities"], &record["parameters"]),
        (&json!([]), &json!({}))
    );
}

#[test]
fn a_number_reads_back_as_it_was_written() {
    let studio = Studio::open();
    let numbers = "\"i\":70,\"f\":0.7,\"z\":0,\"n\":-3,\"max\":18446744073709551615,\"min\":-9223372036854775808,\"small\":5e-324,\
                   \"whole\":1.0,\"third\":0.3333333333333333,\"big\":1.7976931348623157e308";
    let body = format!(
        r#"{{"workspace_id":"{}","agent_id":"writer","display_name":"W","parameters":{{{numbers}}}}}"#,
        studio.id
    );
    studio
        .server
        .post("/api/agents/configs")
        .bearer(&studio.owner)
        .text(body)
        .send()
        .expect(201);
    let text = String::from_utf8(studio.list().body).unwrap();
    for entry in numbers.split(',') {
        let (name, number) = entry.split_once(':').unwrap();
        let shown = text.split(&format!("{name}:")).nth(1).unwrap();
        let shown = shown.split([',', '}']).next().unwrap();
        if number.contains("e3") || number.contains("e-3") {
            assert_eq!(shown.parse::<f64>().unwrap(), number.parse::<f64>().unwrap());
        } else {
            assert_eq!(shown, number, "{name}");
        }
    }
}

#[test]
fn a_number_that_no_finite_double_holds_is_400() {
    let studio = Studio::open();
    for number in ["1e309", "-1e309", "1e999999999999"] {
        let body = format!(
            r#"{{"workspace_id":"{}","agent_id":"w","display_name":"W","parameters":{{"warmth":{number}}}}}"#,
            studio.id
        );
        let request = studio
            .server
            .post("/api/agents/configs")
            .bearer(&studio.owner)
            .text(body);
        request.send().refused(400, &["parameters"]);
    }
}

#[test]
fn a_text_may_be_empty_and_is_kept_as_it_was_sent() {
    let studio = Studio::open();
    let odd = " \t e\u{301} É \u{feff}\r\n\u{1f468}\u{200d}\u{1f469} ";
    let record = studio
        .create("a", &json!({"role": "", "description": odd, "display_name": " x "}))
        .expect(201)
        .json();
    assert_eq!(record["role"], "");
    assert_eq!(record["description"], odd);
    assert_eq!(record["display_name"], " x ");
}

#[test]
fn a_display_name_must_not_be_blank() {
    let studio = Studio::open();
    for blank in ["", " ", "\t\n", "\u{a0}\u{2003}\u{3000}", "\u{85}"] {
        studio
            .create("a", &json!({"display_name": blank}))
            .refused(400, &["display_name"]);
        studio
            .create("a", &json!({"display_name": "A", "capabilities": [blank]}))
            .refused(400, &["capabilities[0]"]);
    }
    // Unicode does not classify the zero-width space as white space.
    studio.create("a", &json!({"display_name": "\u{200b}"})).expect(201);
}

#[test]
fn tags_keep_their_order_and_their_duplicates() {
    let studio = Studio::open();
    let tags = json!(["z", "a", "z", "Ä", " spaced "]);
    assert_eq!(
        studio.create("a", &json!({"capabilities": tags})).expect(201).json()["capabilities"],
        tags
    );
}

#[test]
fn an_agent_may_have_a_hundred_tags_and_a_hundred_parameters() {
    let studio = Studio::open();
    let tags = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    let numbers = |count: usize| {
        (0..count)
            .map(|n| (format!("p{n}"), json!(n)))
            .collect::<serde_json::Map<_, _>>()
    };
    studio
        .create("a", &json!({"capabilities": tags(100), "parameters": numbers(100)}))
        .expect(201);
    studio
        .create("b", &json!({"capabilities": tags(101)}))
        .refused(400, &["capabilities", "100", "101"]);
    studio
        .create("b", &json!({"parameters": numbers(101)}))
        .refused(400, &["parameters", "100", "101"]);
    let (longest, longer) = ("🦀".repeat(100), "🦀".repeat(101));
    studio
        .create(
            "c",
            &json!({"capabilities": [longest], "parameters": {longest.clone(): 1}}),
        )
        .expect(201);
    studio
        .create("d", &json!({"capabilities": [longer]}))
        .refused(400, &["capabilities[0]"]);
    studio
        .create("d", &json!({"parameters": {longer: 1}}))
        .refused(400, &["parameters"]);
    studio
        .create("d", &json!({"parameters": {"": 1}}))
        .refused(400, &["parameters"]);
}

#[test]
fn null_equals_an_omitted_nullable_field() {
    let studio = Studio::open();
    let nothing = json!({"role": null, "description": null, "model": null, "color": null, "persona_prompt": null});
    let record = studio.create("a", &nothing).expect(201).json();
    for field in nothing.as_object().unwrap().keys() {
        assert_eq!(record[field], Value::Null);
    }
}
