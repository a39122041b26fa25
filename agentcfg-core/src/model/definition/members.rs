//! The members of a definition that have rules. Every other one is kept as it is.

use std::collections::HashSet;

use super::read::Place;
use crate::body::mismatch;
use crate::json::{Entries, Json};
use crate::validate::Faults;
use crate::validate::text::{at_most, from_one};

/// A rule for a member.
type Check = fn(&Json<'_>, &Place<'_>, &mut Faults);

/// The members that have rules.
const MEMBERS: &[(&str, Check)] = &[
    ("tools", |json, place, faults| {
        list(json, place, 200, faults, text_or_object);
    }),
    ("mcp_servers", mcp_servers),
    ("skills", |json, place, faults| {
        list(json, place, 100, faults, text_or_object);
    }),
    ("output_schema", |json, place, faults| {
        object(json, place, faults);
    }),
    ("model_settings", model_settings),
    ("fallback_models", |json, place, faults| {
        list(json, place, 5, faults, |json, place, faults| {
            text(json, place, 100, faults);
        });
    }),
    ("variables", |json, place, faults| {
        map(json, place, 100, faults, variable);
    }),
    ("metadata", |json, place, faults| {
        map(json, place, 100, faults, metadata);
    }),
];

/// What a model call fills in from elsewhere, or what only its caller can decide.
const NO_SETTINGS: [&str; 7] = [
    "model",
    "messages",
    "input",
    "system",
    "instructions",
    "prompt",
    "stream",
];

pub(super) fn check(members: &Entries<'_>, field: &str, faults: &mut Faults) {
    let outer = Place::Field(&field);
    for (name, value) in members {
        if let Some((_, check)) = MEMBERS.iter().find(|(known, _)| known == name) {
            check(value, &Place::Member(&outer, name), faults);
        }
    }
}

fn list(json: &Json<'_>, place: &Place<'_>, most: usize, faults: &mut Faults, check: Check) {
    let Json::Array(items) = json else {
        mismatch::<()>(json, place, "an array", faults);
        return;
    };
    if items.len() > most {
        faults.push(
            place,
            format_args!("must have at most {most} elements, got {}", items.len()),
        );
        return;
    }
    for (index, item) in items.iter().enumerate() {
        check(item, &Place::Item(place, index), faults);
    }
}

fn object<'j, 'a>(json: &'j Json<'a>, place: &Place<'_>, faults: &mut Faults) -> Option<&'j Entries<'a>> {
    match json {
        Json::Object(members) => Some(members),
        other => mismatch(other, place, "an object", faults),
    }
}

/// Checks the members of an object, whose names a check sees in their places.
fn map(json: &Json<'_>, place: &Place<'_>, most: usize, faults: &mut Faults, check: Check) {
    let Some(members) = object(json, place, faults) else {
        return;
    };
    if members.len() > most {
        faults.push(
            place,
            format_args!("must have at most {most} entries, got {}", members.len()),
        );
        return;
    }
    for (name, value) in members {
        check(value, &Place::Member(place, name), faults);
    }
}

/// A text of 1 to so many characters.
fn text<'j>(json: &'j Json<'_>, place: &Place<'_>, most: usize, faults: &mut Faults) -> Option<&'j str> {
    let Json::String(text) = json else {
        return mismatch(json, place, "a string", faults);
    };
    from_one(text, most, place, faults);
    Some(text)
}

fn text_or_object(json: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
    match json {
        Json::Object(_) => {}
        Json::String(_) => {
            text(json, place, 200, faults);
        }
        other => {
            mismatch::<()>(other, place, "a string or an object", faults);
        }
    }
}

fn member<'j, 'a>(members: &'j Entries<'a>, name: &str) -> Option<&'j Json<'a>> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn mcp_servers(json: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
    list(json, place, 50, faults, |json, place, faults| {
        let Some(server) = object(json, place, faults) else {
            return;
        };
        match member(server, "name") {
            Some(name) => {
                text(name, &Place::Member(place, "name"), 100, faults);
            }
            None => faults.push(Place::Member(place, "name"), "is required"),
        }
        let (url, command) = (member(server, "url"), member(server, "command"));
        if let Some(url) = url {
            let place = Place::Member(place, "url");
            if text(url, &place, 1000, faults).is_some_and(|url| !is_http(url)) {
                faults.push(place, "must be an http or https URL");
            }
        }
        if let Some(command) = command {
            text(command, &Place::Member(place, "command"), 1000, faults);
        }
        if url.is_none() && command.is_none() {
            faults.push(place, "must have a url or a command");
        }
    });
    // The names are compared when all of them have been read.
    let Json::Array(servers) = json else { return };
    let mut names = HashSet::new();
    for (index, server) in servers.iter().enumerate().take(50) {
        if let Json::Object(server) = server
            && let Some(Json::String(name)) = member(server, "name")
            && !names.insert(name)
        {
            let server = Place::Item(place, index);
            faults.push(Place::Member(&server, "name"), "must not be that of another server");
        }
    }
}

/// Whether a URL has the scheme `http` or `https` and something after it.
fn is_http(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let is_known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_known && !rest.is_empty() && !rest.starts_with(['/', '?', '#']) && !url.contains(char::is_whitespace)
}

fn model_settings(json: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
    for (name, _) in object(json, place, faults).into_iter().flatten() {
        if NO_SETTINGS.contains(&&**name) {
            let rule = "is no setting: a model call has it from the agent's fields or from its caller";
            faults.push(Place::Member(place, name), rule);
        }
    }
}

fn variable(json: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
    if let Place::Member(_, name) = place
        && !is_variable(name)
    {
        let rule = "must be a letter or _, and then up to 63 letters, digits and _";
        faults.push(format_args!("the name of {place}"), rule);
    }
    let Some(members) = object(json, place, faults) else {
        return;
    };
    for (name, value) in members {
        let place = Place::Member(place, name);
        match (&**name, value) {
            ("description" | "default", Json::String(_)) | ("required", Json::Bool(_)) => {}
            ("description" | "default", other) => {
                mismatch::<()>(other, &place, "a string", faults);
            }
            ("required", other) => {
                mismatch::<()>(other, &place, "true or false", faults);
            }
            _ => {}
        }
    }
}

/// Whether a text can be the name of a variable.
fn is_variable(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.len() <= 64 && name.bytes().all(is_part) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

fn metadata(json: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
    if let Place::Member(_, name) = place {
        from_one(name, 100, format_args!("the name of {place}"), faults);
    }
    match json {
        Json::String(text) => at_most(text, 1000, place, faults),
        other => {
            mismatch::<()>(other, place, "a string", faults);
        }
    }
}
