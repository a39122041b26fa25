//! The generation of the OpenAPI document.

use agentcfg_core::model::{Permission, Role, Scope};
use serde_json::Value;

use super::failures::{self, FAILURES, headers};
use super::json_tree::{JsonTree, object, parse, reference};
use super::rpc;
use super::schemas::Schemas;
use crate::api::answer::AnswerBody;
use crate::api::call::{Content, Location, ParameterDoc, Shape};
use crate::api::endpoint::{Definition, Example, KnownPath};
use crate::api::endpoints;
use crate::api::route::Needs;

/// The parts that do not follow from the definitions: the version of OpenAPI, title, servers, header fields.
const FRAME: &str = include_str!("frame.json");
const INFO: &str = include_str!("info.md");
const CREDENTIALS: &str = include_str!("credentials.md");
/// The end of the description of a known path.
const KNOWN_PATH: &str =
    "What is forwarded, and what is answered, is described at `/api/agents/model-calls/{provider}/{path}`.";

/// A parameter of every endpoint.
const REQUEST_ID: ParameterDoc = ParameterDoc::header(
    "RequestId",
    "X-Request-Id",
    Shape::Text,
    "The caller's name for the exchange, returned in the response if it is 1 to 128 visible ASCII characters. Any other \
     value is replaced, not refused.",
)
.example(r#""ci-run-4711""#);

/// The OpenAPI document of all endpoints.
pub(super) fn document() -> Value {
    let frame = parse(FRAME);
    let part = |name: &str| frame.get(name).cloned().unwrap_or_else(|| panic!("{name} is missing"));
    let mut schemas = Schemas::new();
    let info = part("info")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("description", INFO.trim_end());
    let bearer = object().with("bearer", Value::Array(Vec::new()));
    object()
        .with("openapi", part("openapi"))
        .with("info", info)
        .with("servers", part("servers"))
        .with("security", Value::Array(vec![bearer]))
        .with("tags", tags())
        .with("paths", paths(&mut schemas))
        .with("components", components(&schemas, part("headers")))
        .with("x-unrouted-responses", part("x-unrouted-responses"))
}

fn tags() -> Value {
    let mut tags = Vec::new();
    for endpoint in endpoints::all() {
        if !tags.contains(&endpoint.doc.tag) {
            tags.push(endpoint.doc.tag);
        }
    }
    let tags = tags
        .iter()
        .map(|tag| object().with("name", tag.name).with("description", tag.description));
    Value::Array(tags.collect())
}

fn paths(schemas: &mut Schemas) -> Value {
    let mut paths = object();
    for endpoint in endpoints::all() {
        let new = || object().with("parameters", Value::Array(vec![component(&REQUEST_ID)]));
        let method = endpoint.route.method.to_lowercase();
        for known in endpoint.doc.paths {
            let path = endpoint
                .route
                .prefix
                .map(|prefix| format!("{}{}", prefix.text, known.rest));
            let path = path.unwrap_or_else(|| panic!("{} has no prefix", endpoint.doc.id));
            paths.entry(&path, new)[&method] = operation(endpoint, Some(known), schemas);
        }
        paths.entry(endpoint.route.path, new)[&method] = operation(endpoint, None, schemas);
    }
    paths
}

fn component(parameter: &ParameterDoc) -> Value {
    match parameter.component {
        Some(name) => reference("parameters", name),
        None => panic!("{} is no component", parameter.name),
    }
}

/// An endpoint, or one of its known paths.
fn operation(endpoint: &Definition, known: Option<&KnownPath>, schemas: &mut Schemas) -> Value {
    let doc = &endpoint.doc;
    let needs = endpoint.route.needs;
    let (id, summary, description) = match known {
        Some(known) => (known.id, known.summary, format!("{} {KNOWN_PATH}", known.description)),
        None => (doc.id, doc.summary, doc.description.to_owned()),
    };
    let parameters = endpoint.parameters.iter();
    let parameters = parameters.filter(|parameter| known.is_none() || parameter.location != Location::Path);
    let parameters = parameters.map(|parameter| match parameter.component {
        Some(_) => component(parameter),
        None => written(parameter, schemas),
    });
    let parameters: Vec<_> = parameters.collect();
    object()
        .with("operationId", id)
        .with("tags", vec![doc.tag.name])
        .with("summary", summary)
        .with("description", format!("{description}\n\n{}", sentence(needs)))
        .with_some(
            "x-required-permission",
            needs.permission().map(|permission| permission.as_str()),
        )
        .with("x-accepted-credentials", credentials(needs).to_vec())
        .with_some("security", (needs == Needs::Nothing).then(|| Value::Array(Vec::new())))
        .with_some("parameters", (!parameters.is_empty()).then_some(parameters))
        .with_some("requestBody", request_body(endpoint, known, schemas))
        .with("responses", responses(endpoint, schemas))
}

fn credentials(needs: Needs) -> &'static [&'static str] {
    match needs {
        Needs::Nothing => &[],
        Needs::Credential | Needs::Bearer | Needs::Permission(_) | Needs::PermissionUnlessDryRun(_) => {
            &["api_key", "session"]
        }
        Needs::Session | Needs::SessionOrCode | Needs::SessionWith(_) | Needs::SessionUnless(..) => &["session"],
    }
}

