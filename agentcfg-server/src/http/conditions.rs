//! The conditions of a request: `If-Match` and `If-None-Match`.

use agentcfg_core::model::{Expected, Precondition, Tag, entity_tags};
use agentcfg_core::{Error, ErrorKind};
use hyper::header::{self, HeaderMap, HeaderName};

use crate::http::compression::plain_form;
use crate::http::errors::Failure;
use crate::http::response::FieldValues;

/// The condition in `If-Match`.
pub fn if_match(headers: &HeaderMap) -> Precondition {
    match tags(headers, header::IF_MATCH) {
        None => Precondition::None,
        Some(tags) if is_any(&tags) => Precondition::Exists,
        Some(tags) => {
            let expected = |tag: String| opaque(&tag).map_or(Expected::Unknown(tag), Expected::Tag);
            Precondition::OneOf(tags.into_iter().map(expected).collect())
        }
    }
}

/// The answer to an error of a request with `If-Match`. When the condition is not met, it names the current entity tag
/// to a caller that may read the record, in the message and in `ETag`.
pub fn unmet(condition: &Precondition, error: Error) -> Failure {
    if error.kind() != ErrorKind::Precondition {
        return error.into();
    }
    let (current, way_out) = (error.current_tag(), way_out(condition));
    let failure = Failure::from(error);
    let Some(current) = current else {
        return Failure {
            message: format!("If-Match does not name the current ETag: {way_out}"),
            ..failure
        };
    };
    let failure = Failure {
        message: format!("If-Match does not name the current ETag, which is \"{current}\": {way_out}"),
        ..failure
    };
    failure.with_fields([(header::ETAG, FieldValues::default().tag(current, ""))])
}

/// The advice for a condition that was not met.
fn way_out(condition: &Precondition) -> &'static str {
    let sent = |is: fn(&str) -> bool| match condition {
        Precondition::OneOf(expected) => expected
            .iter()
            .any(|expected| matches!(expected, Expected::Unknown(tag) if is(tag))),
        Precondition::None | Precondition::Exists => false,
    };
    if sent(|tag| tag == "*") {
        "* must stand alone"
    } else if sent(|tag| tag.starts_with("W/")) {
        "an entity tag must be strong here, without W/"
    } else if sent(|tag| !is_quoted(tag)) {
        "an entity tag must be in double quotes"
    } else {
        "read the agent again"
    }
}

/// Whether `If-None-Match` names this tag, of the plain or the compressed form, by weak comparison.
pub fn if_none_match(headers: &HeaderMap, current: Tag) -> bool {
    tags(headers, header::IF_NONE_MATCH).is_some_and(|tags| {
        is_any(&tags)
            || tags
                .iter()
                .any(|tag| opaque(tag.strip_prefix("W/").unwrap_or(tag)) == Some(current))
    })
}

/// Whether `If-None-Match` names this text between quotes, by weak comparison.
pub fn names_tag(headers: &HeaderMap, current: &str) -> bool {
    let is_current = |tag: &String| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        let text = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        text.is_some_and(|text| plain_form(text) == current)
    };
    tags(headers, header::IF_NONE_MATCH).is_some_and(|tags| is_any(&tags) || tags.iter().any(is_current))
}

/// The version that a strong entity tag names.
///
/// The tag of a compressed form names the same version as that of the plain form. Of an agent, only the plain form is
/// sent, but a proxy that compresses may have changed the tag.
fn opaque(tag: &str) -> Option<Tag> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    plain_form(text).parse().ok()
}

/// Whether the condition is `*`, which is one only when it stands alone (RFC 9110, section 13.1).
fn is_any(tags: &[String]) -> bool {
    matches!(tags, [tag] if tag == "*")
}

fn is_quoted(tag: &str) -> bool {
    tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"')
}

/// The entity tags of a header field.
fn tags(headers: &HeaderMap, name: HeaderName) -> Option<Vec<String>> {
    if !headers.contains_key(&name) {
        return None;
    }
    let fields = headers.get_all(name).iter();
    let fields = fields.map(|field| String::from_utf8_lossy(field.as_bytes()));
    let mut tags = Vec::new();
    for field in fields {
        tags.extend(entity_tags(&field).into_iter().map(str::to_owned));
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::headers;
    use super::*;

    #[test]
    fn a_condition_that_is_not_met_has_a_way_out() {
        for (field, way_out) in [
            ("\"x\", *", "* must stand alone"),
            ("W/\"x\"", "an entity tag must be strong here, without W/"),
            ("x", "an entity tag must be in double quotes"),
            ("\"x\"", "read the agent again"),
        ] {
            assert_eq!(
                super::way_out(&if_match(&headers(&[("if-match", field)]))),
                way_out,
                "{field}"
            );
        }
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(if_match(&headers(&[])), Precondition::None);
        assert_eq!(if_match(&headers(&[("if-match", "*")])), Precondition::Exists);
        let mixed = Precondition::OneOf(vec!["\"x\"".into(), "*".into()]);
        assert_eq!(if_match(&headers(&[("if-match", "\"x\", *")])), mixed);
        let list = Precondition::OneOf(vec!["\"a,b\"".into(), "W/\"c\"".into()]);
        assert_eq!(if_match(&headers(&[("if-match", "\"a,b\" , W/\"c\",")])), list);
        let tag: Tag = "k3j9x0ab-a3".parse().unwrap();
        for (field, is_met) in [
            ("\"x\", W/\"k3j9x0ab-a3\"", true),
            ("*", true),
            ("\"x\", *", false),
            ("\"k3j9x0ab-a4\"", false),
            ("\"00000000-a3\"", false),
            ("k3j9x0ab-a3", false),
            ("\"k3j9x0ab-a3-gzip\"", true),
            ("\"k3j9x0ab-a3-gzip-gzip\"", false),
        ] {
            assert_eq!(
                if_none_match(&headers(&[("if-none-match", field)]), tag),
                is_met,
                "{field}"
            );
        }
        for (field, is_met) in [
            ("\"x\", \"k3j9x0ab-a3\"", true),
            ("\"k3j9x0ab-a3-gzip\"", true),
            ("W/\"k3j9x0ab-a3\"", false),
            ("W/\"k3j9x0ab-a3-gzip\"", false),
            ("k3j9x0ab-a3", false),
            ("\"k3j9x0ab-a3", false),
            ("\"k3j9x0ab-w3\"", false),
            ("\"", false),
            ("", false),
        ] {
            assert_eq!(
                if_match(&headers(&[("if-match", field)])).is_met_by(tag),
                is_met,
                "{field}"
            );
        }
    }
}
