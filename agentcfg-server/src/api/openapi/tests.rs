//! The files are what is generated, and what is generated is valid.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::LazyLock;
use std::{env, fs};

use agentcfg_core::model::ErrorBody;
use agentcfg_core::routing::Catalogue;
use agentcfg_core::token;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::docs;
use super::document::{answer_example, document};
use super::schemas::Schemas;
use crate::api::answer::AnswerBody;
use crate::api::endpoint::Example;
use crate::api::endpoints;
use crate::api::endpoints::DOCUMENT;

/// The folder of the files.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api");

static DOC: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(DOCUMENT).unwrap());

fn at(path: &str) -> &'static Value {
    DOC.pointer(path).unwrap_or_else(|| panic!("{path} is missing"))
}

fn walk(value: &'static Value, visit: &mut impl FnMut(&'static Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| walk(field, visit)),
        _ => {}
    }
}

/// `UPDATE_OPENAPI=1` writes the files, and the form in gzip of those of the documentation.
#[test]
fn the_files_are_what_is_generated() {
    let document = document();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let pages = docs::files(&document).map(|(name, text)| (format!("docs/{name}"), text));
    for (name, text) in [("openapi.json".to_owned(), text)].into_iter().chain(pages) {
        let path = format!("{FOLDER}/{name}");
        let is_current = fs::read_to_string(&path).is_ok_and(|file| file == text);
        if !is_current && env::var_os("UPDATE_OPENAPI").is_some() {
            if name != "openapi.json" {
                fs::write(format!("{path}.gz"), gzip(text.as_bytes())).unwrap();
            }
            fs::write(path, text).unwrap();
            continue;
        }
        assert!(
            is_current,
            "{name} is out of date: run `UPDATE_OPENAPI=1 cargo test -p agentcfg-server --lib openapi`"
        );
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_server_is_where_the_document_is() {
    // Resolved against the place of the document, this is right below a prefix too.
    assert_eq!(at("/servers/0/url"), ".");
}

#[test]
fn references_lead_somewhere_and_no_component_is_left_over() {
    let mut used = BTreeSet::new();
    walk(&DOC, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            at(reference.strip_prefix('#').unwrap());
            used.insert(reference);
        }
    });
    for kind in ["schemas", "parameters", "headers", "responses"] {
        for name in at("/components")[kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(used.contains(reference.as_str()), "{reference} is not used");
        }
    }
}

#[test]
fn operations_have_names_of_their_own_and_say_what_they_do() {
    let mut ids = BTreeSet::new();
    for endpoint in endpoints::all() {
        assert!(ids.insert(endpoint.doc.id), "{}", endpoint.doc.id);
        for known in endpoint.doc.paths {
            assert!(ids.insert(known.id), "{}", known.id);
            let prefix = endpoint.route.prefix.unwrap();
            assert!((prefix.accepts)(known.rest, &Catalogue::default()), "{}", known.rest);
        }
    }
    for endpoint in endpoints::all() {
        let doc = endpoint.doc;
        for text in [doc.summary, doc.description, doc.answer] {
            assert!(!text.is_empty(), "{}", doc.id);
        }
    }
}

/// An example of a body is accepted by its reader; one of an answer comes out unchanged when it is read and written.
#[test]
fn examples_are_read_and_written_unchanged() {
    let schemas = Schemas::new();
    for endpoint in endpoints::all() {
        let id = endpoint.doc.id;
        if let Some(body) = endpoint.content.schema() {
            assert!(!endpoint.doc.bodies.is_empty(), "{id}");
            for Example(name, json) in endpoint.doc.bodies {
                (body.read)(json).unwrap_or_else(|fault| panic!("{id}, {name}: {fault}"));
            }
        }
        for Example(name, json) in endpoint.doc.answers {
            let json = answer_example(&endpoint.answer.shown, json, &schemas).to_string();
            let example: Value = serde_json::from_str(&json).unwrap();
            let (shown, values) = match (endpoint.answer.shown, &example) {
                (AnswerBody::Value(schema), value) => (schema, std::slice::from_ref(value)),
                (
                    AnswerBody::List(schema) | AnswerBody::Lines(schema) | AnswerBody::Events(schema),
                    Value::Array(values),
                ) => (schema, &values[..]),
                _ => continue,
            };
            for value in values {
                let read = (shown.read)(&value.to_string());
                assert_eq!(read.as_ref(), Ok(&Some(value.clone())), "{id}, {name}");
            }
        }
    }
}

#[test]
fn examples_of_failures_are_failures() {
    for (name, response) in at("/components/responses").as_object().unwrap() {
        let content = &response["content"]["application/json"];
        assert_eq!(
            content["schema"],
            json!({"$ref": "#/components/schemas/Error"}),
            "{name}"
        );
        for example in content["examples"].as_object().unwrap().values() {
            let _: ErrorBody = serde_json::from_value(example["value"].clone()).unwrap();
        }
    }
}

/// The example of a key must not be a valid key: secret scanners and readers could take it for one.
#[test]
fn no_example_is_a_credential() {
    let key = at("/components/schemas/CreatedApiKey/examples/0/key").as_str().unwrap();
    assert_eq!((key.len(), token::parse(key)), (token::LENGTH, None));
    assert!(key.starts_with(token::MARK));
}
