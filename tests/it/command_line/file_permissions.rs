//! File permissions of the data directory. They do not apply to root, so these tests run as another user.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use agentcfg_tests::harness::{Finished, NOBODY, Run, Server, not_run, scratch, server_binary};
use tempfile::TempDir;

/// A directory that the unprivileged user can enter, with a copy of the binary.
struct UnprivilegedDir {
    dir: TempDir,
    binary: PathBuf,
    user: Option<u32>,
}

impl UnprivilegedDir {
    fn open() -> Option<Self> {
        let dir = scratch();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        let binary = dir.path().join("agentcfg-server");
        fs::copy(server_binary(), &binary).unwrap();
        fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().metadata().unwrap().uid() == 0;
        let dir_of_user = Self {
            dir,
            binary,
            user: root.then_some(NOBODY),
        };
        if dir_of_user
            .try_run(&["--version"])
            .is_ok_and(|finished| finished.status.success())
        {
            return Some(dir_of_user);
        }
        not_run("the binary cannot be run as another user");
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A directory with this mode, owned by the user who runs the binary.
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
fn a_directory_without_write_permission_is_named_with_a_remedy() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let data = dir_of_user.directory("read-only", 0o500);
    dir_of_user
        .serve(&data)
        .failed_with(&["read-only", "permission denied", "--data"]);
    let token = dir_of_user.run(&["token", "--user", "u", "--data", data.to_str().unwrap()]);
    token.failed_with(&["read-only", "permission denied"]);
}

#[test]
fn a_directory_that_cannot_be_created_is_named_with_a_remedy() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let parent = dir_of_user.directory("closed", 0o500);
    dir_of_user
        .serve(&parent.join("data"))
        .failed_with(&["closed/data", "permission denied", "--data"]);
    dir_of_user
        .serve(&parent.join("deep/data"))
        .failed_with(&["closed/deep", "permission denied"]);
}

#[test]
fn a_directory_of_another_user_is_named_with_a_remedy() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let data = dir_of_user.directory("shut", 0o000);
    for arguments in [
        &["check", "--data"][..],
        &["serve", "--listen", "127.0.0.1:0", "--data"],
    ] {
        let arguments: Vec<_> = arguments.iter().copied().chain([data.to_str().unwrap()]).collect();
        dir_of_user
            .run(&arguments)
            .failed_with(&["shut", "permission denied", "owner"]);
    }
}

#[test]
fn a_store_of_another_user_is_not_called_damaged() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let data = dir_of_user.directory("data", 0o700);
    let source = Server::start();
    source.stop();
    for name in ["store.redb", "master.key"] {
        let file = data.join(name);
        fs::copy(source.data().join(name), &file).unwrap();
        if let Some(user) = dir_of_user.user {
            chown(&file, Some(user), Some(user)).unwrap();
        }
    }
    let store = data.join("store.redb");
    fs::set_permissions(&store, Permissions::from_mode(0o400)).unwrap();
    let lock = data.join("lock");
    fs::copy(source.data().join("lock"), &lock).unwrap();
    if let Some(user) = dir_of_user.user {
        chown(&lock, Some(user), Some(user)).unwrap();
    }
    let said = dir_of_user
        .serve(&data)
        .failed_with(&["Permission denied", "run as the owner of the data directory"]);
    let written = fs::read(source.data().join("lock")).unwrap();
    assert!(fs::read(&lock).unwrap() == written, "what the last server has written");
    assert!(!said.contains("sound") && !said.contains("restore"), "{said}");
    // What only reads works on a directory that cannot be written.
    fs::set_permissions(&data, Permissions::from_mode(0o500)).unwrap();
    let text = data.to_str().unwrap();
    dir_of_user.run(&["check", "--data", text]).succeeded();
    let copy = dir_of_user.directory("copies", 0o700).join("copy");
    let copy = copy.to_str().unwrap();
    dir_of_user.run(&["backup", "--data", text, "--out", copy]).succeeded();
    fs::set_permissions(&store, Permissions::from_mode(0o000)).unwrap();
    let check = dir_of_user.run(&["check", "--data", text]);
    check.failed_with(&["Permission denied", "run as the owner of the data directory"]);
    fs::set_permissions(&store, Permissions::from_mode(0o600)).unwrap();
    fs::write(data.join("lock"), "").ok();
    dir_of_user.serve(&data).failed_with(&["denied", "owner"]);
}

#[test]
fn a_backup_without_write_permission_is_named() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let data = dir_of_user.directory("data", 0o700);
    dir_of_user
        .run(&["token", "--user", "u", "--data", data.to_str().unwrap()])
        .succeeded();
    let source = Server::start();
    source.stop();
    let store = data.join("store.redb");
    fs::copy(source.data().join("store.redb"), &store).unwrap();
    if let Some(user) = dir_of_user.user {
        chown(&store, Some(user), Some(user)).unwrap();
    }
    let closed = dir_of_user.directory("closed", 0o500);
    let out = closed.join("copy");
    let finished = dir_of_user.run(&[
        "backup",
        "--data",
        data.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]);
    finished.failed_with(&["closed/copy", "denied"]);
}

#[test]
fn a_secret_that_others_can_read_is_refused_with_the_chmod_command() {
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
fn all_data_files_are_accessible_to_their_owner_only() {
    let server = Server::start();
    server.token("u");
    assert_eq!(server.data().metadata().unwrap().mode() & 0o777, 0o700);
    for entry in fs::read_dir(server.data()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
    }
}

#[test]
fn a_path_in_a_directory_of_another_user_is_named_with_a_remedy() {
    let Some(dir_of_user) = UnprivilegedDir::open() else {
        return;
    };
    let shut = dir_of_user.directory("shut", 0o000).join("below");
    let shut = shut.to_str().unwrap();
    let source = Server::start();
    source.stop();
    let data = dir_of_user.directory("data", 0o700).join("store.redb");
    fs::copy(source.data().join("store.redb"), &data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o644)).unwrap();
    dir_of_user
        .run(&["backup", "--data", "data", "--out", shut])
        .failed_with(&["cannot write", shut, "name another file with --out"]);
    let said = ["shut", "permission denied", "name another with --data or AGENTCFG_DATA"];
    dir_of_user
        .run(&["token", "--user", "ada", "--data", shut])
        .failed_with(&said);
    dir_of_user
        .run(&["restore", "--from", "agentcfg-server", "--data", shut])
        .failed_with(&said);
}