/// The sentence about the credential in the description of an endpoint.
fn sentence(needs: Needs) -> String {
    const SESSION: &str = "API keys are refused: a session token is needed.";
    match needs {
        Needs::Nothing => "No credential is needed.".to_owned(),
        Needs::Credential => "Any good credential will do.".to_owned(),
        Needs::Bearer => "Any good credential will do, as bearer: cookies are refused.".to_owned(),
        Needs::Session => format!("No permission is needed. {SESSION}"),
        Needs::SessionOrCode => "A session token is needed, or a login code; API keys are refused.".to_owned(),
        Needs::Permission(permission) => format!("Needs the permission `{permission}`."),
        Needs::PermissionUnlessDryRun(permission) => {
            format!("Needs the permission `{permission}`; a dry run needs `agents:read` alone.")
        }
        Needs::SessionWith(permission) => format!("Needs the permission `{permission}`. {SESSION}"),
        Needs::SessionUnless(permission, except) => format!("Needs the permission `{permission}`, {except}. {SESSION}"),
    }
}

fn written(parameter: &ParameterDoc, schemas: &Schemas) -> Value {
    let location = match parameter.location {
        Location::Query => "query",
        Location::Path => "path",
        Location::Header => "header",
    };
    let schema = schemas.shape(parameter.shape);
    let schema = match parameter.shape {
        // An empty text counts as missing.
        Shape::Text if parameter.is_required => schema.with("minLength", 1),
        _ => schema,
    };
    object()
        .with("name", parameter.name)
        .with("in", location)
        .with("description", parameter.description)
        .with_some("required", parameter.is_required.then_some(true))
        .with("schema", schema)
        .with_some("example", parameter.example.map(parse))
}

fn examples(examples: &[Example], value: impl Fn(&str) -> Value) -> Option<Value> {
    let all = examples.iter().fold(object(), |node, Example(name, json)| {
        node.with(name, object().with("value", value(json)))
    });
    (!examples.is_empty()).then_some(all)
}

/// An example of an answer.
pub(super) fn answer_example(shown: &AnswerBody, json: &str, schemas: &Schemas) -> Value {
    match (shown, parse(json)) {
        (AnswerBody::Value(schema), example @ Value::Object(_)) => schemas.completed(*schema, example),
        (AnswerBody::List(schema) | AnswerBody::Lines(schema) | AnswerBody::Events(schema), Value::Array(items)) => {
            Value::Array(items.into_iter().map(|item| schemas.completed(*schema, item)).collect())
        }
        (_, example) => example,
    }
}

fn request_body(endpoint: &Definition, known: Option<&KnownPath>, schemas: &mut Schemas) -> Option<Value> {
    let json = |schema| {
        object()
            .with("schema", schema)
            .with_some("examples", examples(endpoint.doc.bodies, parse))
    };
    let body = |is_required: bool, description: &str, content| {
        object()
            .with("required", is_required)
            .with("description", description)
            .with("content", content)
    };
    match endpoint.content {
        Content::Nothing => None,
        Content::ModelCall if ["GET", "DELETE"].contains(&endpoint.route.method) => None,
        Content::Json(schema) | Content::OptionalJson(schema) => Some(body(
            matches!(endpoint.content, Content::Json(_)),
            "A JSON object. A field that is not described, and any name given twice, is refused.",
            object().with("application/json", json(schemas.reference(schema))),
        )),
        Content::Rpc => Some(body(
            true,
            "A JSON-RPC 2.0 message of the Model Context Protocol.",
            object().with("application/json", json(rpc::message())),
        )),
        Content::ModelCall => Some(match known {
            Some(known) => {
                let example = object().with("value", parse(known.body));
                let json = object()
                    .with("schema", any_object())
                    .with("examples", object().with("call", example));
                let content = object().with("application/json", json);
                body(true, "The body for the provider, a JSON object.", content)
            }
            None => body(
                false,
                "The body for the provider. Bodies of other media types are forwarded as well, but not at the paths of \
                 `chat/completions`, `responses` and `messages`, where it must be a JSON object.",
                object().with("application/json", json(object())),
            ),
        }),
    }
}

/// The schema of an object with members of any name.
fn any_object() -> Value {
    object().with("type", "object").with("additionalProperties", true)
}

fn responses(endpoint: &Definition, schemas: &mut Schemas) -> Value {
    let answer = &endpoint.answer;
    let is_counted = endpoint.route.needs != Needs::Nothing;
    let mut responses = vec![(answer.status, success(endpoint, is_counted, schemas))];
    if answer.is_conditional {
        let known = object()
            .with("description", "The caller has the current version already.")
            .with("headers", headers(is_counted, &["ETag", "Change-Cursor", "Vary"]));
        responses.push((304, known));
    }
    if matches!(endpoint.content, Content::Rpc) {
        responses.push((202, rpc::accepted()));
    }
    for status in failures::statuses(endpoint) {
        let response = match (&endpoint.content, status) {
            (Content::Rpc, 400) => rpc::malformed(),
            (Content::Rpc, 404) => rpc::unknown_method(),
            (Content::ModelCall, _) => failures::of_model_call(endpoint, status),
            _ => reference("responses", failures::component(endpoint, status)),
        };
        responses.push((status, response));
    }
    let node = |node: Value, (status, response): (u16, Value)| node.with(&status.to_string(), response);
    responses.into_iter().fold(object(), node)
}

