//! Child processes that do not outlive the tests, and temporary directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, Once, OnceLock};
use std::thread;

use tempfile::TempDir;

/// The user id of `nobody` on most systems.
pub const NOBODY: u32 = 65_534;

const PREFIX: &str = "agentcfg-it-";

type Order = (Command, Sender<io::Result<Child>>);

/// Starts a process that dies with this one. The kernel watches the thread that starts it, and a
/// test's thread ends with the test, so one permanent thread starts all processes.
pub fn spawn(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, started) = mpsc::channel();
    orders
        .lock()
        .unwrap()
        .send((command, answer))
        .expect("the thread stays");
    started.recv().expect("the thread answers")
}

/// A command for the binary at `path`, optionally as another user, that is killed when the thread that started it ends.
pub fn dies_with_parent(path: &Path, user: Option<u32>) -> Command {
    let mut command = if has_setpriv() || user.is_some() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = user {
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.arg("--clear-groups");
        }
        command.arg("--").arg(path);
        command
    } else {
        Command::new(path)
    };
    // Settings in the developer's environment must not reach the tests, and an unknown setting is an error.
    let starts_with = |name: &std::ffi::OsStr, prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
    for (name, _) in std::env::vars_os() {
        let is_proxy = name.to_ascii_lowercase().as_encoded_bytes().ends_with(b"_proxy");
        if is_proxy || starts_with(&name, "AGENTCFG_") || starts_with(&name, "OTEL_") {
            command.env_remove(name);
        }
    }
    command.env_remove("NO_COLOR").env_remove("RUST_LOG");
    command
}

/// Whether the system has `setpriv`, which ties a process to its parent. Without it a server may
/// outlive a killed test run.
fn has_setpriv() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let tried = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "true"])
            .status();
        tried.is_ok_and(|status| status.success())
    })
}

/// A new directory, removed by its guard, or by the next run if this one is killed.
pub fn scratch() -> TempDir {
    static SWEEP: Once = Once::new();
    SWEEP.call_once(remove_leftovers);
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir()
        .expect("a temporary directory")
}

/// Removes the directories of runs that have ended.
fn remove_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if let Some(pid) = owner.filter(|pid| pid.parse::<u32>().is_ok())
            && !PathBuf::from("/proc").join(pid).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
