//! Several servers and workspaces by name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use agentcfg_tests::harness::{Run, command_binary};
use serde_json::{Value, json};

use crate::fixture::{Desk, said_by};

/// A desk with the contexts `one` and `two`, whose workspaces have an agent of that name.
fn desk() -> (Desk, String) {
    let desk = Desk::open();
    desk.studio.create("one", &json!({})).expect(201);
    let two = Desk::open();
    two.studio.create("two", &json!({})).expect(201);
    let url = desk.studio.server.url();
    for (name, key) in [("one", &desk.credential), ("two", &two.credential)] {
        let add = desk.bare(&format!("context add {name} --url {url}"));
        said_by(add.stdin(key).finish().exited(0), &["Signed in to http://127.0.0.1:"]);
    }
    (desk, two.credential)
}

fn agents(desk: &Desk, context: &str) -> Vec<String> {
    let listed = desk
        .bare(&format!("agents list --output json{context}"))
        .finish()
        .succeeded();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let agents = listed.as_array().unwrap().iter();
    agents
        .map(|agent| agent["agent_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_context_is_used_until_another_is() {
    let (desk, secret) = desk();
    // Nothing was chosen yet.
    desk.bare("agents list").finish().exited(3);
    assert_eq!(agents(&desk, " --context two"), ["two"]);
    desk.bare("context use one").finish().exited(0);
    assert_eq!(agents(&desk, ""), ["one"]);
    assert_eq!(agents(&desk, " --context two"), ["two"]);
    desk.bare("context use two").finish().exited(0);
    assert_eq!(agents(&desk, ""), ["two"]);
    let whoami = desk.bare("whoami").finish().succeeded();
    assert!(whoami.contains("from the context two"), "{whoami}");

    let file = desk.path("config/agentcfg/credentials.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = desk.bare("context list --output json").finish().succeeded();
    let shown: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(shown[0]["name"], "one");
    assert_eq!(shown[1]["url"], desk.studio.server.url());
    assert_eq!(
        (&shown[0]["is_current"], &shown[1]["is_current"]),
        (&json!(false), &json!(true))
    );
    let table = desk.bare("context list").finish().succeeded();
    let one = desk.bare("context show one").finish().succeeded();
    let workspace = desk.studio.id.to_string();
    assert!(one.contains(&workspace) && table.contains(&workspace), "{one} {table}");
    assert!(
        desk.bare("context show")
            .finish()
            .succeeded()
            .starts_with("two (in use)\n")
    );
    for shown in [&listed, &table, &one] {
        assert!(!shown.contains(&secret) && !shown.contains(&desk.credential), "{shown}");
    }
    let unknown = desk.bare("context use three").finish().exited(4);
    said_by(unknown, &["there is no context three", "There are: one, two."]);
    desk.bare("agents list --context three").finish().exited(4);
}

#[test]
fn variables_win_over_the_context_in_use_and_not_over_one_that_is_named() {
    let (desk, _) = desk();
    said_by(
        desk.run("context use two").finish().exited(0),
        &["AGENTCFG_URL is set, and wins", "AGENTCFG_API_KEY is set, and wins"],
    );
    let listed = desk.run("agents list").finish().succeeded();
    assert!(listed.contains("one"), "{listed}");
    let named = desk.run("agents list --context two").env("AGENTCFG_WORKSPACE", "none");
    let listed = named.finish().succeeded();
    assert!(listed.contains("two"), "{listed}");
    // A space or a line end around the value is not part of it.
    let workspace = format!(" {}\n", desk.studio.id);
    let listed = desk
        .run("agents list")
        .env("AGENTCFG_WORKSPACE", workspace)
        .finish()
        .succeeded();
    assert!(listed.contains("one"), "{listed}");
    said_by(
        desk.run("agents list")
            .env("AGENTCFG_WORKSPACE", "none")
            .finish()
            .exited(1),
        &["workspace must be a UUID"],
    );
}

#[test]
fn a_login_and_a_logout_are_of_the_context_in_use() {
    let (desk, secret) = desk();
    let url = desk.studio.server.url();
    desk.bare(&format!("login --url {url}"))
        .stdin(&desk.credential)
        .finish()
        .exited(0);
    assert_eq!(agents(&desk, ""), ["one"]);
    desk.bare("context use two").finish().exited(0);
    // The server of the context is known.
    desk.bare("login").stdin(&desk.credential).finish().exited(0);
    assert_eq!(agents(&desk, ""), ["one"]);
    desk.bare("--context one login").stdin(&secret).finish().exited(0);
    assert_eq!(agents(&desk, " --context one"), ["two"]);
    desk.bare("logout").finish().exited(0);
    // The one of the login alone is in use again.
    assert_eq!(agents(&desk, ""), ["one"]);
    desk.bare("context use two").finish().exited(4);
    desk.bare("context use one").finish().exited(0);
    said_by(
        desk.bare("context remove one").finish().exited(0),
        &["The context in use is default now."],
    );
    desk.bare("context remove one").finish().exited(4);
    desk.bare("logout").finish().exited(0);
    assert!(!desk.path("config/agentcfg/credentials.toml").exists());
}

#[test]
fn a_context_that_does_not_work_is_not_added() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    for (line, key, code, said) in [
        (
            format!("context add one --url {url}"),
            "svc_test_wrong",
            3,
            "credential",
        ),
        (
            format!("context add One --url {url}"),
            "x",
            1,
            "the name of a context must be",
        ),
        (format!("context add default --url {url}"), "x", 1, "agentcfg login"),
        (
            "context add one --url http://127.0.0.1:1".to_owned(),
            "svc_test_x",
            1,
            "from --url",
        ),
        ("context add one".to_owned(), "x", 64, "--url"),
    ] {
        said_by(desk.bare(&line).stdin(key).finish().exited(code), &[said]);
    }
    assert!(!desk.path("config/agentcfg/credentials.toml").exists());
    // The variable is not for this context, and the option is.
    for (option, expected) in [("", desk.studio.id.to_string()), (" --workspace wrong", String::new())] {
        let add = desk
            .bare(&format!("context add one --url {url}{option}"))
            .stdin(&desk.credential);
        let code = if option.is_empty() { 0 } else { 1 };
        add.env("AGENTCFG_WORKSPACE", "wrong").finish().exited(code);
        assert!(desk.bare("context show one").finish().succeeded().contains(&expected));
    }
    // Nor are the others for a login to it.
    let again = desk
        .run("--context one login")
        .env("AGENTCFG_URL", "http://127.0.0.1:1");
    again.stdin(&desk.credential).finish().exited(0);
    desk.bare("context remove one").finish().exited(0);
    desk.bare("context show").finish().exited(4);
    assert_eq!(desk.bare("context list --output json").finish().succeeded(), "[]\n");
}

#[test]
fn a_context_that_is_added_meanwhile_is_kept() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    // The first command waits for its key until the second has written the file.
    let line = format!(
        "mkfifo keys; \"$AGENTCFG\" context add one --url {url} < keys & exec 3> keys; \
         echo \"$KEY\" | \"$AGENTCFG\" context add two --url {url} && echo \"$KEY\" >&3; exec 3>&-; wait"
    );
    let run = Run::new(["-c", &line]).binary("sh").in_dir(desk.path("."));
    let run = run
        .env("AGENTCFG", command_binary())
        .env("KEY", &desk.credential)
        .env("XDG_CONFIG_HOME", desk.path("config"));
    run.finish().exited(0);
    let listed = desk.bare("context list --output json").finish().succeeded();
    let shown: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&shown[0]["name"], &shown[1]["name"]), (&json!("one"), &json!("two")));
}

#[test]
fn no_context_is_removed_and_no_workspace_kept_that_is_not_there() {
    let desk = Desk::open();
    let removed = desk.bare("context remove default").finish().exited(4);
    said_by(removed, &["there is no context default"]);
    let other = Desk::open().studio.id;
    let login = format!("login --url {} --workspace {other}", desk.studio.server.url());
    let refused = desk.bare(&login).stdin(&desk.credential).finish().exited(4);
    said_by(refused, &["has no access to the workspace", "It has access to: "]);
    assert!(!desk.path("config/agentcfg/credentials.toml").exists());
}