fn success(endpoint: &Definition, is_counted: bool, schemas: &mut Schemas) -> Value {
    let answer = &endpoint.answer;
    let mut names = Vec::new();
    if answer.is_tagged {
        names.push("ETag");
    }
    if answer.is_versioned {
        names.push("Agent-Version");
    }
    if matches!(endpoint.content, Content::ModelCall) {
        names.extend(["Agent-Model", "Agent-Attempts"]);
    }
    if answer.has_cursor {
        names.push("Change-Cursor");
    }
    if answer.is_history {
        names.push("History-Since");
    }
    if answer.may_be_long && endpoint.route.method == "GET" {
        names.extend(["Content-Encoding", "Vary"]);
    }
    let mut headers = headers(is_counted, &names);
    let known_examples = examples(endpoint.doc.answers, |json| {
        answer_example(&answer.shown, json, schemas)
    });
    let json = |schema| {
        let media_type = object()
            .with("schema", schema)
            .with_some("examples", known_examples.clone());
        object().with("application/json", media_type)
    };
    let content = match answer.shown {
        AnswerBody::Value(schema) => json(schemas.reference(schema)),
        AnswerBody::List(schema) => json(object().with("type", "array").with("items", schemas.reference(schema))),
        AnswerBody::Lines(schema) => {
            let line = object().with("schema", schemas.reference(schema));
            object().with("application/x-ndjson", line)
        }
        AnswerBody::Events(schema) => {
            let events = object().with("type", "array").with("items", schemas.reference(schema));
            let text = object().with("type", "string");
            json(events).with("text/event-stream", object().with("schema", text))
        }
        AnswerBody::Fixed(Some(name), _) => json(reference("schemas", name)),
        AnswerBody::Fixed(None, schema) => json(parse(schema)),
        AnswerBody::Nothing => {
            let cookie = object()
                .with("description", "The cookie of the session.")
                .with("schema", object().with("type", "string"));
            headers["Set-Cookie"] = cookie;
            return object()
                .with("description", endpoint.doc.answer)
                .with("headers", headers);
        }
        AnswerBody::Relayed => {
            let text = object().with("type", "string");
            let name = object()
                .with("description", "The provider's name for the exchange.")
                .with("schema", text.clone());
            headers["X-Provider-Request-Id"] = name;
            json(object()).with("text/event-stream", object().with("schema", text))
        }
    };
    object()
        .with("description", endpoint.doc.answer)
        .with("headers", headers)
        .with("content", content)
}

fn components(schemas: &Schemas, headers: Value) -> Value {
    let mut parameters = object();
    let of_endpoints = endpoints::all().flat_map(|endpoint| endpoint.parameters);
    for parameter in of_endpoints.chain([&REQUEST_ID]) {
        if let Some(name) = parameter.component {
            parameters.entry(name, || written(parameter, schemas));
        }
    }
    let failures = FAILURES.iter();
    let failures = failures.filter(|failure| !failures::is_of_model_calls_alone(failure.component));
    let responses = failures.fold(object(), |node, failure| {
        node.with(failure.component, failure.component())
    });
    let bearer = object()
        .with("type", "http")
        .with("scheme", "bearer")
        .with("bearerFormat", "API key or session JWT")
        .with("description", format!("{CREDENTIALS}\n{}", holders()));
    object()
        .with("schemas", schemas.components())
        .with("parameters", parameters)
        .with("headers", headers)
        .with("responses", responses)
        .with("securitySchemes", object().with("bearer", bearer))
}

/// A table of the roles and scopes that have each permission that an endpoint requires.
fn holders() -> String {
    let mut permissions = Vec::new();
    for endpoint in endpoints::all() {
        let permission = endpoint.route.needs.permission();
        permissions.extend(permission.filter(|permission| !permissions.contains(permission)));
    }
    let listed = |names: Vec<String>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let rows = permissions.iter().map(|permission| {
        let scopes = Scope::ALL
            .iter()
            .filter(|scope| scope.permissions().contains(*permission))
            .map(|scope| match (scope, permission) {
                (Scope::Write, Permission::AgentsConfigure) => {
                    format!("{scope} (unless the deployment removes it)")
                }
                _ => scope.to_string(),
            });
        let roles = Role::ALL
            .iter()
            .filter(|role| role.permissions().contains(*permission))
            .map(ToString::to_string);
        let (scopes, roles) = (listed(scopes.collect()), listed(roles.collect()));
        format!("| `{permission}` | {scopes} | {roles} |")
    });
    let head = [
        "| permission | scopes of keys | roles of users |",
        "| --- | --- | --- |",
    ];
    let lines: Vec<_> = head.into_iter().map(str::to_owned).chain(rows).collect();
    lines.join("\n")
}
