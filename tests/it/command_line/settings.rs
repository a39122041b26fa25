//! Settings: their sources, the precedence of the sources, and the messages about invalid values.

use std::fs;

use agentcfg_tests::harness::{Run, Server, Studio, scratch};
use serde_json::Value;

/// Runs `serve` with a settings file of this content.
fn with_file(content: &str) -> agentcfg_tests::harness::Finished {
    let dir = scratch();
    let file = dir.path().join("settings.toml");
    fs::write(&file, content).unwrap();
    let finished = Run::new(["serve", "--config", "settings.toml", "--listen", "127.0.0.1:0"])
        .in_dir(&dir)
        .finish();
    assert!(
        !dir.path().join("agentcfg-data").exists(),
        "a mistake makes no data directory"
    );
    finished
}

/// Runs `serve` with this environment variable.
fn with_variable(name: &str, value: &str) -> agentcfg_tests::harness::Finished {
    let dir = scratch();
    Run::new(["serve", "--listen", "127.0.0.1:0"])
        .env(name, value)
        .in_dir(&dir)
        .finish()
}

#[test]
fn an_unknown_key_in_the_file_is_named_with_its_line_and_a_suggestion() {
    with_file("log = \"info\"\nlisen = \"127.0.0.1:0\"\n").failed_with(&["lisen", "settings.toml:2", "listen"]);
    with_file("[server]\nlisten = \"127.0.0.1:0\"\n").failed_with(&["server", "settings.toml:1"]);
}

#[test]
fn a_value_that_breaks_its_rule_is_named_with_its_line_and_the_rule() {
    for (line, said) in [
        ("listen = \"nowhere\"", &["listen", "127.0.0.1:7420"][..]),
        ("listen = 7420", &["listen", "7420"]),
        ("plan_limit_free = -1", &["plan_limit_free", "0"]),
        ("plan_limit_free = \"three\"", &["plan_limit_free", "three"]),
        (
            "default_plan = \"gold\"",
            &["default_plan", "free, pro, team, enterprise", "gold"],
        ),
        ("status_ttl = 0", &["status_ttl", "seconds"]),
        (
            "write_scope_configures_agents = 1",
            &["write_scope_configures_agents", "true or false"],
        ),
        ("operators = \"ada\"", &["operators", "list"]),
        (
            "cors_origins = [\"https://a.example/\"]",
            &["cors_origins", "https://app.example.com"],
        ),
        ("session_rate_limit = 0", &["session_rate_limit", "1"]),
        ("log = \"=\"", &["log"]),
    ] {
        let said: Vec<_> = said.iter().copied().chain(["settings.toml:2"]).collect();
        with_file(&format!("# settings\n{line}\n")).failed_with(&said);
    }
}

#[test]
fn invalid_toml_is_named_with_its_line() {
    with_file("log = \"info\"\nlisten == 1\n").failed_with(&["settings.toml:2"]);
    with_file("log = \"info\"\nlog = \"debug\"\n").failed_with(&["settings.toml:2", "duplicate"]);
}

#[test]
fn a_missing_file_is_named() {
    let dir = scratch();
    Run::new(["serve", "--config", "nowhere.toml"])
        .in_dir(&dir)
        .finish()
        .failed_with(&["--config", "nowhere.toml"]);
}

#[test]
fn all_faults_are_reported_at_once() {
    let said = [
        "plan_limit_free",
        "statusttl",
        "default_plan",
        "settings.toml:1",
        "settings.toml:2",
        "settings.toml:3",
    ];
    with_file("plan_limit_free = -1\nstatusttl = 5\ndefault_plan = \"gold\"\n").failed_with(&said);
}

#[test]
fn an_unknown_or_invalid_variable_is_named_with_a_suggestion() {
    with_variable("AGENTCFG_LISEN", "127.0.0.1:0").failed_with(&["AGENTCFG_LISEN", "AGENTCFG_LISTEN"]);
    with_variable("AGENTCFG_listen", "127.0.0.1:0").failed_with(&["AGENTCFG_listen"]);
    with_variable("AGENTCFG_PLAN_LIMIT_FREE", "three").failed_with(&["AGENTCFG_PLAN_LIMIT_FREE", "three"]);
    with_variable("AGENTCFG_STATUS_TTL", "").failed_with(&["AGENTCFG_STATUS_TTL"]);
    with_variable("AGENTCFG_LISTEN_FILE", "/x").failed_with(&["AGENTCFG_LISTEN_FILE", "only secrets"]);
}

