//! A PostgreSQL server for one benchmark.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// A PostgreSQL server with its default durability, in a temporary directory.
pub struct Cluster {
    _directory: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    process: Child,
}

impl Cluster {
    /// Starts a server.
    pub fn start() -> Result<Self, Failure> {
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
            _directory: directory,
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

    /// The URL of a database on the server.
    pub fn url(&self, database: &str) -> String {
        self.url_over(database, self.port)
    }

    /// The URL of a database by another port that leads to the server.
    pub fn url_over(&self, database: &str, port: u16) -> String {
        format!("postgres://bench@127.0.0.1:{port}/{database}")
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates a database.
    pub fn create(&self, database: &str) -> Result<(), Failure> {
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

/// A command that runs as an unprivileged user: PostgreSQL's programs refuse root.
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
