//! One and three servers on one PostgreSQL against Express doing the same work on the same PostgreSQL.
//!
//! Needs PostgreSQL's programs, Node and the packages of `peers/express`; `scripts/bench.sh` installs them.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentcfg_benches::load;
use agentcfg_benches::process::Server;
use agentcfg_benches::stats::{Series, rounds, seconds};

type Failure = Box<dyn std::error::Error>;

const CLIENTS: usize = 48;
const AGENTS: usize = 20;

fn main() -> Result<(), Failure> {
    let cluster = Cluster::start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "| work | one server, requests/s | three servers | Express, requests/s | one over Express | three over Express |"
    );
    println!("|---|---|---|---|---|---|");
    let ours = Target::agentcfg(&cluster, 3)?;
    let one = ours.first();
    let theirs = Target::express(&cluster)?;
    for target in [&ours, &theirs] {
        for i in 0..AGENTS {
            target.create_now(&format!("seed-{i}"))?;
        }
    }
    for work in ["list", "create"] {
        let (mut single, mut three, mut express) = (Series::default(), Series::default(), Series::default());
        for round in 0..=rounds(5) {
            let measured = [&one, &ours, &theirs].map(|target| runtime.block_on(target.measure(work, round)));
            let [a, b, c] = measured;
            if round > 0 {
                single.push(a?);
                three.push(b?);
                express.push(c?);
            }
        }
        println!(
            "| {work} | {single} | {three} | {express} | {} | {} |",
            single.over(&express),
            three.over(&express)
        );
    }
    Ok(())
}

/// Servers that do the same work on the same workspace.
struct Target {
    name: &'static str,
    addresses: Vec<SocketAddr>,
    workspace: String,
    keys: Vec<String>,
    _servers: Vec<Server>,
}

