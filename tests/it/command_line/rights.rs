//! Rights on the data directory, which root does not feel: these run as somebody else.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use agentcfg_tests::harness::{Finished, NOBODY, Run, Server, not_run, scratch, server_binary};
use tempfile::TempDir;

/// A place that the user without rights can enter, with a copy of the binary.
struct Hall {
    dir: TempDir,
    binary: PathBuf,
    user: Option<u32>,
}

impl Hall {
    fn open() -> Option<Self> {
        let dir = scratch();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        let binary = dir.path().join("agentcfg-server");
        fs::copy(server_binary(), &binary).unwrap();
        fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().metadata().unwrap().uid() == 0;
        let hall = Self {
            dir,
            binary,
            user: root.then_some(NOBODY),
        };
        if hall
            .try_run(&["--version"])
            .is_ok_and(|finished| finished.status.success())
        {
            return Some(hall);
        }
        not_run("the binary cannot be run as another user");
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A directory with this mode that belongs to whoever runs the binary.
    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        if let Some(user) = self.user {
            chown(&path, Some(user), Some(user)).unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        self.try_run(arguments).expect("the binary starts")
    }

    fn try_run(&self, arguments: &[&str]) -> io::Result<Finished> {
        let run = Run::new(arguments).binary(&self.binary).in_dir(self.dir.path());
        match self.user {
            Some(user) => run.as_user(user).try_finish(),
            None => run.try_finish(),
        }
    }

    fn serve(&self, data: &Path) -> Finished {
        self.run(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()])
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_named_with_a_way_out() {
    let Some(hall) = Hall::open() else { return };
    let data = hall.directory("read-only", 0o500);
    hall.serve(&data)
        .failed_with(&["read-only", "permission denied", "--data"]);
    let token = hall.run(&["token", "--user", "u", "--data", data.to_str().unwrap()]);
    token.failed_with(&["read-only", "permission denied"]);
}

#[test]
fn a_directory_that_may_not_be_made_is_named_with_a_way_out() {
    let Some(hall) = Hall::open() else { return };
    let parent = hall.directory("closed", 0o500);
    hall.serve(&parent.join("data"))
        .failed_with(&["closed/data", "permission denied", "--data"]);
    hall.serve(&parent.join("deep/data"))
        .failed_with(&["closed/deep", "permission denied"]);
}

#[test]
fn a_directory_of_somebody_else_is_named_with_a_way_out() {
    let Some(hall) = Hall::open() else { return };
    let data = hall.directory("shut", 0o000);
    for arguments in [
        &["check", "--data"][..],
        &["serve", "--listen", "127.0.0.1:0", "--data"],
    ] {
        let arguments: Vec<_> = arguments.iter().copied().chain([data.to_str().unwrap()]).collect();
        hall.run(&arguments)
            .failed_with(&["shut", "permission denied", "owner"]);
    }
}

#[test]
fn a_backup_that_may_not_be_written_is_named() {
    let Some(hall) = Hall::open() else { return };
    let data = hall.directory("data", 0o700);
    hall.run(&["token", "--user", "u", "--data", data.to_str().unwrap()])
        .succeeded();
    let source = Server::start();
    source.stop();
    let store = data.join("store.redb");
    fs::copy(source.data().join("store.redb"), &store).unwrap();
    if let Some(user) = hall.user {
        chown(&store, Some(user), Some(user)).unwrap();
    }
    let closed = hall.directory("closed", 0o500);
    let out = closed.join("copy");
    let finished = hall.run(&[
        "backup",
        "--data",
        data.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    finished.failed_with(&["closed/copy", "denied"]);
}

#[test]
fn a_secret_that_others_can_read_is_refused_with_the_command_that_helps() {
    let server = Server::start();
    server.token("u");
    server.stop();
    let secret = server.data().join("session.key");
    assert_eq!(secret.metadata().unwrap().mode() & 0o777, 0o600);
    fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    let data = server.data().to_str().unwrap();
    let finished = Run::new(["serve", "--listen", "127.0.0.1:0", "--data", data]).finish();
    finished.failed_with(&["session.key", "644", "chmod 600"]);
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    Server::builder().data(data).start();
}

#[test]
fn everything_in_the_data_directory_is_for_its_owner_alone() {
    let server = Server::start();
    server.token("u");
    assert_eq!(server.data().metadata().unwrap().mode() & 0o777, 0o700);
    for entry in fs::read_dir(server.data()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
    }
}
