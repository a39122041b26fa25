//! Every field of an agent, on create and on update.

use super::{WORKSPACE, create, fault, text};
use crate::model::{AgentPatch, AgentType, ApplyAgents, Limits, NewAgent, Patch};

fn on_create(more: &str) -> String {
    fault(NewAgent::from_json(create(more).as_bytes()))
}

fn on_update(body: &str) -> String {
    fault(AgentPatch::from_json(body.as_bytes()))
}

/// Checks one field with a table of values and messages, on create and on update.
pub(super) fn check(field: &str, table: &[(String, &str)]) {
    for (value, message) in table {
        let member = format!("\"{field}\":{value}");
        let shown: String = member.chars().take(80).collect();
        assert_eq!(on_update(&format!("{{{member}}}")), *message, "update {shown}");
        let required = ["workspace_id", "agent_id", "display_name"].contains(&field);
        let created = if required {
            let others = [
                ("workspace_id", WORKSPACE),
                ("agent_id", "writer"),
                ("display_name", "Writer"),
            ];
            let others: Vec<String> = others
                .iter()
                .filter(|(name, _)| *name != field)
                .map(|(name, value)| format!("\"{name}\":\"{value}\""))
                .collect();
            fault(NewAgent::from_json(
                format!("{{{member},{}}}", others.join(",")).as_bytes(),
            ))
        } else {
            on_create(&member)
        };
        assert_eq!(created, *message, "create {shown}");
    }
}

