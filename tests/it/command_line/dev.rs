//! `dev`: a server with a workspace, a key and a token in one command.

use std::process::Command;

use agentcfg_tests::harness::{Server, not_run, run, scratch, until};

/// The word that follows a label at the start of a line.
fn after<'a>(text: &'a str, label: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_else(|| panic!("no {label}: {text}"))
}

fn printed(server: &Server) -> String {
    until("everything is printed", || {
        Some(server.stdout()).filter(|text| text.contains("listening on"))
    })
}

#[test]
fn dev_gives_a_workspace_a_key_and_a_token_that_work() {
    let dir = scratch();
    let server = Server::builder().dev_in(dir.path()).start();
    let text = printed(&server);
    let (workspace, key, token) = (
        after(&text, "Workspace"),
        after(&text, "API key"),
        after(&text, "Session token"),
    );
    let target = format!("/api/agents/configs?workspace_id={workspace}");
    for credential in [key, token] {
        server.get(&target).bearer(credential).send().expect(200);
    }
    let data = dir.path().canonicalize().unwrap().join("agentcfg-data");
    for needed in [
        data.to_str().unwrap(),
        "Stop: Ctrl-C",
        "agentcfg-server token --user dev",
    ] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
}

#[test]
fn dev_prints_the_secrets_once() {
    let dir = scratch();
    let first = Server::builder().dev_in(dir.path()).start();
    let key = after(&printed(&first), "API key").to_owned();
    first.stop();
    assert!(!first.stderr().contains(&key));
    let second = Server::builder().dev_in(dir.path()).start();
    let text = printed(&second);
    assert!(!text.contains("svc_"), "the second start printed the key: {text}");
    second.get("/api/workspaces").bearer(&key).send().expect(200);
    second
        .get("/api/workspaces")
        .bearer(after(&text, "Session token"))
        .send()
        .expect(200);
}

#[test]
fn the_printed_curl_lines_work_as_they_are() {
    if Command::new("curl").arg("--version").output().is_err() {
        return not_run("there is no curl");
    }
    let dir = scratch();
    let ran = |server: &Server| {
        let text = printed(server);
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("curl ")).collect();
        assert_eq!(lines.len(), 5, "list, create, change, delete, and a key: {text}");
        for line in lines {
            let output = Command::new("sh")
                .arg("-c")
                .arg(format!("{line} -s -w '\\n%{{http_code}}'"))
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let status = printed.lines().last().unwrap();
            assert!(["200", "201"].contains(&status), "{line}\n{printed}");
        }
        after(&text, "Session token").to_owned()
    };
    let first = Server::builder().dev_in(dir.path()).start();
    let token = ran(&first);
    // A session of two workspaces must name the one that is meant, and the agent of the first lines exists.
    first
        .post("/api/workspaces")
        .bearer(&token)
        .json(&serde_json::json!({"name": "Second"}))
        .send()
        .expect(201);
    first.stop();
    ran(&Server::builder().dev_in(dir.path()).start());
}

#[test]
fn dev_and_serve_report_which_process_locks_the_data() {
    let dir = scratch();
    let server = Server::builder().dev_in(dir.path()).start();
    let data = server.data().to_str().unwrap();
    run(["serve", "--data", data, "--listen", "127.0.0.1:0"]).failed_with(&[&server.pid().to_string()]);
}
