//! The header field that names the faulty fields of a request.

use agentcfg_core::validate::Fault;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Names the fields that break a rule, so that a form can show each fault at its place without reading the message.
pub const FAULT_FIELDS: HeaderName = HeaderName::from_static("fault-fields");

/// The greatest length of the value in bytes. A body can have a hundred thousand unknown fields.
const LONGEST: usize = 1024;

/// What faults of parameters and header fields begin with.
const NAMED: [&str; 4] = [
    "the query parameter ",
    "the query parameters ",
    "the path parameter ",
    "the header ",
];

/// What stands as it is: names of fields, and places within them such as `capabilities[2]`. Commas separate the fields,
/// so that they are encoded with all others.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'_')
    .remove(b'-')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/')
    .remove(b'[')
    .remove(b']');

/// The header field for these faults: each place once, in the order of the faults, as many as fit. `None` without
/// faults.
pub fn fault_fields(faults: &[Fault]) -> Option<(HeaderName, HeaderValue)> {
    let mut value = String::new();
    let mut named: Vec<&str> = Vec::new();
    for place in faults.iter().flat_map(places) {
        // The list is short where there are many: it has only what fits.
        if named.contains(&place) {
            continue;
        }
        let separator = if value.is_empty() { "" } else { ", " };
        let length = value.len();
        value.push_str(separator);
        value.extend(utf8_percent_encode(place, ENCODED));
        if value.len() > LONGEST {
            value.truncate(length);
            break;
        }
        named.push(place);
    }
    let value = HeaderValue::try_from(value).ok().filter(|value| !value.is_empty());
    value.map(|value| (FAULT_FIELDS, value))
}

/// The places of a fault. It is of two where one of them is missing (`version or label`), or both are given (`version
/// and label`).
fn places(fault: &Fault) -> impl Iterator<Item = &str> {
    let place = fault.place();
    let stripped = NAMED.iter().find_map(|named| place.strip_prefix(named));
    let place = stripped.unwrap_or(place);
    place.split(" or ").flat_map(|place| place.split(" and "))
}

#[cfg(test)]
mod tests {
    use agentcfg_core::model::{NewAgent, NewWorkspace};
    use agentcfg_core::validate::{Faults, Invalid};

    use super::*;

    fn shown(faults: &[Fault]) -> Option<String> {
        let (name, value) = fault_fields(faults)?;
        assert_eq!(name, "fault-fields");
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_place_is_named_once_in_order() {
        assert_eq!(shown(&[]), None);
        let invalid = NewWorkspace::from_json(br#"{"name":" "}"#).unwrap_err();
        assert_eq!(shown(invalid.faults()).as_deref(), Some("name"));
        let body = r#"{"capabilities": ["a", " ", ""], "parameters": {"": 1, "gr\u00f6\u00dfe, x": "y"}, "color": 7}"#;
        let invalid = NewAgent::from_json(body.as_bytes()).unwrap_err();
        let expected = "workspace_id, agent_id, display_name, color, capabilities[1], capabilities[2], parameters.gr%C3%B6%C3%9Fe%2C%20x, \
                        parameters.%22%22";
        assert_eq!(shown(invalid.faults()).as_deref(), Some(expected));
        for both in ["version or label", "version and label"] {
            let invalid = Invalid::new(both, "break a rule together");
            assert_eq!(shown(invalid.faults()).as_deref(), Some("version, label"));
        }
        let parameter = Invalid::new("the query parameter from", "must not be after to");
        assert_eq!(shown(parameter.faults()).as_deref(), Some("from"));
        let mut faults = Faults::default();
        faults.push("role", "must not be blank");
        faults.push("role", "must be at most 100 characters");
        assert_eq!(
            shown(faults.into_result().unwrap_err().faults()).as_deref(),
            Some("role")
        );
    }

    #[test]
    fn the_value_is_bounded_and_cuts_no_name() {
        let mut faults = Faults::default();
        for number in 0..1000 {
            faults.push(format_args!("field_{number:03}"), "is not a known field");
        }
        let value = shown(faults.into_result().unwrap_err().faults()).unwrap();
        // 93 names of 9 bytes with their separators are 1021 bytes.
        assert_eq!(value.len(), 1021);
        assert!(value.ends_with(", field_092"), "{value}");
    }
}
