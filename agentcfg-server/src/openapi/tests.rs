//! The description against the table of routes, the types and the limits.

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
use crate::query::Query;
use crate::routes::{Content, Needs, Operation, ROUTES, Route};

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

#[test]
fn lengths_are_those_of_the_rules() {
    let lengths = [
        ("AgentId", "", validate::MAX_AGENT_ID),
        ("Capabilities", "/items", validate::MAX_ENTRY_NAME),
        ("Parameters", "/propertyNames", validate::MAX_ENTRY_NAME),
        ("StatusReport", "/properties/current_task_id", validate::MAX_NAME),
        (
            "StatusReport",
            "/properties/current_task_title",
            validate::MAX_TASK_TITLE,
        ),
        ("AgentStatus", "/properties/display_name", validate::MAX_DISPLAY_NAME),
        ("AgentStatus", "/properties/current_task_id", validate::MAX_NAME),
        (
            "AgentStatus",
            "/properties/current_task_title",
            validate::MAX_TASK_TITLE,
        ),
        ("Workspace", "/properties/name", validate::MAX_NAME),
        ("WorkspaceView", "/properties/name", validate::MAX_NAME),
        ("NewWorkspace", "/properties/name", validate::MAX_NAME),
        ("WorkspacePatch", "/properties/name", validate::MAX_NAME),
        ("ApiKey", "/properties/name", validate::MAX_NAME),
        ("NewApiKey", "/properties/name", validate::MAX_NAME),
        ("CreatedApiKey", "/properties/name", validate::MAX_NAME),
        ("CreatedApiKey", "/properties/key", token::LENGTH),
        ("Member", "/properties/user_id", validate::MAX_USER_ID),
    ];
    let agent = [
        ("display_name", validate::MAX_DISPLAY_NAME),
        ("role", validate::MAX_ROLE),
        ("description", validate::MAX_DESCRIPTION),
        ("model", validate::MAX_MODEL),
        ("color", validate::MAX_COLOR),
        ("persona_prompt", validate::MAX_PERSONA_PROMPT),
    ];
    let at_most = |name: &str, path: &str, max: usize| {
        let part = schema(name).pointer(path).unwrap();
        assert_eq!(part["maxLength"], json!(max), "{name}{path}");
    };
    for (name, path, max) in lengths {
        at_most(name, path, max);
    }
    for name in ["Agent", "NewAgent", "AgentPatch"] {
        for (field, max) in agent {
            at_most(name, &format!("/properties/{field}"), max);
        }
    }
    assert_eq!(
        at("/components/parameters/UserId/schema/maxLength"),
        &json!(validate::MAX_USER_ID)
    );
    assert_eq!(schema("Capabilities")["maxItems"], json!(validate::MAX_ENTRIES));
    assert_eq!(schema("Parameters")["maxProperties"], json!(validate::MAX_ENTRIES));
    for name in ["ApiKey", "NewApiKey", "CreatedApiKey"] {
        let limit = &schema(name)["properties"]["rate_limit"];
        assert_eq!(
            (&limit["minimum"], &limit["maximum"]),
            (&json!(1), &json!(validate::MAX_RATE_LIMIT)),
            "{name}"
        );
    }
    assert_eq!(
        schema("NewApiKey")["properties"]["rate_limit"]["default"],
        json!(DEFAULT_KEY_RATE_LIMIT)
    );
}

#[test]
fn pages_have_the_bounds_of_the_reader() {
    for name in ["Limit", "AuditLimit"] {
        let bounds = at(&format!("/components/parameters/{name}/schema"));
        let (min, max) = (bounds["minimum"].as_u64().unwrap(), bounds["maximum"].as_u64().unwrap());
        for (limit, good) in [(min, true), (max, true), (min - 1, false), (max + 1, false)] {
            let mut faults = Faults::default();
            Query::parse(Some(&format!("limit={limit}")))
                .unwrap()
                .limit(&mut faults);
            assert_eq!(faults.into_result().is_ok(), good, "{name} {limit}");
        }
    }
}

#[test]
fn enums_are_those_of_the_types() {
    fn is<T: Copy + Serialize>(name: &str, all: &[T]) {
        assert_eq!(schema(name)["enum"], serde_json::to_value(all).unwrap(), "{name}");
    }
    is("AgentType", AgentType::ALL);
    is("LiveStatus", LiveStatus::ALL);
    is("Environment", Environment::ALL);
    is("Scope", Scope::ALL);
    is("Role", Role::ALL);
    is("Plan", Plan::ALL);
    is("ActorType", ActorType::ALL);
    is("Action", Action::ALL);
    is("TargetType", TargetType::ALL);
    is("Provider", Provider::ALL);
    is("ModelStatus", ModelStatus::ALL);
    is("CredentialSource", CredentialSource::ALL);
    let mut enums = 0;
    walk(&DOC, &mut |value| {
        enums += usize::from(value.get("enum").is_some_and(Value::is_array))
    });
    assert_eq!(enums, 12, "an enum is not held against its type");
}

