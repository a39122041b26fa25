//! Numbers read back as they were written.

use proptest::prelude::*;

use super::{create, fault};
use crate::model::NewAgent;

/// A parameter after it was read, written to the text of a stored record, and read again.
fn read_back(number: &str) -> String {
    let body = create(&format!("\"parameters\":{{\"x\":{number}}}"));
    let agent = NewAgent::from_json(body.as_bytes()).unwrap();
    let stored = serde_json::to_string(&agent.parameters).unwrap();
    let again: crate::model::Parameters = serde_json::from_str(&stored).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), stored, "{number}");
    again["x"].to_string()
}

#[test]
fn numbers_read_back_as_written() {
    for (written, read) in [
        ("0", "0"),
        ("70", "70"),
        ("-70", "-70"),
        ("0.7", "0.7"),
        ("70.0", "70.0"),
        ("-0.0", "-0.0"),
        // There is no integer minus zero; the sign is kept.
        ("-0", "-0.0"),
        ("1e2", "100.0"),
        ("1E-2", "0.01"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("0.1", "0.1"),
        ("3.141592653589793", "3.141592653589793"),
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("1e-400", "0.0"),
    ] {
        assert_eq!(read_back(written), read, "{written}");
    }
    for (written, value) in [
        ("18446744073709551616", 18446744073709551616.0),
        ("-9223372036854775809", -9223372036854775809.0),
        ("1e23", 1e23),
    ] {
        assert_eq!(read_back(written).parse::<f64>().unwrap(), value, "{written}");
    }
}

#[test]
fn what_no_finite_double_holds_hides_no_other_fault() {
    let body = r#"{"workspace_id":-1e400,"agent_id":"A 1e400 \\\"","display_name":"x","role":1e400,"color":"1e400",
        "capabilities":["a",1e400,2],"parameters":{"z":1e308,"a":1e400,"b":"1e400","c":-1e999,"d":0},"zzz":1e400}"#;
    assert_eq!(
        fault(NewAgent::from_json(body.as_bytes())),
        "workspace_id must be a string, got a number; agent_id must be 1 to 50 of a-z, 0-9, - and _; \
         role must be a string, got a number; color must be # and 3, 4, 6 or 8 hexadecimal digits; \
         capabilities[1] must be a string, got a number; capabilities[2] must be a string, got a number; \
         parameters.a must be a number that a finite double can hold; parameters.b must be a number, got a string; \
         parameters.c must be a number that a finite double can hold; zzz is not a known field"
    );
    for broken in [
        r#"{"a":1e400,"b":}"#,
        r#"{"a":1e400,"b":1e}"#,
        r#"{"a":1e400"#,
        r#"{"a":1e400,"b":""#,
        r#"{"a":1e400} 1"#,
    ] {
        let message = fault(NewAgent::from_json(broken.as_bytes()));
        assert!(message.starts_with("body must be valid JSON: "), "{broken}: {message}");
        let column = message.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
        assert!((10..=broken.len()).contains(&column), "{broken}: {message}");
    }
}

#[test]
fn any_value_may_follow_such_a_number() {
    for body in [
        "{\"a\":1e400,é}",
        "{\"a\":1e400}é",
        "[1e400,🦀\"",
        "[-1e400, -é, 1é, \"\\é\\",
        "[1e400,\"é",
        "1e400é",
    ] {
        let message = fault(NewAgent::from_json(body.as_bytes()));
        assert!(message.starts_with("body must be valid JSON: "), "{body}: {message}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_much(text in "(1e999|-|[0-9]|\"|\\\\|[,:\\[\\]{}]|é| |e|\\.){0,40}") {
        let _ = NewAgent::from_json(format!("[1e400,{text}").as_bytes());
        let _ = NewAgent::from_json(format!("{{\"parameters\":{{\"a\":1e400}},{text}").as_bytes());
    }
}

#[test]
fn many_numbers_that_no_finite_double_holds_take_no_longer_than_others() {
    // With a search from the start of the text for each number, this would take quadratic time.
    let body = format!("{{\"capabilities\":[{}1]}}", "1e999,".repeat(150_000));
    let message = fault(NewAgent::from_json(body.as_bytes()));
    assert!(message.contains("capabilities[0] must be a string, got a number"));
}

#[test]
fn what_no_finite_double_holds_is_refused_by_name() {
    let huge = "9".repeat(400);
    for number in ["1e400", "-1e400", "1e309", "1.8e308", &huge] {
        let body = create(&format!("\"parameters\":{{\"y\":1,\"warmth\":{number}}}"));
        assert_eq!(
            fault(NewAgent::from_json(body.as_bytes())),
            "parameters.warmth must be a number that a finite double can hold",
            "{number}"
        );
    }
    for number in [
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "+1",
        ".5",
        "1.",
        "0x10",
        "1_000",
        "1e",
    ] {
        let body = create(&format!("\"parameters\":{{\"x\":{number}}}"));
        let message = fault(NewAgent::from_json(body.as_bytes()));
        assert!(message.starts_with("body must be valid JSON: "), "{number}: {message}");
    }
}

proptest! {
    #[test]
    fn every_integer_stays_what_it_is(signed: i64, unsigned: u64) {
        prop_assert_eq!(read_back(&signed.to_string()), signed.to_string());
        prop_assert_eq!(read_back(&unsigned.to_string()), unsigned.to_string());
    }

    #[test]
    fn every_double_stays_the_same_double(number in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
        prop_assert_eq!(read_back(&format!("{number:e}")).parse::<f64>().unwrap().to_bits(), number.to_bits());
    }
}
