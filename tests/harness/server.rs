//! A server process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use agentcfg_client::{Client, RetryPolicy};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::database::{DATABASE_URL, SESSION_SECRET, database_settings, new_database};
use super::spawn::{dies_with_parent, spawn};
use super::{Run, scratch, server_binary, until};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The user who may change plans on shared servers.
const OPERATOR: &str = "operator";

/// A server that runs until it is stopped or dropped.
pub struct Server {
    child: Mutex<Child>,
    address: SocketAddr,
    data: PathBuf,
    stdout: Arc<Mutex<String>>,
    stderr: PathBuf,
    tokens: Mutex<HashMap<String, String>>,
    _dir: TempDir,
}

/// A server before its start.
#[derive(Default)]
pub struct Builder {
    settings: Vec<(String, OsString)>,
    arguments: Vec<OsString>,
    data: Option<PathBuf>,
    dev_in: Option<PathBuf>,
    listen: Option<SocketAddr>,
}

impl Server {
    /// Starts to build a server with a new data directory.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A server with a new data directory and default settings.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// The server that the tests of this process share: default settings plus an operator.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::builder().set("operators", OPERATOR).start())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        let scheme = if self.stdout().contains("listening on https://") {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.address)
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    /// The log so far.
    pub fn stderr(&self) -> String {
        fs::read(&self.stderr).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A session token of a user, from the command `token`.
    pub fn token(&self, user: &str) -> String {
        let known = self.tokens.lock().unwrap().get(user).cloned();
        known.unwrap_or_else(|| {
            let token = self.fresh_token(user, 3600);
            self.tokens.lock().unwrap().insert(user.to_owned(), token.clone());
            token
        })
    }

    /// A new session token that expires after this many seconds.
    pub fn fresh_token(&self, user: &str, seconds: u32) -> String {
        let ttl = seconds.to_string();
        let mut run = Run::new(
            ["token", "--user", user, "--ttl", &ttl, "--data"]
                .map(OsString::from)
                .into_iter()
                .chain([self.data.clone().into_os_string()]),
        );
        run = run.in_dir(&self.data);
        run.finish().succeeded().trim().to_owned()
    }

    /// A session token of the user who may change plans.
    pub fn operator(&self) -> String {
        self.token(OPERATOR)
    }

    /// The real client without retries, so that tests see every response.
    pub fn client(&self, credential: &str) -> Client {
        let builder = Client::builder(self.url()).retry(RetryPolicy::NEVER);
        let builder = if credential.starts_with("svc_") {
            builder.api_key(credential)
        } else {
            builder.session_token(credential)
        };
        builder.build().expect("the client's settings are good")
    }

    /// The memory of the process in RAM, in MiB.
    pub fn memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.expect("the memory in KiB") >> 10
    }

    pub fn pid(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child.lock().unwrap());
        kill_process(pid, signal).expect("the server runs");
    }

    /// The exit status, once the process has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().unwrap().try_wait().expect("the child is ours")
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn wait(&self) -> ExitStatus {
        until("the server ends", || self.ended())
    }

    /// Shuts the server down in order.
    #[track_caller]
    pub fn stop(&self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert!(status.success(), "{status}\n{}", self.stderr());
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().expect("the server runs");
        child.wait().expect("the child is ours");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let _ = child.kill();
        let _ = child.wait();
        if thread::panicking() {
            let log = self.stderr();
            let tail: Vec<_> = log.lines().rev().take(30).collect();
            eprintln!("--- end of the server's log");
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

impl Builder {
    /// Sets a setting through the environment.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.settings
            .push((format!("AGENTCFG_{}", key.to_ascii_uppercase()), value.into()));
        self
    }

    /// Sets a variable of the environment that is no setting.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// Adds an argument to the command line.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Uses the data directory of another server.
    #[must_use]
    pub fn data(mut self, data: impl Into<PathBuf>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Listens on this address, where another server was.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Runs `dev` in this directory instead of `serve`.
    #[must_use]
    pub fn dev_in(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dev_in = Some(dir.into());
        self
    }

    /// Starts the server and waits until it listens.
    #[track_caller]
    pub fn start(self) -> Server {
        let dir = scratch();
        let mut command = dies_with_parent(server_binary(), None);
        let on_database = self.dev_in.is_none() && self.data.is_none();
        let data = match &self.dev_in {
            Some(dev) => {
                command.arg("dev").current_dir(dev);
                dev.join("agentcfg-data")
            }
            None => {
                let data = self.data.unwrap_or_else(|| dir.path().join("data"));
                command.arg("serve").arg("--data").arg(&data).current_dir(dir.path());
                data
            }
        };
        let stderr = dir.path().join("stderr");
        let remembered = fs::read_to_string(data.join(DATABASE_URL)).ok();
        if let Some(url) = remembered.or_else(|| on_database.then(|| new_database(&data)).flatten()) {
            command.envs(database_settings(&url));
            command.env("AGENTCFG_SESSION_SECRET", SESSION_SECRET);
            command.env("AGENTCFG_MASTER_KEYS", "17".repeat(32));
        }
        command
            .arg("--listen")
            .arg(
                self.listen
                    .map_or("127.0.0.1:0".to_owned(), |address| address.to_string()),
            )
            .args(self.arguments)
            .envs(self.settings);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).expect("a file for the log"));
        let mut child = spawn(command).expect("the binary starts");
        let stdout = Arc::new(Mutex::new(String::new()));
        let listening = listen_for_address(&mut child, Arc::clone(&stdout));
        let address = match listening.recv_timeout(TIMEOUT) {
            Ok(address) => address,
            Err(reason) => {
                if reason == RecvTimeoutError::Timeout {
                    let _ = child.kill();
                }
                let status = child.wait();
                let log = fs::read_to_string(&stderr).unwrap_or_default();
                panic!("no listening server: {status:?}\n{}\n{log}", stdout.lock().unwrap());
            }
        };
        Server {
            child: Mutex::new(child),
            address,
            data,
            stdout,
            stderr,
            tokens: Mutex::default(),
            _dir: dir,
        }
    }
}

/// Reads standard output to its end and sends the address that it contains.
fn listen_for_address(child: &mut Child, stdout: Arc<Mutex<String>>) -> Receiver<SocketAddr> {
    let pipe = child.stdout.take().expect("standard output is a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { break };
            let url = line.strip_prefix("listening on ");
            let address = url
                .and_then(|url| url.split_once("://"))
                .map(|(_, address)| address.parse());
            let mut all = stdout.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *all += &line;
            all.push('\n');
            drop(all);
            if let Some(Ok(address)) = address {
                let _ = sender.send(address);
            }
        }
    });
    receiver
}