impl Target {
    fn agentcfg(cluster: &Cluster, servers: usize) -> Result<Self, Failure> {
        let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/agentcfg-server");
        let secret = "a secret for the tokens of a benchmark";
        cluster.create("agentcfg")?;
        let command = |args: &[&str]| {
            let mut command = Command::new(&binary);
            command
                .args(args)
                .env("AGENTCFG_SESSION_SECRET", secret)
                .env("AGENTCFG_DEFAULT_PLAN", "enterprise");
            command.env("AGENTCFG_LOG", "error");
            command
        };
        let mut started = Vec::new();
        for _ in 0..servers {
            let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
            started.push(Server::start(
                serve.env("AGENTCFG_DATABASE_URL", cluster.url("agentcfg")),
            )?);
        }
        let data = cluster.directory.path().join("token");
        let token = command(&["token", "--user", "bench", "--data", &data.to_string_lossy()]).output()?;
        let token = String::from_utf8(token.stdout)?.trim().to_owned();
        let address = started[0].address;
        let made = send(address, "POST", "/api/workspaces", &token, r#"{"name":"bench"}"#)?;
        let workspace = field(&made, "id").ok_or("no workspace")?;
        let mut keys = Vec::new();
        for i in 0..32 {
            let body = format!(
                r#"{{"workspace_id":"{workspace}","name":"{i}","environment":"production","scope":"write","rate_limit":1000000}}"#
            );
            keys.push(field(&send(address, "POST", "/api/api-keys", &token, &body)?, "key").ok_or("no key")?);
        }
        let addresses = started.iter().map(|server| server.address).collect();
        Ok(Self {
            name: "ours",
            addresses,
            workspace,
            keys,
            _servers: started,
        })
    }

    fn express(cluster: &Cluster) -> Result<Self, Failure> {
        cluster.create("express")?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/express");
        let mut node = Command::new("node");
        node.arg("server.js")
            .current_dir(folder)
            .env("DATABASE_URL", cluster.url("express"))
            .env("NODE_ENV", "production");
        let server = Server::start(&mut node)?;
        let (workspace, key) = (server.fact("workspace").to_owned(), server.fact("key").to_owned());
        Ok(Self {
            name: "express",
            addresses: vec![server.address],
            workspace,
            keys: vec![key],
            _servers: vec![server],
        })
    }

    /// The same with one of the servers.
    fn first(&self) -> Self {
        Self {
            name: "one",
            addresses: self.addresses[..1].to_vec(),
            workspace: self.workspace.clone(),
            keys: self.keys.clone(),
            _servers: Vec::new(),
        }
    }

    fn create_now(&self, agent_id: &str) -> Result<(), Failure> {
        let body = creation(&self.workspace, agent_id);
        let answer = send(self.addresses[0], "POST", "/api/agents/configs", &self.keys[0], &body)?;
        if answer.contains(" 201 ") {
            Ok(())
        } else {
            Err(answer.into())
        }
    }

    /// Requests per second over all servers together.
    async fn measure(&self, work: &str, round: usize) -> Result<f64, Failure> {
        let time = Duration::from_secs_f64(seconds(2.0));
        let (workspace, keys, prefix) = (
            self.workspace.clone(),
            self.keys.clone(),
            format!("{}-{round}", self.name),
        );
        // Lists are measured on the few agents that were there first: creates go to a workspace of their own size.
        let (is_list, status) = (work == "list", if work == "list" { 200 } else { 201 });
        let runs = self.addresses.iter().enumerate().map(|(at, address)| {
            let (workspace, keys, prefix) = (workspace.clone(), keys.clone(), prefix.clone());
            load::run(*address, CLIENTS / self.addresses.len(), time, status, move |number, out| {
                let key = &keys[number as usize % keys.len()];
                let (head, body) = if is_list {
                    (format!("GET /api/agents/configs?workspace_id={workspace}"), String::new())
                } else {
                    ("POST /api/agents/configs".to_owned(), creation(&workspace, &format!("{prefix}-{at}-{number}")))
                };
                let text = format!(
                    "{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                out.extend_from_slice(text.as_bytes());
            })
        });
        let mut total = 0.0;
        for outcome in futures_join(runs.collect()).await {
            let outcome = outcome?;
            if outcome.refused > 0 {
                return Err(format!(
                    "{}: {} of {} were refused",
                    self.name, outcome.refused, outcome.answered
                )
                .into());
            }
            total += outcome.per_second();
        }
        Ok(total)
    }
}

/// Runs them together on this thread.
async fn futures_join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |cx| {
        let mut done = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => done = false,
                }
            }
        }
        if done {
            std::task::Poll::Ready(futures.iter_mut().filter_map(|(_, output)| output.take()).collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}

fn creation(workspace: &str, agent_id: &str) -> String {
    format!(
        r#"{{"workspace_id":"{workspace}","agent_id":"{agent_id}","display_name":"Agent","model":"claude-sonnet-4","capabilities":["search"],"parameters":{{"warmth":70}}}}"#
    )
}

/// One request on a connection of its own; the whole answer.
fn send(address: SocketAddr, method: &str, path: &str, credential: &str, body: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {credential}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A text field of the JSON object at the end of an answer.
fn field(answer: &str, name: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    body.get(name)?.as_str().map(str::to_owned)
}

/// A PostgreSQL with its usual durability, in a temporary directory.
struct Cluster {
    directory: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    process: Child,
}

impl Cluster {
    fn start() -> Result<Self, Failure> {
        let versions = std::fs::read_dir("/usr/lib/postgresql")
            .map_err(|_| "PostgreSQL is missing: apt-get install postgresql")?;
        let programs = versions
            .flatten()
            .map(|entry| entry.path().join("bin"))
            .max()
            .ok_or("no PostgreSQL")?;
        let directory = tempfile::tempdir()?;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777))?;
        let data = directory.path().join("data");
        let made = unprivileged(&programs.join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-A", "trust", "-U", "bench"])
            .output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = unprivileged(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-k",
                "",
                "-c",
                "max_connections=200",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let cluster = Self {
            directory,
            programs,
            port,
            process,
        };
        let started = Instant::now();
        while !cluster.psql("postgres", "SELECT 1").is_ok_and(|output| output) {
            if started.elapsed() > Duration::from_secs(30) {
                return Err("PostgreSQL did not start".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(cluster)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://bench@127.0.0.1:{}/{database}", self.port)
    }

    fn create(&self, database: &str) -> Result<(), Failure> {
        if self.psql("postgres", &format!("CREATE DATABASE {database}"))? {
            Ok(())
        } else {
            Err("no database".into())
        }
    }

    fn psql(&self, database: &str, sql: &str) -> Result<bool, Failure> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([&self.url(database), "-qAtc", sql])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(psql.status()?.success())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-INT", &self.process.id().to_string()])
            .status();
        let _ = self.process.wait();
    }
}

/// The database's programs refuse root.
fn unprivileged(program: &Path) -> Command {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.starts_with(b"0"));
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"])
        .arg(program);
    command
}
