//! The description against the table of routes, the types and the limits.

mod schemas;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use agentcfg_core::model::*;
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::token;
use agentcfg_core::validate::{self, Faults, Invalid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::DOCUMENT;
use crate::api::routes::{Content, Needs, Operation, ROUTES, Route};
use crate::http::query::Query;

static DOC: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(DOCUMENT).unwrap());

const WORKSPACE: &str = "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05";

fn at(path: &str) -> &'static Value {
    DOC.pointer(path).unwrap_or_else(|| panic!("{path} is missing"))
}

fn schema(name: &str) -> &'static Value {
    at(&format!("/components/schemas/{name}"))
}

/// What stands behind a reference, or the value itself.
fn resolved(value: &'static Value) -> &'static Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => at(reference.strip_prefix('#').unwrap()),
        None => value,
    }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn words(value: &Value) -> BTreeSet<&str> {
    let words = value.as_array().map(Vec::as_slice).unwrap_or_default();
    words.iter().map(|word| word.as_str().unwrap()).collect()
}

fn described(route: &Route) -> &'static Value {
    &at("/paths")[route.path][route.method.to_lowercase()]
}

/// Every described operation with its method and path.
fn operations() -> Vec<(String, &'static str, &'static Value)> {
    let mut operations = Vec::new();
    for (path, item) in at("/paths").as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "parameters" {
                operations.push((method.to_uppercase(), path.as_str(), operation));
            }
        }
    }
    operations
}

fn walk(value: &'static Value, visit: &mut impl FnMut(&'static Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| walk(field, visit)),
        _ => {}
    }
}

#[test]
fn the_document_describes_this_release() {
    assert_eq!(at("/openapi"), "3.1.0");
    assert_eq!(at("/info/version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(at("/servers/0/url"), "/");
}

#[test]
fn routes_and_operations_are_the_same() {
    let routes: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path))
        .collect();
    let operations = operations();
    let listed: BTreeSet<_> = operations
        .iter()
        .map(|(method, path, _)| (method.clone(), *path))
        .collect();
    assert_eq!(routes, listed);

    let ids: BTreeSet<_> = operations
        .iter()
        .map(|(.., operation)| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), operations.len());
    let tags: BTreeSet<_> = at("/tags")
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    for (method, path, operation) in operations {
        assert!(
            operation["summary"].is_string() && operation["description"].is_string(),
            "{method} {path}"
        );
        let own = words(&operation["tags"]);
        assert!(own.len() == 1 && own.is_subset(&tags), "{method} {path}");
    }
}

#[test]
fn credentials_and_permissions_are_those_of_the_table() {
    for route in ROUTES {
        let operation = described(route);
        let (credentials, permission) = match route.needs {
            Needs::Nothing => (json!([]), None),
            Needs::Credential => (json!(["api_key", "session"]), None),
            Needs::Permission(permission) => (json!(["api_key", "session"]), Some(permission)),
            Needs::SessionWith(permission) => (json!(["session"]), Some(permission)),
            // The permission depends on what is asked, so that the table cannot name it.
            Needs::Session => (
                json!(["session"]),
                match route.operation {
                    Operation::UpdateWorkspace => Some(Permission::WorkspaceManage),
                    Operation::RemoveMember => Some(Permission::MembersManage),
                    _ => None,
                },
            ),
        };
        let name = format!("{} {}", route.method, route.path);
        assert_eq!(operation["x-accepted-credentials"], credentials, "{name}");
        assert_eq!(
            operation["x-required-permission"].as_str(),
            permission.map(Permission::as_str),
            "{name}"
        );
        if let Some(permission) = permission {
            let text = operation["description"].as_str().unwrap();
            assert!(text.contains(&format!("`{permission}`")), "{name}");
        }
        let open = operation.get("security").is_some_and(|security| security == &json!([]));
        assert_eq!(open, route.needs == Needs::Nothing, "{name}");
    }
    assert_eq!(at("/security"), &json!([{"bearer": []}]));
}

/// The table in the text on credentials says who holds each permission that an operation asks for.
#[test]
fn holders_of_permissions_are_right() {
    let text = at("/components/securitySchemes/bearer/description").as_str().unwrap();
    let mut told = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let names = |cell: &str| -> BTreeSet<String> {
            let names = cell.split(", ").map(|name| name.split(' ').next().unwrap().to_owned());
            names.filter(|name| name != "none").collect()
        };
        told.insert(
            cells[0].trim_matches('`').to_owned(),
            (names(cells[1]), names(cells[2])),
        );
    }
    let mut asked = BTreeMap::new();
    for (.., operation) in operations() {
        let Some(name) = operation["x-required-permission"].as_str() else {
            continue;
        };
        let permission: Permission = name.parse().unwrap();
        let scopes = Scope::ALL
            .iter()
            .filter(|scope| scope.permissions().contains(permission));
        let roles = Role::ALL.iter().filter(|role| role.permissions().contains(permission));
        let holders = (
            scopes.map(ToString::to_string).collect(),
            roles.map(ToString::to_string).collect(),
        );
        asked.insert(name.to_owned(), holders);
    }
    assert_eq!(told, asked);
}

