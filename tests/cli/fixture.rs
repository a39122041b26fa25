//! A user with a credential, a directory and the command.

use std::fs;
use std::path::{Path, PathBuf};

use agentcfg_tests::harness::{Finished, Run, Studio, command_binary, scratch};
use serde_json::Value;
use tempfile::TempDir;

/// A directory of a user who works in a workspace.
pub struct Desk {
    pub studio: Studio<'static>,
    pub credential: String,
    dir: TempDir,
}

impl Desk {
    /// A user of a new workspace with an admin key.
    pub fn open() -> Self {
        Self::at(Studio::open())
    }

    /// A user of this workspace with an admin key.
    pub fn at(studio: Studio<'static>) -> Self {
        let credential = studio
            .key_with(&serde_json::json!({"scope": "admin", "rate_limit": 100_000}))
            .key;
        Self {
            studio,
            credential,
            dir: scratch(),
        }
    }

    /// A path in the user's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file in the user's directory.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of the files in a directory, in their order.
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(dir)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The command without a credential. Words are separated by spaces.
    pub fn bare(&self, line: &str) -> Run {
        self.bare_with(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn bare_with(&self, arguments: &[&str]) -> Run {
        let run = Run::new(arguments).binary(command_binary()).in_dir(self.dir.path());
        run.env("XDG_CONFIG_HOME", self.path("config"))
            .env("TMPDIR", self.dir.path())
            .env("HOME", self.dir.path())
    }

    /// The command with the credential in its environment.
    pub fn run(&self, line: &str) -> Run {
        self.with_credential(self.bare(line))
    }

    pub fn run_with(&self, arguments: &[&str]) -> Run {
        self.with_credential(self.bare_with(arguments))
    }

    fn with_credential(&self, run: Run) -> Run {
        run.env("AGENTCFG_URL", self.studio.server.url())
            .env("AGENTCFG_API_KEY", &self.credential)
    }

    /// Runs a command that must succeed, and returns standard output.
    #[track_caller]
    pub fn ok(&self, line: &str) -> String {
        self.run(line).finish().succeeded()
    }

    /// Runs a command with `--output json` that must end with this code, and returns what it printed.
    #[track_caller]
    pub fn json(&self, line: &str, code: i32) -> Value {
        let finished = self.run(&format!("{line} --output json")).finish().exited(code);
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
    }

    /// Asserts that a command ends with this code and a reason that contains each of `said`.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32, said: &[&str]) -> Finished {
        said_by(self.run(line).finish().exited(code), said)
    }

    /// Makes a program in the user's directory that is run as the editor: a shell script, whose argument is the file.
    pub fn editor(&self, script: &str) -> PathBuf {
        let path = self.write("editor.sh", &format!("#!/bin/sh\nset -e\n{script}\n"));
        make_executable(&path);
        path
    }
}

/// Asserts that standard error contains each of `said`.
#[track_caller]
pub fn said_by(finished: Finished, said: &[&str]) -> Finished {
    for said in said {
        assert!(finished.stderr.contains(said), "should say {said:?}: {finished:?}");
    }
    finished
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
