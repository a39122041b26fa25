//! Commands of the binary that run to completion.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::server_binary;
use super::spawn::{dies_with_parent, spawn};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a command.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

impl Finished {
    /// Asserts success and returns standard output.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert!(self.status.success(), "should succeed: {self:?}");
        self.stdout
    }

    /// Asserts this exit code, and returns what was printed.
    #[track_caller]
    pub fn exited(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    /// Asserts an orderly failure: an exit status that reports one, and a reason on standard error
    /// that contains each of `said`.
    #[track_caller]
    pub fn failed_with(self, said: &[&str]) -> String {
        let code = self.status.code();
        assert!(
            code.is_some_and(|code| (1..=2).contains(&code)),
            "should fail in order: {self:?}"
        );
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for said in said {
            assert!(self.stderr.contains(said), "should say {said:?}: {self:?}");
        }
        self.stderr
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            stdout,
            stderr,
            line,
        } = self;
        write!(
            f,
            "`{line}` ended with {status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        )
    }
}

/// A command before its start.
pub struct Run {
    arguments: Vec<OsString>,
    env: Vec<(String, OsString)>,
    dir: Option<PathBuf>,
    user: Option<u32>,
    binary: PathBuf,
    stdin: Option<String>,
}

/// Runs the binary with these arguments to completion.
pub fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Finished {
    Run::new(arguments).finish()
}

impl Run {
    pub fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            arguments: arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned())
                .collect(),
            env: Vec::new(),
            dir: None,
            user: None,
            binary: server_binary().to_owned(),
            stdin: None,
        }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn in_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Runs another binary instead of the one under test.
    #[must_use]
    pub fn binary(mut self, binary: impl AsRef<Path>) -> Self {
        self.binary = binary.as_ref().to_owned();
        self
    }

    /// Gives it this standard input. Without it there is none.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Runs as this user, which needs root.
    #[must_use]
    pub fn as_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Runs to completion, with a timeout of half a minute.
    pub fn finish(self) -> Finished {
        self.try_finish().expect("the binary starts")
    }

    /// Runs to completion, or returns the error of starting it.
    pub fn try_finish(self) -> io::Result<Finished> {
        let mut command = dies_with_parent(&self.binary, self.user);
        let stdin = if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command.args(&self.arguments).envs(self.env).stdin(stdin);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(self.dir.unwrap_or_else(std::env::temp_dir));
        let mut child = spawn(command)?;
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin) {
            // A command that does not read it may have ended.
            let _ = pipe.write_all(text.as_bytes());
        }
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let deadline = Instant::now() + TIMEOUT;
        let mut in_time = true;
        let status = loop {
            if let Some(status) = child.try_wait().expect("the child is ours") {
                break status;
            }
            if Instant::now() > deadline {
                in_time = false;
                let _ = child.kill();
            }
            thread::sleep(Duration::from_millis(2));
        };
        let line: Vec<_> = self
            .arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect();
        let finished = Finished {
            status,
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
            line: line.join(" "),
        };
        assert!(in_time, "the command did not end before the timeout: {finished:?}");
        Ok(finished)
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