fn nullable_text(field: &str, max: usize) {
    let too_long = format!("{field} must be at most {max} characters, got {}", max + 1);
    let nul = format!("{field} must not contain a NUL character");
    let number = format!("{field} must be a string, got a number");
    let array = format!("{field} must be a string, got an array");
    let twice = format!("{field} must not appear more than once");
    check(
        field,
        &[
            (text("a", max), ""),
            (text("a", max + 1), &too_long),
            // One Unicode scalar value is one character, independent of its length in UTF-8 or UTF-16.
            (text("😀", max), ""),
            (text("😀", max + 1), &too_long),
            (text("e\u{301}", max / 2), ""),
            (text(r"\u00e9", max), ""),
            (text(r"\ud83d\ude00", max), ""),
            ("\"\"".into(), ""),
            ("\" \"".into(), ""),
            ("null".into(), ""),
            (r#""a\u0000b""#.into(), &nul),
            ("1".into(), &number),
            ("[]".into(), &array),
            (format!("\"a\",\"{field}\":\"a\""), &twice),
            (format!("null,\"{field}\":null"), &twice),
        ],
    );
}

#[test]
fn nullable_texts() {
    nullable_text("role", 100);
    nullable_text("description", 2000);
    nullable_text("model", 100);
}

#[test]
fn a_persona_is_checked_by_the_limits_of_the_deployment() {
    let limits = Limits { persona_prompt: 10 };
    let ask = |body: &str| fault(NewAgent::from_json_within(create(body).as_bytes(), limits));
    let is_long = "must be at most 10 characters, got 11 (the setting max_persona_prompt is the limit)";
    let long = format!("\"persona_prompt\":{}", text("😀", 11));
    // Alone it is no fault yet: the agent may have it.
    assert_eq!(ask(&long), "");
    assert_eq!(ask(&format!("\"persona_prompt\":{}", text("😀", 10))), "");
    assert_eq!(
        ask(&format!("{long},\"role\":1")),
        format!("role must be a string, got a number; persona_prompt {is_long}")
    );
    let agents = format!("{{\"agents\":[{{\"agent_id\":\"a\",{long}}}]}}");
    assert_eq!(
        fault(ApplyAgents::from_json_within(agents.as_bytes(), limits)),
        format!("agents[0].display_name is required; agents[0].persona_prompt {is_long}")
    );
    let longest = format!("\"persona_prompt\":{}", text("a", 200_001));
    assert_eq!(
        ask(&longest),
        "persona_prompt must be at most 10 characters, got 200001 (the setting max_persona_prompt is the limit)"
    );
    for (value, message) in [
        (r#""a\u0000b""#, "persona_prompt must not contain a NUL character"),
        ("1", "persona_prompt must be a string, got a number"),
        ("null", ""),
        ("\"\"", ""),
    ] {
        assert_eq!(ask(&format!("\"persona_prompt\":{value}")), message);
    }
}

#[test]
fn display_name() {
    let too_long = "display_name must be at most 100 characters, got 101";
    check(
        "display_name",
        &[
            (text("x", 100), ""),
            (text("x", 101), too_long),
            (text("😀", 100), ""),
            (text("😀", 101), too_long),
            ("\" a \"".into(), ""),
            ("\"\u{200b}\"".into(), ""),
            ("\"\"".into(), "display_name must be 1 to 100 characters, got 0"),
            ("\" \"".into(), "display_name must not be blank"),
            (
                "\"\\t\\n\u{a0}\u{2003}\u{3000}\"".into(),
                "display_name must not be blank",
            ),
            ("null".into(), "display_name must not be null"),
            ("true".into(), "display_name must be a string, got a boolean"),
            (r#""a\u0000""#.into(), "display_name must not contain a NUL character"),
        ],
    );
}

#[test]
fn agent_id_on_create() {
    let rule = "agent_id must be 1 to 50 of a-z, 0-9, - and _";
    for (value, message) in [
        (text("a", 1), ""),
        (text("_", 50), ""),
        ("\"a-z_09\"".into(), ""),
        (text("a", 51), "agent_id must be at most 50 characters, got 51"),
        ("\"\"".into(), rule),
        ("\"Writer\"".into(), rule),
        ("\"a b\"".into(), rule),
        ("\"a\\n\"".into(), rule),
        ("\"ä\"".into(), rule),
        ("\"a.b\"".into(), rule),
        (r#""a\u0000""#.into(), rule),
        ("null".into(), "agent_id must not be null"),
        ("7".into(), "agent_id must be a string, got a number"),
    ] {
        let body = format!(r#"{{"workspace_id":"{WORKSPACE}","agent_id":{value},"display_name":"W"}}"#);
        assert_eq!(fault(NewAgent::from_json(body.as_bytes())), message, "{value}");
    }
}

#[test]
fn identity_on_update_is_read_and_not_judged() {
    assert_eq!(on_update(r#"{"agent_id":"Never Valid"}"#), "");
    assert_eq!(
        on_update(r#"{"agent_id":"a\u0000"}"#),
        "agent_id must not contain a NUL character"
    );
    assert_eq!(on_update(r#"{"agent_id":null}"#), "agent_id must not be null");
}

#[test]
fn workspace_id() {
    let rule = "workspace_id must be a UUID in its hyphenated form";
    let upper = WORKSPACE.to_uppercase();
    let bare = WORKSPACE.replace('-', "");
    check(
        "workspace_id",
        &[
            (format!("\"{WORKSPACE}\""), ""),
            (format!("\"{upper}\""), ""),
            (format!("\"{bare}\""), rule),
            (format!("\"{{{WORKSPACE}}}\""), rule),
            (format!("\"urn:uuid:{WORKSPACE}\""), rule),
            (format!("\" {WORKSPACE}\""), rule),
            ("\"\"".into(), rule),
            ("null".into(), "workspace_id must not be null"),
            ("1".into(), "workspace_id must be a string, got a number"),
        ],
    );
    let agent = NewAgent::from_json(create("").replace(WORKSPACE, &upper).as_bytes()).unwrap();
    assert_eq!(agent.workspace_id.to_string(), WORKSPACE);
}

#[test]
fn agent_type() {
    check(
        "agent_type",
        &[
            ("\"ai\"".into(), ""),
            ("\"human\"".into(), ""),
            ("\"AI\"".into(), "agent_type must be one of ai, human"),
            ("\"\"".into(), "agent_type must be one of ai, human"),
            ("null".into(), "agent_type must not be null"),
            ("{}".into(), "agent_type must be a string, got an object"),
        ],
    );
}

#[test]
fn color() {
    let rule = "color must be # and 3, 4, 6 or 8 hexadecimal digits";
    let long = "color must be at most 20 characters, got 21; color must be # and 3, 4, 6 or 8 hexadecimal digits";
    let mut table: Vec<(String, &str)> = vec![("null".into(), ""), (format!("\"#{}\"", "a".repeat(20)), long)];
    for good in ["#abc", "#ABCD", "#7c3aed", "#7C3AED80"] {
        table.push((format!("\"{good}\""), ""));
    }
    for bad in [
        "",
        "#",
        "abc",
        "#ab",
        "#abcde",
        "#abcdefa",
        "#abcdefabc",
        "#ggg",
        "##abc",
        "#aé",
        "#٣٣٣",
        " #abc",
        "red",
    ] {
        table.push((format!("\"{bad}\""), rule));
    }
    check("color", &table);
}

#[test]
fn read_only_and_unknown_fields_are_named() {
    for field in ["id", "is_active", "created_at", "updated_at"] {
        for value in ["null", "true", "\"x\""] {
            let member = format!("\"{field}\":{value}");
            assert_eq!(on_create(&member), format!("{field} is read-only"));
            assert_eq!(on_update(&format!("{{{member}}}")), format!("{field} is read-only"));
        }
    }
    assert_eq!(
        on_create(r#""Role":"x""#),
        "Role is not a known field (did you mean role?)"
    );
    assert_eq!(
        on_create(r#""displayName":"x""#),
        "displayName is not a known field (did you mean display_name?)"
    );
    assert_eq!(on_update(r#"{"":1}"#), "\"\" is not a known field");
    assert_eq!(
        on_update(r#"{"zebra":1,"id":1,"zebra":2,"id":2,"zebra":3}"#),
        "zebra is not a known field; id is read-only"
    );
    assert_eq!(on_update(r#"{"a\u0000\n":1}"#), r"a\0\n is not a known field");
    let long = format!("{{{}:1}}", text("k", 1000));
    assert_eq!(on_update(&long), format!("{}… is not a known field", "k".repeat(60)));
}

#[test]
fn all_faults_come_in_the_order_of_the_fields() {
    let body = r#"{"zebra":1,"parameters":[],"color":"x","id":1,"display_name":"","agent_id":"A"}"#;
    assert_eq!(
        fault(NewAgent::from_json(body.as_bytes())),
        "workspace_id is required; agent_id must be 1 to 50 of a-z, 0-9, - and _; \
         display_name must be 1 to 100 characters, got 0; color must be # and 3, 4, 6 or 8 hexadecimal digits; \
         parameters must be an object of numbers, got an array; zebra is not a known field; id is read-only"
    );
    assert_eq!(
        fault(NewAgent::from_json(b"{}")),
        "workspace_id is required; agent_id is required; display_name is required"
    );
}

#[test]
fn no_fault_of_a_known_field_is_left_out() {
    let tags = vec!["\"\""; 100].join(",");
    let message = on_update(&format!("{{\"capabilities\":[{tags}]}}"));
    assert_eq!(message.split("; ").count(), 100);
    let unknown: Vec<String> = (0..5000).map(|i| format!("\"u{i}\":0")).collect();
    let message = on_update(&format!("{{{}}}", unknown.join(",")));
    assert!(message.ends_with("; and 4500 more"), "{message}");
    // The parts of a body share the number: 3 times 600 unknown fields and 2 that are missing, of which 1000 are kept.
    let unknown: Vec<_> = (0..600).map(|number| format!("\"z{number}\":1")).collect();
    let agents = vec![format!("{{{}}}", unknown.join(",")); 3].join(",");
    let body = format!("{{\"agents\":[{agents}]}}");
    let invalid = ApplyAgents::from_json(body.as_bytes()).unwrap_err();
    assert_eq!(invalid.faults().len(), 1000);
    assert_eq!(invalid.faults()[999].field(), "agents[1].z395");
    assert!(invalid.to_string().ends_with("; and 1306 more"), "{invalid}");
}

#[test]
fn the_workspace_of_an_applied_agent_may_be_left_out_and_not_be_null() {
    let apply = |more: &str| {
        let body = format!(r#"{{"agents":[{{"agent_id":"a","display_name":"A"{more}}}]}}"#);
        ApplyAgents::from_json(body.as_bytes())
    };
    assert_eq!(apply("").unwrap().agents[0].workspace_id, None);
    assert_eq!(
        fault(apply(r#","workspace_id":null"#)),
        "agents[0].workspace_id must not be null"
    );
}

#[test]
fn a_parameter_that_is_given_several_times_has_one_fault() {
    assert_eq!(
        on_update(r#"{"parameters":{"a":1,"a":2,"a":3}}"#),
        "parameters.a must not appear more than once"
    );
}

#[test]
fn what_is_left_out_gets_its_default() {
    let bare = NewAgent::from_json(create("").as_bytes()).unwrap();
    let spelt = create(r#""role":null,"description":null,"model":null,"color":null,"persona_prompt":null"#);
    assert_eq!(NewAgent::from_json(spelt.as_bytes()).unwrap(), bare);
    assert_eq!(bare.agent_type, AgentType::Ai);
    assert_eq!((&bare.role, &bare.persona_prompt), (&None, &None));
    assert!(bare.capabilities.is_empty() && bare.parameters.is_empty());
}

#[test]
fn an_update_distinguishes_absent_null_and_set() {
    assert_eq!(
        AgentPatch::from_json(b"{}").unwrap().into_inner(),
        AgentPatch::default()
    );
    let patch = AgentPatch::from_json(br#" {"role":null,"model":"","capabilities":[]} "#).unwrap();
    let expected = AgentPatch {
        role: Patch::Null,
        model: Patch::Set(String::new()),
        capabilities: Some(Vec::new()),
        ..AgentPatch::default()
    };
    assert_eq!(patch.into_inner(), expected);
}
