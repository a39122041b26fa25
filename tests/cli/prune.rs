//! What protects an apply from a directory that has lost its files, and from overwriting what a colleague has changed.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use crate::fixture::{Desk, said_by};

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// A desk with these agents in the set `docs`, each with a file in `agents`.
fn desk(names: &[&str]) -> Desk {
    let desk = Desk::open();
    for name in names {
        desk.write(
            &format!("agents/{name}.md"),
            "---\ndisplay_name: One\n---\nYou write.\n",
        );
    }
    desk.ok("apply agents --set docs");
    desk
}

#[test]
fn a_set_whose_files_were_moved_is_not_deactivated() {
    let desk = desk(&NAMES);
    fs::create_dir(desk.path("agents/team")).unwrap();
    for name in NAMES {
        fs::rename(
            desk.path(&format!("agents/{name}.md")),
            desk.path(&format!("agents/team/{name}.md")),
        )
        .unwrap();
    }
    let said = [
        "the apply deactivates 12 of the 12 agents of the set docs, and is refused: a, b, c, d, e, f, g, h, i, j, k, l",
        "agents/team has 12 files of agents, which are ignored",
        "--prune-limit 12",
    ];
    desk.fails("apply agents --set docs --prune", 1, &said);
    desk.fails("apply agents --set docs --prune --yes --force", 1, &said);
    desk.fails("apply agents --set docs --prune --dry-run", 1, &said);
    // The same with files of other agents, and where one of them was there before.
    desk.write("agents/new.md", "---\ndisplay_name: New\n---\n");
    desk.fails("apply agents --set docs --prune", 1, &said);
    let planned = said_by(desk.run("plan agents --set docs --prune").finish().exited(2), &said);
    assert!(
        planned.stderr.contains("warning") && planned.stdout.contains("- deactivate l"),
        "{planned:?}"
    );
    desk.fails(
        "apply agents --set docs --prune --prune-limit 11",
        1,
        &["deactivates 12 agents of the set docs, and is refused"],
    );
    assert_eq!(desk.studio.agent_ids().len(), 12);
    // Without a prune nothing is lost, and the ignored files are named.
    fs::remove_file(desk.path("agents/new.md")).unwrap();
    desk.fails(
        "apply agents --set docs",
        0,
        &["agents has no files of agents", "agents/team has 12 files"],
    );

    desk.fails("apply agents --prune-limit 3", 64, &["--prune"]);
    desk.fails(
        "apply agents --set docs --prune --prune-limit many",
        64,
        &["must be a number of agents, or `all`"],
    );
    desk.ok("apply agents --set docs --prune --prune-limit 12");
    assert!(desk.studio.agent_ids().is_empty());
}

#[test]
fn a_few_agents_are_deactivated_without_a_limit() {
    let desk = desk(&NAMES[..6]);
    let remove = |name: &str| fs::remove_file(desk.path(&format!("agents/{name}.md"))).unwrap();
    remove("a");
    remove("b");
    desk.fails(
        "apply agents --set docs --prune --prune-limit 1",
        1,
        &["deactivates 2 agents of the set docs"],
    );
    desk.ok("apply agents --set docs --prune");
    assert_eq!(desk.studio.agent_ids(), ["c", "d", "e", "f"]);
    remove("c");
    remove("d");
    desk.fails(
        "apply agents --set docs --prune",
        1,
        &["deactivates 2 of the 4 agents of the set docs", ": c, d"],
    );
    desk.ok("apply agents --set docs --prune --prune-limit all");
    remove("e");
    desk.ok("apply agents --set docs --prune");
    assert_eq!(desk.studio.agent_ids(), ["f"]);
    remove("f");
    desk.fails(
        "apply agents --set docs --prune",
        1,
        &["deactivates 1 of the 1 agent of the set docs", ": f"],
    );
    assert_eq!(desk.studio.agent_ids(), ["f"]);
}

/// Passes one connection on to the server, and calls `before_apply` before a request reaches it that applies and is no
/// dry run.
fn pass_on(listener: &TcpListener, server: &str, before_apply: impl Fn() + Send + Sync) {
    let (mut client, _) = listener.accept().unwrap();
    let mut onward = TcpStream::connect(server).unwrap();
    let (mut answers, mut back) = (onward.try_clone().unwrap(), client.try_clone().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = std::io::copy(&mut answers, &mut back);
        });
        let mut bytes = [0; 64 * 1024];
        while let Ok(read @ 1..) = client.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]);
            if text.starts_with("POST /api/agents/apply") && !text.contains("dry_run=true") {
                before_apply();
            }
            onward.write_all(&bytes[..read]).unwrap();
        }
        let _ = onward.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_change_between_plan_and_apply_is_not_overwritten() {
    let desk = Desk::open();
    desk.studio.create("writer", &json!({"model": "gpt-5"})).expect(201);
    desk.write("agents/writer.md", "---\ndisplay_name: Writer\n---\n");
    let colleague =
        |model: &'static str| move |desk: &Desk| desk.studio.change("writer", &json!({"model": model})).expect(200);
    let apply = |line: &str, model: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (change, server) = (colleague(model), desk.studio.server.address().to_string());
        thread::scope(|scope| {
            scope.spawn(|| pass_on(&listener, &server, || drop(change(&desk))));
            desk.run(line).env("AGENTCFG_URL", url).finish()
        })
    };
    let refused = apply("apply agents", "gpt-6").exited(5);
    said_by(
        refused,
        &[
            "the agents have changed meanwhile; nothing was applied",
            "writer",
            "--force",
        ],
    );
    assert_eq!(desk.studio.list().json()[0]["model"], "gpt-6");
    apply("apply agents --force", "gpt-7").exited(0);
    assert_eq!(desk.studio.list().json()[0]["model"], json!(null));
    desk.fails("apply agents --force --base x", 64, &["--base"]);
}
