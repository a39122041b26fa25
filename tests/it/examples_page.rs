//! The commands of `docs/examples.md` work as they are written, and print what the page says.

use std::process::{Command, Stdio};

use agentcfg_tests::harness::{Server, Studio, free_address, not_run, scratch};

/// What is printed after each block of commands.
const END: &str = "== the end of a block ==";

/// The fenced blocks of a page: their language and their text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').expect("a block has a line"))
        .collect()
}

#[test]
fn each_command_prints_what_the_page_says() {
    for program in ["bash", "curl", "jq", "python3"] {
        let found = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if found.is_err() {
            return not_run(&format!("{program} is missing"));
        }
    }
    let blocks = blocks(include_str!("../../docs/examples.md"));
    let mut script = String::from("set -euo pipefail\n");
    let mut expected = Vec::new();
    // The first block is for values of the reader.
    assert!(blocks[0].1.contains('…'));
    for (language, text) in &blocks[1..] {
        match *language {
            "sh" => {
                script.push_str(&format!("{text}\necho '{END}'\n"));
                expected.push(String::new());
            }
            "text" => *expected.last_mut().unwrap() = format!("{text}\n"),
            other => panic!("a block of {other}"),
        }
    }
    assert!(expected.len() > 15);

    let port = free_address().port();
    let server = Server::builder()
        .set("webhook_allowed_hosts", format!("127.0.0.1:{port}"))
        .start();
    let studio = Studio::on(&server);
    let dir = scratch();
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(dir.path())
        .env("URL", server.url())
        .env("WORKSPACE", studio.id.to_string())
        .env("KEY", studio.key("admin").key)
        .env("TOKEN", &studio.owner)
        .env("PORT", port.to_string())
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let printed: Vec<_> = stdout.split(&format!("{END}\n")).collect();
    assert_eq!(printed[..expected.len()], expected, "{stderr}");
    assert_eq!(printed[expected.len()..], [""]);
}
