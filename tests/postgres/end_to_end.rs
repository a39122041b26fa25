//! The whole end-to-end suite once more, with every server on a database of its own.

use std::path::PathBuf;
use std::process::Command;

use crate::cluster::{Cluster, missing};

/// What is about the data directory itself, which there is none of.
const ABOUT_DIRECTORIES: &[&str] = &[
    "command_line::",
    // Every server of the suite has the same session secret here.
    "decisions::sessions::a_token_of_another_deployment_is_refused",
    // It holds the file against the command `check`; crashes of the database have tests of their own.
    "durability::crash::a_killed_server_has_lost_nothing_that_it_acknowledged",
    // Windows in a database outlive the process.
    "decisions::rate_limit::windows_end_with_the_process",
    // These read the files.
    "secrets::",
];

#[test]
fn the_end_to_end_suite_holds_on_a_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(suite) = suite() else {
        missing("the test binary `it`", "cargo test -p agentcfg-tests --no-run");
        return;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(cluster.binary("")).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(suite);
    command
        .env("PATH", path)
        .env(
            "AGENTCFG_TEST_DATABASE",
            format!("{}:{}", cluster.socket().display(), cluster.port()),
        )
        .env("AGENTCFG_TEST_BINARY", crate::server::binary());
    for test in ABOUT_DIRECTORIES {
        command.args(["--skip", test]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text
        .lines()
        .find(|line| line.starts_with("test result:"))
        .unwrap_or_default();
    println!("{result}");
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The newest build of the suite beside this binary.
fn suite() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(own.parent()?).ok()?.flatten();
    let named = files.filter(|file| {
        let name = file.file_name();
        let hash = name.to_str().and_then(|name| name.strip_prefix("it-"));
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let newest = named.max_by_key(|file| file.metadata().and_then(|found| found.modified()).ok());
    newest.map(|file| file.path())
}
