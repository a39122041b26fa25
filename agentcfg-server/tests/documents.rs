//! The pages in `docs` name every metric and every tool for assistants, and no other; the README is short.

// Tests may panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{Environment, NewApiKey, NewWorkspace, Permission, Scope};
use agentcfg_core::store::MemoryStore;
use agentcfg_server::{App, Cors};
use http_body_util::BodyExt;
use hyper::Request;
use serde_json::{Value, json};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join("../docs")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect()
}

#[test]
fn the_readme_is_short_and_begins_with_a_command() {
    let readme = fs::read_to_string(folder().join("../README.md")).unwrap();
    assert!(readme.len() <= 9000, "{} bytes", readme.len());
    let before = readme.lines().take_while(|line| !line.starts_with("```")).count();
    assert!(before <= 35, "{before} lines before the first command");
}

/// The names of metrics in a text.
fn names(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("agentcfg_").map(|(start, _)| {
        let name = text[start..].chars();
        name.take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
    })
}

/// The names under which the server's metrics are read, from the source that registers them.
fn registered() -> BTreeSet<String> {
    let of_file = |name: &str| {
        let path = folder().join(format!("src/process/telemetry/{name}.rs"));
        let source = fs::read_to_string(path).unwrap();
        source.split("#[cfg(test)]").next().unwrap().to_owned()
    };
    let source = ["register", "metrics", "parts", "model_calls"].map(of_file).concat();
    assert!(source.contains(r#"Registry::with_prefix("agentcfg")"#));
    let helpers = [
        ("registered", ""),
        ("bytes", "_bytes"),
        ("seconds", "_seconds"),
        ("info", "_info"),
    ];
    let registrations = source.matches(".register").count();
    assert_eq!(registrations, helpers.len(), "a metric is registered without a helper");
    let mut found = BTreeSet::new();
    for (helper, unit) in helpers {
        for (at, call) in source.match_indices(&format!(": {helper}(")) {
            let field = source[..at].rsplit(char::is_whitespace).next().unwrap();
            let declared = source.lines().find(|line| {
                let line = line.trim_start();
                line.trim_start_matches("pub ").starts_with(&format!("{field}: "))
            });
            let total = if declared.unwrap().contains("Counter") {
                "_total"
            } else {
                ""
            };
            let arguments = &source[at + call.len()..];
            let name = arguments.split('"').nth(1).unwrap();
            found.insert(format!("agentcfg_{name}{unit}{total}"));
        }
    }
    found
}

#[test]
fn every_metric_is_in_the_pages() {
    let metrics = registered();
    assert!(metrics.contains("agentcfg_http_requests_total"), "{metrics:?}");
    assert!(
        metrics.contains("agentcfg_http_request_duration_seconds"),
        "{metrics:?}"
    );
    assert!(metrics.contains("agentcfg_storage_scrubbed_bytes_total"), "{metrics:?}");
    let text: String = pages().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let named: BTreeSet<String> = names(&text).collect();
    let missing: Vec<_> = metrics.difference(&named).collect();
    assert!(missing.is_empty(), "no page in docs names {missing:?}");
    // Other names, such as those of modules, are in no first column.
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `agentcfg_"));
    for name in rows.flat_map(|row| names(&format!("`agentcfg_{row}")).collect::<Vec<_>>()) {
        assert!(metrics.contains(&name), "{name} in docs is no metric");
    }
}

/// The tools that a key of a scope sees.
async fn tools(scope: Scope) -> Vec<String> {
    let service = AgentCfg::builder(MemoryStore::new()).build();
    let ada = service.trusted_user("ada").unwrap();
    let new = NewWorkspace::new("Studio");
    let studio = service.create_workspace(&ada, new).await.unwrap().id;
    let new = NewApiKey::new(studio, "key", Environment::Production, scope);
    let key = service.create_api_key(&ada, new).await.unwrap().key;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let request = Request::post("/mcp")
        .header("Authorization", format!("Bearer {key}"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .body(message.to_string())
        .unwrap();
    let answer = App::new(service, Cors::default()).respond(request).await;
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// The table of tools in the page: each tool with the permission that it needs.
fn documented(page: &str) -> Vec<(&str, Permission)> {
    let section = page.split("\n## Tools\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let mut cells = row.split(" | ");
        let (tools, needs) = (cells.next().unwrap(), cells.next().unwrap().trim_matches('`'));
        let permission = Scope::Admin.permissions().iter().find(|known| known.as_str() == needs);
        let permission = permission.unwrap_or_else(|| panic!("{needs} is no permission of a key"));
        tools.split(", ").map(move |tool| (tool.trim_matches('`'), permission))
    })
    .collect()
}

#[tokio::test]
async fn the_page_of_the_model_context_protocol_says_which_key_sees_which_tools() {
    let page = fs::read_to_string(folder().join("../docs/mcp.md")).unwrap();
    let documented = documented(&page);
    for scope in [Scope::Read, Scope::Write, Scope::Admin] {
        let listed = tools(scope).await;
        let may = documented
            .iter()
            .filter(|(_, needs)| scope.permissions().contains(*needs));
        let named: BTreeSet<&str> = may.map(|(tool, _)| *tool).collect();
        let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
        assert_eq!(named, listed, "tools of a key of scope {scope:?}");
        if scope == Scope::Read {
            let counts = ["no tool", "one", "two", "three", "four", "five", "six"];
            let words = format!("a key of scope `read` sees {}", counts[listed.len()]);
            assert!(
                page.replace('\n', " ").contains(&words),
                "the page does not say: {words}"
            );
        }
    }
}