fn agent() -> Agent {
    let now = Timestamp::from_unix_millis(1_800_000_000_000);
    Agent {
        id: WORKSPACE.parse().unwrap(),
        workspace_id: WORKSPACE.parse().unwrap(),
        agent_id: "a".into(),
        display_name: "A".into(),
        role: None,
        description: None,
        agent_type: AgentType::Ai,
        model: None,
        color: None,
        persona_prompt: None,
        capabilities: Vec::new(),
        parameters: Parameters::new(),
        is_active: true,
        created_at: now,
        updated_at: now,
    }
}

fn api_key() -> ApiKey {
    ApiKey {
        id: "4fQ8mZr2LkV7xN0bTy6W".into(),
        workspace_id: WORKSPACE.parse().unwrap(),
        name: "Build".into(),
        environment: Environment::Production,
        scope: Scope::Read,
        rate_limit: DEFAULT_KEY_RATE_LIMIT,
        expires_at: None,
        created_at: agent().created_at,
        last_used_at: None,
        revoked_at: None,
    }
}

/// Every value has exactly the fields of the schema, all of them are required, and those that are null may be.
#[test]
fn schemas_of_responses_are_what_is_written() {
    fn is<T: Serialize>(name: &str, value: &T, sometimes: &[&str]) {
        let written = serde_json::to_value(value).unwrap();
        let schema = schema(name);
        assert_eq!(keys(&schema["properties"]), keys(&written), "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let required = keys(&written)
            .into_iter()
            .filter(|key| !sometimes.contains(key))
            .collect();
        assert_eq!(words(&schema["required"]), required, "{name}");
        for (field, value) in written.as_object().unwrap() {
            let nullable = words(&schema["properties"][field]["type"]).contains("null");
            let any = schema["properties"][field].get("type").is_none();
            assert!(any || value.is_null() == nullable, "{name}.{field}");
        }
    }
    let now = agent().created_at;
    let workspace = Workspace {
        id: WORKSPACE.parse().unwrap(),
        name: "W".into(),
        plan: Plan::Free,
        created_at: now,
        updated_at: now,
    };
    is("Agent", &agent(), &[]);
    let status = AgentStatus {
        agent_id: "a".into(),
        display_name: "A".into(),
        status: LiveStatus::Idle,
        current_task_id: None,
        current_task_title: None,
    };
    is("AgentStatus", &status, &[]);
    is("Workspace", &workspace, &[]);
    let (workspace, role) = (workspace, Some(Role::Owner));
    is("WorkspaceView", &WorkspaceView { workspace, role }, &["role"]);
    let member = Member {
        user_id: "ada".into(),
        role: Role::Owner,
        created_at: now,
    };
    is("Member", &member, &[]);
    is("ApiKey", &api_key(), &[]);
    let (record, key) = (api_key(), String::new());
    is("CreatedApiKey", &CreatedApiKey { record, key }, &[]);
    let actor = Actor {
        kind: ActorType::User,
        id: "ada".into(),
    };
    let target = Target {
        kind: TargetType::Agent,
        id: "a".into(),
    };
    let change = Change {
        from: Value::Null,
        to: Value::Null,
    };
    is("Actor", &actor, &[]);
    is("Target", &target, &[]);
    is("Change", &change, &[]);
    let entry = AuditEntry {
        id: WORKSPACE.parse().unwrap(),
        workspace_id: WORKSPACE.parse().unwrap(),
        actor,
        action: Action::AgentUpdated,
        target,
        created_at: now,
        changes: Changes::from([("role".into(), change)]),
    };
    is("AuditEntry", &entry, &[]);
    is("Success", &Success::OK, &[]);
    is("Error", &ErrorBody { error: "no".into() }, &[]);
}

/// The reader of each body knows exactly the described fields, asks for the required ones and takes null where
/// the schema does.
#[test]
fn schemas_of_bodies_are_what_is_read() {
    fn is<T>(name: &str, read: impl Fn(&[u8]) -> Result<T, Invalid>, written: &impl Serialize) {
        let schema = schema(name);
        let faults = |body: Value| match read(body.to_string().as_bytes()) {
            Ok(_) => String::new(),
            Err(invalid) => invalid.to_string(),
        };
        let written = serde_json::to_value(written).unwrap();
        assert_eq!(keys(&schema["properties"]), keys(&written), "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert_eq!(faults(written), "", "{name}");
        let empty = faults(json!({}));
        let required = empty
            .split("; ")
            .filter_map(|fault| fault.strip_suffix(" is required"))
            .collect();
        assert_eq!(
            words(schema.get("required").unwrap_or(&Value::Null)),
            required,
            "{name}"
        );
        for (field, part) in schema["properties"].as_object().unwrap() {
            let refused = faults(json!({ field.as_str(): null })).contains(&format!("{field} must not be null"));
            assert_eq!(!refused, words(&part["type"]).contains("null"), "{name}.{field}");
        }
    }
    let workspace = WORKSPACE.parse().unwrap();
    let text = || Some("x".to_owned());
    let new = NewAgent {
        role: text(),
        description: text(),
        model: text(),
        color: Some("#fff".into()),
        persona_prompt: text(),
        ..NewAgent::new(workspace, "a", "A")
    };
    is("NewAgent", NewAgent::from_json, &new);
    let patch = AgentPatch {
        workspace_id: Some(workspace),
        agent_id: Some("a".into()),
        display_name: text(),
        role: Patch::Null,
        description: Patch::Null,
        agent_type: Some(AgentType::Human),
        model: Patch::Null,
        color: Patch::Null,
        persona_prompt: Patch::Null,
        capabilities: Some(Vec::new()),
        parameters: Some(Parameters::new()),
    };
    is("AgentPatch", AgentPatch::from_json, &patch);
    is(
        "StatusReport",
        StatusReport::from_json,
        &StatusReport::working("t", "T"),
    );
    is(
        "NewWorkspace",
        NewWorkspace::from_json,
        &NewWorkspace { name: "W".into() },
    );
    let (name, plan) = (text(), Some(Plan::Pro));
    is(
        "WorkspacePatch",
        WorkspacePatch::from_json,
        &WorkspacePatch { name, plan },
    );
    is("RoleChange", RoleChange::from_json, &RoleChange { role: Role::Viewer });
    let key = NewApiKey {
        workspace_id: workspace,
        name: "Build".into(),
        environment: Environment::Development,
        scope: Scope::Read,
        expires_at: Some(agent().created_at),
        rate_limit: Some(1),
    };
    is("NewApiKey", NewApiKey::from_json, &key);
}

#[test]
fn examples_are_read_and_written_as_they_stand() {
    fn round<T: Serialize + DeserializeOwned>(value: &Value) {
        let read: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&read).unwrap(), value);
    }
    fn good<T>(read: Result<T, Invalid>) {
        if let Err(invalid) = read {
            panic!("{invalid}");
        }
    }
    let examples = |part: &'static Value| -> Vec<&'static Value> {
        let Some(examples) = part["content"]["application/json"].get("examples") else {
            return Vec::new();
        };
        examples
            .as_object()
            .unwrap()
            .values()
            .map(|example| &example["value"])
            .collect()
    };
    for (.., operation) in operations() {
        let id = operation["operationId"].as_str().unwrap();
        if let Some(body) = operation.get("requestBody") {
            let examples = examples(body);
            assert!(!examples.is_empty(), "{id}");
            for example in examples {
                let bytes = &serde_json::to_vec(example).unwrap()[..];
                match id {
                    "createAgent" => good(NewAgent::from_json(bytes)),
                    "updateAgent" => good(AgentPatch::from_json(bytes)),
                    "reportAgentStatus" => good(StatusReport::from_json(bytes)),
                    "createWorkspace" => good(NewWorkspace::from_json(bytes)),
                    "updateWorkspace" => good(WorkspacePatch::from_json(bytes)),
                    "setMember" => good(RoleChange::from_json(bytes)),
                    "createApiKey" => good(NewApiKey::from_json(bytes)),
                    // What a provider takes is not described here.
                    "callModel" => assert!(example.is_object()),
                    "saveProviderKey" => good(ProviderCredential::from_json(bytes)),
                    other => panic!("{other} has a body"),
                }
            }
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            for example in examples(resolved(response)) {
                match id {
                    _ if !status.starts_with('2') => round::<ErrorBody>(example),
                    "listAgents" => round::<Vec<Agent>>(example),
                    "createAgent" | "updateAgent" | "restoreAgent" => round::<Agent>(example),
                    "listAgentStatus" => round::<Vec<AgentStatus>>(example),
                    "reportAgentStatus" => round::<AgentStatus>(example),
                    "listWorkspaces" => round::<Vec<WorkspaceView>>(example),
                    "createWorkspace" | "updateWorkspace" => round::<Workspace>(example),
                    "listMembers" => round::<Vec<Member>>(example),
                    "setMember" => round::<Member>(example),
                    "listApiKeys" => round::<Vec<ApiKey>>(example),
                    "createApiKey" => round::<CreatedApiKey>(example),
                    "deleteAgent" | "removeMember" | "revokeApiKey" => round::<Success>(example),
                    "listAuditLog" => round::<Vec<AuditEntry>>(example),
                    "listModels" => round::<Vec<ModelInfo>>(example),
                    "listProviderKeys" => round::<Vec<ProviderKeyInfo>>(example),
                    "saveProviderKey" => round::<ProviderKeyInfo>(example),
                    "deleteProviderKey" => round::<Success>(example),
                    "getHealth" => assert_eq!(example, &json!({"status": "ok"})),
                    "getReadiness" => assert_eq!(example, &json!({"status": "ready"})),
                    other => panic!("{other} {status} has an example"),
                }
            }
        }
    }
}

/// The example of a key must never be one: secret scanners and readers could take it for real.
#[test]
fn no_example_is_a_credential() {
    let key = schema("CreatedApiKey")["examples"][0]["key"].as_str().unwrap();
    assert_eq!((key.len(), token::parse(key)), (token::LENGTH, None));
    assert!(key.starts_with(token::MARK));
}
