//! Server processes of agentcfg on one database, and a client for them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::session::LocalSessions;
use agentcfg_tests::harness::{database_settings, server_binary};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const SECRET: &str = "a secret of the tests, 32 bytes or more";

/// The text of a chunked body.
fn pieces(mut body: &str) -> Option<String> {
    let mut text = String::new();
    loop {
        let (length, rest) = body.split_once("\r\n")?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(text);
        }
        text.push_str(rest.get(..length)?);
        body = rest.get(length + 2..)?;
    }
}

/// The binary under test, without the settings of the developer's environment.
pub fn command() -> Command {
    let mut command = Command::new(server_binary());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("AGENTCFG_")) {
            command.env_remove(name);
        }
    }
    command
}

/// A session token of the local identity provider.
pub fn token(user: &str) -> String {
    LocalSessions::new(SECRET.as_bytes())
        .unwrap()
        .issue(user, 3600, SystemClock.now())
        .unwrap()
}

/// The command that serves on a database, with more settings.
fn serving(url: &str, settings: &[(&str, &str)]) -> Command {
    let mut command = command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .envs(database_settings(url))
        .env("AGENTCFG_SESSION_SECRET", SECRET)
        .env("AGENTCFG_OPERATORS", "root")
        .env("AGENTCFG_DEFAULT_PLAN", "free")
        .env("AGENTCFG_SESSION_RATE_LIMIT", "1000000")
        .env("NO_COLOR", "1")
        .current_dir(std::env::temp_dir());
    for (name, value) in settings {
        command.env(format!("AGENTCFG_{}", name.to_ascii_uppercase()), value);
    }
    command
}

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    address: SocketAddr,
    log: Mutex<Receiver<String>>,
}

impl Server {
    /// Starts a server on a database.
    pub fn start(url: &str) -> Self {
        Self::with(url, &[])
    }

    /// Starts a server on a database, with more settings.
    pub fn with(url: &str, settings: &[(&str, &str)]) -> Self {
        let mut child = serving(url, settings)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, log) = channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if std::env::var_os("AGENTCFG_TEST_SERVER_LOG").is_some() {
                    eprintln!("{line}");
                }
                // The test may have dropped the receiver.
                let _ = lines.send(line);
            }
        });
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut said).unwrap();
        let Some(address) = said.trim().strip_prefix("listening on http://") else {
            let _ = child.wait();
            panic!("the server did not start: {:?}", log.iter().collect::<Vec<_>>());
        };
        Self {
            address: address.parse().unwrap(),
            child,
            log: Mutex::new(log),
        }
    }

    /// What a server says that refuses to start.
    #[track_caller]
    pub fn refused(url: &str, settings: &[(&str, &str)]) -> String {
        let mut command = serving(url, settings);
        // A server that starts nevertheless is ended.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        assert_eq!(said, "", "the server started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts three servers on one database.
    pub fn three(url: &str) -> [Self; 3] {
        [Self::start(url), Self::start(url), Self::start(url)]
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of this server with a credential; an empty one is none.
    pub fn api(&self, credential: &str) -> Api {
        Api {
            address: self.address,
            credential: credential.to_owned(),
        }
    }

    /// Waits for a line in the log.
    pub fn wait_for(&self, text: &str) {
        self.seen_before(text);
    }

    /// Waits for a line in the log, and returns what precedes it, with the line.
    pub fn seen_before(&self, text: &str) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = Vec::new();
        loop {
            match log.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => {
                    let is_found = line.contains(text);
                    seen.push(line);
                    if is_found {
                        return seen;
                    }
                }
                Err(error) => panic!("{text:?} is not in the log ({error}): {seen:#?}"),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body; panics if the status is another one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// A client of one server with one credential, on a new connection for each request.
#[derive(Debug, Clone)]
pub struct Api {
    pub address: SocketAddr,
    pub credential: String,
}

impl Api {
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", None).await.unwrap()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", None).await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, "", Some(body)).await.unwrap()
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, "", Some(body)).await.unwrap()
    }

    /// The body of an answer that is no JSON.
    pub async fn text(&self, path: &str) -> String {
        self.exchange("GET", path, "", None).await.unwrap().1
    }

    /// Sends one request; an error when the connection broke before the end of the response.
    pub async fn send(&self, method: &str, path: &str, head: &str, body: Option<Value>) -> std::io::Result<Answer> {
        let (head, body) = self.exchange(method, path, head, body).await?;
        Ok(Answer {
            status: head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0),
            head,
            body: serde_json::from_str(&body).unwrap_or(Value::Null),
        })
    }

    /// Sends one request; returns the head and the body of the answer.
    async fn exchange(
        &self,
        method: &str,
        path: &str,
        head: &str,
        body: Option<Value>,
    ) -> std::io::Result<(String, String)> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let content = match body.len() {
            0 => String::new(),
            length => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
        };
        let authorization = match &*self.credential {
            "" => String::new(),
            credential => format!("authorization: Bearer {credential}\r\n"),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{authorization}{head}{content}\r\n{body}"
        );
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let text = String::from_utf8(answer).map_err(std::io::Error::other)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let body = match head.contains("transfer-encoding: chunked") {
            true => pieces(body).ok_or(std::io::ErrorKind::UnexpectedEof)?,
            false => body.to_owned(),
        };
        Ok((head.to_owned(), body))
    }

    /// Creates a workspace of this user.
    pub async fn workspace(&self) -> String {
        let made = self
            .post("/api/workspaces", json!({"name": "Studio"}))
            .await
            .expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// Creates an API key; returns its identifier and its plaintext.
    pub async fn key(&self, workspace: &str, scope: &str, limit: u32) -> (String, String) {
        let new = json!({"workspace_id": workspace, "name": "test", "environment": "production", "scope": scope, "rate_limit": limit});
        let made = self.post("/api/api-keys", new).await.expect(201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("id"), text("key"))
    }

    pub async fn create(&self, workspace: &str, agent: &str) -> Answer {
        let new = json!({"workspace_id": workspace, "agent_id": agent, "display_name": agent});
        self.post("/api/agents/configs", new).await
    }

    pub async fn list(&self, workspace: &str) -> Answer {
        self.get(&format!("/api/agents/configs?workspace_id={workspace}")).await
    }

    pub async fn set_plan(&self, workspace: &str, plan: &str) {
        let path = format!("/api/workspaces?workspace_id={workspace}");
        self.patch(&path, json!({ "plan": plan })).await.expect(200);
    }
}
