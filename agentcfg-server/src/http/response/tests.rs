//! The header fields of answers.

use super::*;

#[test]
fn every_response_carries_the_figures_of_its_rate_limit_and_its_identifier() {
    let rate = RateStatus {
        limit: 100,
        remaining: 99,
        reset_unix_millis: 1_795_167_060_000,
    };
    let mut fields = HeaderMap::new();
    complete(
        &mut fields,
        Some(&rate),
        HeaderValue::from_static("request-1"),
        &mut FieldValues::default(),
    );
    assert_eq!(fields.len(), 5);
    for (name, value) in [
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "99"),
        ("x-ratelimit-reset", "1795167060"),
        ("x-request-id", "request-1"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(fields[name], value, "{name}");
    }
}
