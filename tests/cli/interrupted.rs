//! Signals in the middle of an apply and of an export.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use agentcfg_tests::harness::{command_binary, until};

use crate::fixture::Desk;

const AGENTS: usize = 200;

/// Passes this many bytes of each connection on to the server and then calls `kill`; the answer goes nowhere.
fn pass_on(listener: &TcpListener, server: std::net::SocketAddr, bytes: u64, kill: impl FnOnce()) {
    let (client, _) = listener.accept().unwrap();
    let mut upstream = TcpStream::connect(server).unwrap();
    let mut passed = (&client).take(bytes);
    std::io::copy(&mut passed, &mut upstream).unwrap();
    upstream.flush().unwrap();
    kill();
    upstream.shutdown(Shutdown::Write).unwrap();
    // The server has decided when it closes the connection.
    let _ = upstream.read_to_end(&mut Vec::new());
}

/// A command that runs by itself.
fn spawned(desk: &Desk, arguments: &[&str], url: &str) -> Child {
    Command::new(command_binary())
        .args(arguments)
        .current_dir(desk.path("."))
        .env("XDG_CONFIG_HOME", desk.path("config"))
        .env("AGENTCFG_URL", url)
        .env("AGENTCFG_API_KEY", &desk.credential)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn an_apply_that_is_killed_has_changed_all_agents_or_none() {
    let desk = Desk::open();
    for number in 0..AGENTS {
        let persona = "You write. ".repeat(20);
        desk.write(
            &format!("agents/a{number}.md"),
            &format!("---\ndisplay_name: Agent {number}\n---\n{persona}\n"),
        );
    }
    let mut outcomes = Vec::new();
    for bytes in [0, 100, 5_000, 30_000, 60_000, u64::MAX] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let workspace = desk.studio.id.to_string();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut apply = spawned(&desk, &["apply", "agents", "--force", "--workspace", &workspace], &url);
        let server = desk.studio.server.address();
        match bytes {
            // The whole request: the command waits for the answer, and is killed once the agents are there.
            u64::MAX => {
                let passing = thread::spawn(move || pass_on(&listener, server, bytes, || {}));
                until("the agents", || (desk.studio.agent_ids().len() == AGENTS).then_some(()));
                apply.kill().unwrap();
                passing.join().unwrap();
            }
            _ => pass_on(&listener, server, bytes, || apply.kill().unwrap()),
        }
        apply.wait().unwrap();
        outcomes.push(desk.studio.agent_ids().len());
    }
    assert_eq!(outcomes, [0, 0, 0, 0, 0, AGENTS]);
    desk.run("plan agents").finish().exited(0);
}

#[test]
fn an_export_that_is_ended_leaves_no_temporary_files() {
    use rustix::process::{Pid, Signal, kill_process};

    let desk = Desk::open();
    let agents: Vec<_> = (0..AGENTS)
        .map(|number| serde_json::json!({"agent_id": format!("a{number}"), "display_name": "Agent"}))
        .collect();
    let target = format!("/api/agents/apply?workspace_id={}", desk.studio.id);
    let request = desk.studio.server.post(target).bearer(&desk.studio.owner);
    request
        .json(&serde_json::json!({ "agents": agents }))
        .send()
        .expect(200);
    let is_temporary = |name: &String| name.starts_with(".agentcfg-");
    for (number, signal) in [Signal::INT, Signal::TERM, Signal::KILL]
        .into_iter()
        .cycle()
        .take(15)
        .enumerate()
    {
        let dir = format!("agents{number}");
        let mut export = spawned(&desk, &["export", &dir], &desk.studio.server.url());
        until("the first file", || {
            let mut entries = std::fs::read_dir(desk.path(&dir)).ok()?;
            entries.next().map(|_| ())
        });
        let pid = Pid::from_child(&export);
        // It may have ended already.
        let _ = kill_process(pid, signal);
        export.wait().unwrap();
        if signal != Signal::KILL {
            assert!(
                !desk.names(&dir).iter().any(is_temporary),
                "{signal:?}: {:?}",
                desk.names(&dir)
            );
        }
        desk.write(&format!("{dir}/.agentcfg-aB3dE6"), "what a killed export leaves");
        desk.ok(&format!("export {dir}"));
        assert_eq!(desk.names(&dir).len(), AGENTS, "{:?}", desk.names(&dir));
    }
}
