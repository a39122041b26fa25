//! MCP servers in the words of another tool.

use super::edits::{edited, written};

/// Exports servers to a format. Returns its file, and what is not held.
fn exported_servers(word: &str, servers: serde_json::Value) -> (String, Vec<String>) {
    let fields = serde_json::json!({"display_name": "one", "description": "d", "persona_prompt": "x",
        "definition": {"mcp_servers": servers}});
    written(word, &fields.to_string())
}

#[test]
fn headers_and_variables_are_those_of_codex() {
    let servers = serde_json::json!([
        {"name": "desk", "type": "http", "url": "https://desk.example.com",
            "headers": {"Authorization": "Bearer ${DESK}", "X-Key": "${env:KEY}", "X-Team": "a", "X-Other": "v-${B}"}},
        {"name": "std", "type": "stdio", "command": "run", "env": {"TOKEN": "${TOKEN}", "MODE": "a", "NAME": "${OTHER}"},
            "tools": ["*"]},
        {"name": "old", "type": "sse", "url": "https://old.example.com", "tools": ["a"], "headersHelper": "helper.sh"},
    ]);
    let (text, lost) = exported_servers("codex", servers);
    let table: toml::Table = toml::from_str(&text).unwrap();
    let expected = toml::from_str(
        r#"
        [desk]
        url = "https://desk.example.com"
        bearer_token_env_var = "DESK"
        env_http_headers = { X-Key = "KEY" }
        http_headers = { X-Team = "a" }
        [std]
        command = "run"
        env_vars = ["TOKEN"]
        env = { MODE = "a" }
        [old]
        url = "https://old.example.com"
        enabled_tools = ["a"]"#,
    );
    let expected: toml::Table = expected.unwrap();
    assert_eq!(table["mcp_servers"].as_table(), Some(&expected), "{text}");
    let paths = ["desk.headers.X-Other", "std.env.NAME", "old.type", "old.headersHelper"];
    assert_eq!(lost, paths.map(|path| format!("definition.mcp_servers.{path}")));
}

#[test]
fn members_of_codex_are_those_of_claude_code_and_copilot() {
    let servers = serde_json::json!([
        {"name": "desk", "url": "https://desk.example.com", "bearer_token_env_var": "DESK", "enabled": true,
            "http_headers": {"X-Team": "a"}, "env_http_headers": {"X-Key": "KEY"}, "enabled_tools": ["a"]},
        {"name": "std", "command": "run", "env": {"A": "${env:B}"}, "env_vars": ["TOKEN"], "cwd": "x"},
        {"name": "agents", "type": "url", "url": "https://x.example.com"},
    ]);
    let (text, lost) = exported_servers("claude-code", servers.clone());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "");
    for part in [
        "desk: type: http url: https://desk.example.com headers: Authorization: Bearer ${DESK} X-Team: a X-Key: ${KEY} -",
        "std: command: run env: A: ${B} TOKEN: ${TOKEN} -",
        "agents: type: http url: https://x.example.com ---",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(
        lost,
        ["desk.enabled_tools", "std.cwd"].map(|path| format!("definition.mcp_servers.{path}"))
    );

    let (text, lost) = exported_servers("copilot", servers);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "");
    for part in [
        "X-Key: ${KEY} tools: - a",
        "std: type: local command: run",
        "cwd: x",
        "agents: type: http",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(lost, [""; 0]);
}

#[test]
fn members_of_the_source_come_back_as_they_were() {
    let source = "name = \"a\"\ndescription = \"d\"\ndeveloper_instructions = \"x\"\n\n[mcp_servers.desk]\ntype = \"http\"\n\
        url = \"https://desk.example.com\"\nown = 1\n\n[mcp_servers.desk.headers]\nA = \"b\"\n\n[mcp_servers.std]\ncommand = \"run\"\n\n\
        [mcp_servers.std.env]\nTOKEN = \"${TOKEN}\"\n";
    let squeezed = source.split_whitespace().collect::<Vec<_>>().join(" ");
    let (text, lost) = edited("codex", "a.toml", source, "{}");
    assert_eq!((text, lost.len()), (squeezed, 0));
    // Another server is changed, and one of its members.
    let changed = r#"{"definition.mcp_servers": [{"name": "std", "command": "run", "type": "stdio", "env": {"TOKEN": "${TOKEN}"}},
        {"name": "desk", "type": "http", "own": 2, "url": "https://desk.example.com", "headers": {"A": "b"}}]}"#;
    let (text, lost) = edited("codex", "a.toml", source, changed);
    for part in [
        "type = \"http\" own = 2 url",
        "[mcp_servers.desk.headers] A = \"b\"",
        "TOKEN = \"${TOKEN}\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("stdio") && lost.is_empty(), "{text} {lost:?}");
    let claude = "---\nname: a\ndescription: d\nmcpServers:\n  - desk:\n      url: \"https://desk.example.com\"\n      http_headers:\n        A: b\n---\n\nx\n";
    let (text, lost) = edited("claude-code", "a.md", claude, "{}");
    let squeezed = claude.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((text, lost.len()), (squeezed, 0));
}