#[test]
fn references_lead_somewhere_and_no_component_is_left_over() {
    let mut used = BTreeSet::new();
    walk(&DOC, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            assert!(
                DOC.pointer(reference.strip_prefix('#').unwrap()).is_some(),
                "{reference}"
            );
            used.insert(reference.to_owned());
        }
    });
    for kind in ["schemas", "parameters", "headers", "responses"] {
        for name in keys(&at("/components")[kind]) {
            let reference = format!("#/components/{kind}/{name}");
            assert!(used.contains(&reference), "{reference} is not used");
        }
    }
}

#[test]
fn each_operation_lists_what_the_pipeline_can_answer() {
    for route in ROUTES {
        let responses = &described(route)["responses"];
        let mut wanted = vec!["414", "431", "500"];
        if route.needs != Needs::Nothing {
            wanted.extend(["400", "401", "415", "429", "503"]);
        }
        if !matches!(route.needs, Needs::Nothing | Needs::Credential) {
            wanted.push("403");
        }
        if route.content != Content::Nothing {
            wanted.extend(["408", "413"]);
        }
        wanted.extend(match route.operation {
            Operation::ListAgents => &["200", "304"][..],
            Operation::CreateAgent => &["201", "409", "422"],
            Operation::UpdateAgent | Operation::DeleteAgent => &["200", "404", "412"],
            Operation::RestoreAgent => &["200", "404", "409", "412", "422"],
            Operation::CreateWorkspace | Operation::CreateApiKey => &["201"],
            Operation::ReportStatus | Operation::UpdateWorkspace | Operation::RevokeApiKey => &["200", "404"],
            Operation::SetMember => &["200", "409"],
            Operation::CallModel => &["200", "404", "502", "504"],
            Operation::SaveProviderKey | Operation::DeleteProviderKey => &["200", "404"],
            Operation::RemoveMember => &["200", "404", "409"],
            Operation::Ready => &["200", "503"],
            _ => &["200"],
        });
        let wanted: BTreeSet<_> = wanted.into_iter().collect();
        assert_eq!(keys(responses), wanted, "{} {}", route.method, route.path);
        assert_eq!(
            described(route).get("requestBody").is_some(),
            route.content != Content::Nothing,
            "{}",
            route.path
        );
    }
}

#[test]
fn responses_carry_the_headers_of_their_status() {
    const RATE: [&str; 3] = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    let check = |status: &str, response: &'static Value, has_credential: bool| {
        let response = resolved(response);
        let headers = keys(&response["headers"]);
        assert!(headers.contains("X-Request-Id"), "{status}");
        let counted = has_credential && !matches!(status, "401" | "404 path" | "405" | "414" | "431");
        for header in RATE {
            assert_eq!(headers.contains(header), counted, "{status} {response}");
        }
        assert_eq!(headers.contains("WWW-Authenticate"), status == "401");
        assert_eq!(
            headers.contains("Retry-After"),
            matches!(status, "429" | "503"),
            "{status}"
        );
        assert_eq!(headers.contains("Allow"), status == "405");
        let content = &response["content"]["application/json"]["schema"];
        if status == "304" {
            assert!(response.get("content").is_none());
        } else if !status.starts_with('2') {
            assert_eq!(content, &json!({"$ref": "#/components/schemas/Error"}), "{status}");
        } else {
            assert!(content.is_object());
        }
    };
    for route in ROUTES {
        for (status, response) in described(route)["responses"].as_object().unwrap() {
            check(status, response, route.needs != Needs::Nothing);
            let tagged = matches!(status.as_str(), "200" | "201" | "304")
                && matches!(
                    route.operation,
                    Operation::ListAgents | Operation::CreateAgent | Operation::UpdateAgent | Operation::RestoreAgent
                );
            assert_eq!(
                resolved(response)["headers"].get("ETag").is_some(),
                tagged,
                "{}",
                route.path
            );
        }
    }
    check("404 path", &at("/x-unrouted-responses")["404"], false);
    check("405", &at("/x-unrouted-responses")["405"], false);
}