#[test]
fn an_invalid_secret_is_not_shown() {
    let said =
        with_variable("AGENTCFG_SESSION_SECRET", "tooshort-canary").failed_with(&["AGENTCFG_SESSION_SECRET", "32"]);
    assert!(!said.contains("canary"), "{said}");
    let said = with_file("session_secret = \"tooshort-canary\"\n").failed_with(&["session_secret"]);
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn a_secret_may_come_from_a_file_and_not_from_two_places() {
    let dir = scratch();
    let file = dir.path().join("secret");
    fs::write(&file, "a secret of more than thirty-two bytes\n").unwrap();
    let server = Server::builder().set("session_secret_file", &file).start();
    let other = Server::builder()
        .set("session_secret", "a secret of more than thirty-two bytes")
        .start();
    assert_ne!(server.address(), other.address());
    let finished = Run::new(["serve", "--listen", "127.0.0.1:0"])
        .env("AGENTCFG_SESSION_SECRET_FILE", &file)
        .env("AGENTCFG_SESSION_SECRET", "x".repeat(32))
        .in_dir(&dir)
        .finish();
    finished.failed_with(&["AGENTCFG_SESSION_SECRET", "AGENTCFG_SESSION_SECRET_FILE", "keep one"]);
    with_variable("AGENTCFG_SESSION_SECRET_FILE", "/nowhere")
        .failed_with(&["AGENTCFG_SESSION_SECRET_FILE", "/nowhere"]);
}

#[test]
fn the_environment_takes_precedence_over_the_file() {
    let dir = scratch();
    let file = dir.path().join("settings.toml");
    fs::write(
        &file,
        "default_plan = \"free\"\nplan_limit_free = 1\nsession_rate_limit = 50\nlisten = \"192.0.2.1:1\"\n",
    )
    .unwrap();
    let server = Server::builder()
        .argument("--config")
        .argument(&file)
        .set("plan_limit_free", "2")
        .start();
    let studio = Studio::on(&server);
    assert_eq!(studio.list().number("x-ratelimit-limit"), 50, "from the file");
    studio.create("a", &Value::Null).expect(201);
    studio.create("b", &Value::Null).expect(201);
    studio.create("c", &Value::Null).refused(422, &["2"]);
    assert!(server.address().ip().is_loopback(), "--listen wins over the file");
}

#[test]
fn address_directory_and_lists_may_come_from_the_file() {
    let dir = scratch();
    let (file, data) = (dir.path().join("settings.toml"), dir.path().join("data"));
    let text = format!("data = {data:?}\noperators = [\"ann\", \"ben\"]\ncors_origins = []\nmetrics_listen = \"\"\n");
    fs::write(&file, text).unwrap();
    let server = Server::builder()
        .argument("--config")
        .argument(&file)
        .data(&data)
        .start();
    let studio = Studio::on(&server);
    for operator in ["ann", "ben"] {
        let target = format!("/api/workspaces?workspace_id={}", studio.id);
        let request = server.patch(target).bearer(server.token(operator));
        request.json(&serde_json::json!({"plan": "pro"})).send().expect(200);
    }
    assert!(data.join("store.redb").is_file());
}

#[test]
fn workspaces_may_be_for_operators_to_create() {
    let server = Server::builder()
        .set("workspace_creation", "operators")
        .set("operators", "root")
        .start();
    let create = |user: &str| {
        let request = server.post("/api/workspaces").bearer(server.token(user));
        request.json(&serde_json::json!({"name": "Studio"})).send()
    };
    create("eve").refused(403, &["only an operator of this deployment may create workspaces"]);
    create("root").expect(201);
}

#[test]
fn the_printed_default_configuration_is_valid() {
    let dir = scratch();
    let file = dir.path().join("settings.toml");
    fs::write(&file, agentcfg_server::process::DEFAULT_TOML).unwrap();
    let server = Server::builder().argument("--config").argument(&file).start();
    server.get("/readyz").send().expect(200);
}
