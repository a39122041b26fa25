//! The header fields of answers with a list.

use super::*;

#[test]
fn each_field_of_a_list_gets_its_own_value() {
    let cursor: Cursor = "k3j9x0ab-00000000-0000-0000-0000-000000000000-c7".parse().unwrap();
    let mut fields = ListHead::new(Tag::list(cursor.epoch(), 7), cursor).fields;
    let kept = fields.clone();
    let rate = RateStatus {
        limit: 100,
        remaining: 99,
        reset_unix_millis: 1_795_167_060_000,
    };
    fill(&mut fields, &rate, HeaderValue::from_static("request-1"));
    assert_eq!(fields.len(), KEPT + FILLED.len());
    for (name, value) in [
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "99"),
        ("x-ratelimit-reset", "1795167060"),
        ("x-request-id", "request-1"),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }
    for name in ["content-type", "etag", "change-cursor", "vary"] {
        assert_eq!(fields[name], kept[name], "{name}");
    }
}

#[test]
fn figures_are_those_of_each_answer() {
    let rate = |limit, seconds: i64| RateStatus {
        limit,
        remaining: 3,
        reset_unix_millis: seconds * 1000,
    };
    for _ in 0..2 {
        for (limit, reset) in [
            (60, 1_795_167_000),
            (60, 1_795_167_064),
            (124, 1_795_167_000),
            (1_000_000, 0),
        ] {
            let expected = [u64::from(limit), 3, reset as u64].map(|number| number.to_string());
            assert_eq!(figures(&rate(limit, reset)), expected);
        }
    }
}
