//! The release binary of the server, set up as users do it: through its command line and its API.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::process::Server;
use crate::request::{self, field, send};

/// Shared, so that all servers of a benchmark accept each other's session tokens.
const SESSION_SECRET: &str = "a secret for the tokens of a benchmark";
/// Several keys, because a benchmark sends more than the million requests a minute that one key may be allowed.
const KEYS: usize = 32;

/// The setting of a server on PostgreSQL.
pub const DATABASE_URL: &str = "AGENTCFG_DATABASE_URL";
/// The setting of a server on etcd.
pub const ETCD_ENDPOINTS: &str = "AGENTCFG_ETCD_ENDPOINTS";

/// The release binary of the server.
pub struct Product {
    binary: PathBuf,
    token: String,
}

/// A workspace and its API keys.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its identifier.
    pub id: String,
    /// The plaintexts of its keys.
    pub keys: Vec<String>,
}

impl Product {
    /// Builds the binary, or takes the one that `BINARY` names.
    pub fn build() -> Result<Self, Failure> {
        match std::env::var_os("BINARY") {
            Some(binary) => Self::of(PathBuf::from(binary)),
            None => Self::of(crate::cargo::build(&["-p", "agentcfg-server"])?),
        }
    }

    /// A binary that exists, such as that of another version.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn of(binary: PathBuf) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let output = command(&binary)
            .args(["token", "--user", "bench", "--data"])
            .arg(data.path())
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let token = String::from_utf8(output.stdout)?.trim().to_owned();
        Ok(Self { binary, token })
    }

    /// Starts a server on a data directory.
    pub fn serve(&self, data: &Path) -> std::io::Result<Server> {
        Server::start(self.command().arg("--data").arg(data))
    }

    /// As [`Self::serve`], with a setting from the environment.
    ///
    /// # Errors
    ///
    /// If the server does not start.
    pub fn serve_with(&self, data: &Path, setting: &str, value: &str) -> std::io::Result<Server> {
        Server::start(self.command().arg("--data").arg(data).env(setting, value))
    }

    /// Starts a server on a database, which several servers may share.
    pub fn serve_database(&self, url: &str) -> std::io::Result<Server> {
        Server::start(self.command().env(DATABASE_URL, url))
    }

    /// Starts a server on an etcd cluster, which several servers may share.
    ///
    /// # Errors
    ///
    /// If the server does not start.
    pub fn serve_etcd(&self, endpoints: &str) -> std::io::Result<Server> {
        Server::start(self.command().env(ETCD_ENDPOINTS, endpoints))
    }

    /// Copies the store of a data directory to the database or the cluster that this setting of the environment names.
    ///
    /// # Errors
    ///
    /// If the copy fails.
    pub fn migrate(&self, data: &Path, store: &str, setting: &str, value: &str) -> Result<(), Failure> {
        let mut migrate = command(&self.binary);
        migrate.args(["migrate", "--to", store, "--from"]).arg(data);
        let output = migrate.env(setting, value).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
        }
    }

    /// Starts a server on a store that was [migrated](Self::migrate) from a data directory, with the master key of
    /// that.
    ///
    /// # Errors
    ///
    /// If the server does not start.
    pub fn serve_migrated(&self, data: &Path, setting: &str, value: &str) -> std::io::Result<Server> {
        let file = std::fs::read_to_string(data.join("master.key"))?;
        let key = file.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        Server::start(self.command().env("AGENTCFG_MASTER_KEYS", key).env(setting, value))
    }

    /// Sends one request with the session token that owns the workspaces; returns the whole response.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub fn send(&self, address: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        send(address, method, path, &self.token, body)
    }

    /// Creates a workspace with keys of scope `write`.
    pub fn workspace(&self, address: SocketAddr) -> Result<Workspace, Failure> {
        let made = send(address, "POST", "/api/workspaces", &self.token, r#"{"name":"bench"}"#)?;
        let id = field(&made, "id").ok_or(made)?;
        let keys = (0..KEYS).map(|_| self.key(address, &id)).collect::<Result<_, _>>()?;
        Ok(Workspace { id, keys })
    }

    /// Creates a workspace with one key of scope `write`.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn small_workspace(&self, address: SocketAddr) -> Result<Workspace, Failure> {
        let made = send(address, "POST", "/api/workspaces", &self.token, r#"{"name":"bench"}"#)?;
        let id = field(&made, "id").ok_or(made)?;
        let keys = vec![self.key(address, &id)?];
        Ok(Workspace { id, keys })
    }

    /// Creates one more key of a workspace.
    pub fn key(&self, address: SocketAddr, workspace: &str) -> Result<String, Failure> {
        self.key_of_scope(address, workspace, "write")
    }

    /// As [`Self::key`], with the scope `admin`.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn admin_key(&self, address: SocketAddr, workspace: &str) -> Result<String, Failure> {
        self.key_of_scope(address, workspace, "admin")
    }

    fn key_of_scope(&self, address: SocketAddr, workspace: &str, scope: &str) -> Result<String, Failure> {
        let body = format!(
            r#"{{"workspace_id":"{workspace}","name":"bench","environment":"production","scope":"{scope}","rate_limit":1000000}}"#
        );
        let made = send(address, "POST", "/api/api-keys", &self.token, &body)?;
        Ok(field(&made, "key").ok_or(made)?)
    }

    fn command(&self) -> Command {
        let mut command = command(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command
    }
}

impl Workspace {
    /// Creates this many agents, and checks that the list returns them together with the rate-limit headers,
    /// so that the benchmark measures the intended work.
    pub fn seed(&self, address: SocketAddr, agents: usize) -> Result<(), Failure> {
        for i in 0..agents {
            let body = request::agent(&self.id, &format!("seed-{i}"));
            let answer = send(address, "POST", "/api/agents/configs", &self.keys[0], &body)?;
            if !answer.contains(" 201 ") {
                return Err(answer.into());
            }
        }
        let answer = send(address, "GET", &request::list_path(&self.id), &self.keys[0], "")?;
        let listed = request::body(&answer).and_then(|body| body.as_array().map(Vec::len));
        let head = answer.to_ascii_lowercase();
        let is_counted =
            ["limit", "remaining", "reset"].map(|figure| head.contains(&format!("\r\nx-ratelimit-{figure}: ")));
        if listed == Some(agents) && is_counted == [true; 3] {
            Ok(())
        } else {
            Err(format!("not the list of {agents} agents: {answer}").into())
        }
    }

    /// The list request, once with each key.
    pub fn lists(&self) -> Vec<Vec<u8>> {
        let lists = self.keys.iter().map(|key| request::list(&self.id, key).into_bytes());
        lists.collect()
    }
}

fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env("AGENTCFG_SESSION_SECRET", SESSION_SECRET)
        .env("AGENTCFG_DEFAULT_PLAN", "enterprise")
        .env("AGENTCFG_LOG", "error");
    command
}
