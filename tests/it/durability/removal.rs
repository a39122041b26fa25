//! `kill -9` while the records of a deleted workspace are removed.

use std::path::Path;
use std::thread;
use std::time::Duration;

use agentcfg_tests::harness::{Server, Studio, at_once, eventually, run};
use serde_json::json;

/// How often the server is killed; `AGENTCFG_TEST_KILLS` sets another number.
const KILLS: u64 = 6;
const AGENTS: usize = 600;

fn start(data: Option<&Path>) -> Server {
    let builder = Server::builder()
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000");
    match data {
        Some(data) => builder.data(data).start(),
        None => builder.start(),
    }
}

/// A workspace with long records.
fn filled(server: &Server) -> Studio<'_> {
    let studio = Studio::on(server);
    let persona = json!({"persona_prompt": "p".repeat(5000)});
    at_once(6, |thread| {
        for number in 0..AGENTS / 6 {
            studio.create(&format!("a{thread}-{number}"), &persona).expect(201);
        }
    });
    studio
}

fn delete(studio: &Studio<'_>) {
    let target = format!("/api/workspaces?workspace_id={}&confirm=Studio", studio.id);
    studio.server.delete(target).bearer(&studio.owner).send().expect(200);
}

#[test]
fn a_removal_goes_on_after_kills_until_nothing_is_left() {
    let kills = std::env::var("AGENTCFG_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let first = start(None);
    let data = first.data().to_owned();
    let file = data.join("store.redb");
    let size = || std::fs::metadata(&file).unwrap().len();
    let check = || run(["check", "--data", data.to_str().unwrap()]).succeeded();

    let studio = filled(&first);
    let (id, owner, key) = (studio.id, studio.owner.clone(), studio.key("admin"));
    let full = size();
    delete(&studio);
    // The directory is removed with the first server, which is dropped last.
    let mut server = None;
    let (mut under_way, mut is_over) = (0, false);
    for kill in 0..kills {
        server.as_ref().unwrap_or(&first).kill();
        let said = check();
        is_over = !said.contains(&format!("the workspace {id} was deleted"));
        under_way += usize::from(!is_over);
        let server = server.insert(start(Some(&data)));
        let target = format!("/api/agents/configs?workspace_id={id}");
        server.get(&target).bearer(&key.key).send().expect(401);
        server.get(&target).bearer(&owner).send().expect(403);
        thread::sleep(Duration::from_millis(kill % 6));
    }
    let server = server.expect("the server was killed");
    println!("{under_way} of {kills} kills came before the end of the removal");
    assert!(under_way > 0);
    let end = format!("all records of a deleted workspace are removed workspace={id}");
    // Where the removal was over before the last start, a server that was killed has logged its end.
    eventually("the removal ends", || is_over || server.stderr().contains(&end));
    server.stop();
    let said = check();
    assert!(!said.contains(&id.to_string()), "{said}");
    assert!(said.starts_with("sound: "), "{said}");

    // The file's pages are used again: without that, it would be four times as long.
    let server = start(Some(&data));
    for round in 1..=3 {
        delete(&filled(&server));
        let ended = || {
            server
                .stderr()
                .matches("all records of a deleted workspace are removed")
                .count()
        };
        eventually("the removal ends", || ended() == round);
    }
    server.stop();
    assert!(size() <= full * 2, "{} bytes after {full}", size());
}
