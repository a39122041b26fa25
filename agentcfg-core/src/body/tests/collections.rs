//! Tags and parameters of an agent.

use super::agents::check;
use super::{create, text};
use crate::model::NewAgent;

#[test]
fn capabilities() {
    let tags = |count: usize| format!("[{}]", vec!["\"t\""; count].join(","));
    let long = format!("[{},{}]", text("😀", 100), text("😀", 101));
    check(
        "capabilities",
        &[
            ("[]".into(), ""),
            (tags(100), ""),
            (tags(101), "capabilities must have at most 100 tags, got 101"),
            (long, "capabilities[1] must be at most 100 characters, got 101"),
            (
                r#"["a","","  ","b\u0000",1,null]"#.into(),
                "capabilities[4] must be a string, got a number; capabilities[5] must be a string, got null; \
                 capabilities[1] must be 1 to 100 characters, got 0; capabilities[2] must not be blank; \
                 capabilities[3] must not contain a NUL character",
            ),
            ("null".into(), "capabilities must not be null"),
            ("\"a\"".into(), "capabilities must be an array of strings, got a string"),
            (
                r#"[{"a":1,"a":2}]"#.into(),
                "capabilities[0] must be a string, got an object",
            ),
        ],
    );
    let body = create(r#""capabilities":["b","a","b"]"#);
    assert_eq!(
        NewAgent::from_json(body.as_bytes()).unwrap().capabilities,
        ["b", "a", "b"]
    );
}

#[test]
fn parameters() {
    let entries = |count: usize| {
        let entries: Vec<String> = (0..count).map(|i| format!("\"p{i}\":{i}")).collect();
        format!("{{{}}}", entries.join(","))
    };
    let (at_most, too_long) = (text("😀", 100), text("x", 101));
    let shown = "x".repeat(60);
    let long = format!("the name of parameters.{shown}… must be at most 100 characters, got 101");
    check(
        "parameters",
        &[
            ("{}".into(), ""),
            (entries(100), ""),
            (entries(101), "parameters must have at most 100 entries, got 101"),
            (format!("{{{at_most}:1}}"), ""),
            (format!("{{{too_long}:1}}"), &long),
            (
                r#"{"":1}"#.into(),
                "the name of parameters.\"\" must be 1 to 100 characters, got 0",
            ),
            (
                r#"{"a\u0000":1}"#.into(),
                r"the name of parameters.a\0 must not contain a NUL character",
            ),
            (
                r#"{"warmth":1,"warmth":1}"#.into(),
                "parameters.warmth must not appear more than once",
            ),
            // The same name in another spelling is the same name.
            (
                r#"{"a":1,"\u0061":2}"#.into(),
                "parameters.a must not appear more than once",
            ),
            (
                r#"{"a":"1","b":null,"c":[1],"":true}"#.into(),
                "parameters.a must be a number, got a string; parameters.b must be a number, got null; \
                 parameters.c must be a number, got an array; parameters.\"\" must be a number, got a boolean; \
                 the name of parameters.\"\" must be 1 to 100 characters, got 0",
            ),
            ("null".into(), "parameters must not be null"),
            ("[]".into(), "parameters must be an object of numbers, got an array"),
        ],
    );
}
