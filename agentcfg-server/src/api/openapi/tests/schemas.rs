//! The schemas and examples against the types and their limits.

use super::*;

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
