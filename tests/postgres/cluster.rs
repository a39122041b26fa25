//! A private PostgreSQL server in a temporary directory, reached through a Unix socket.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use agentcfg_postgres::{PostgresOptions, PostgresStore, Statements};
use agentcfg_tests::harness::{end_with_run, free_address, of_run, process_name, until};
use tempfile::TempDir;

/// The timeout of every expected event of the server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of the server that tests share. It does not sync to disk.
const SHARED_SETTINGS: &[&str] = &["fsync=off", "full_page_writes=off", "max_connections=500"];

/// The directory of `initdb` and `postgres`; `None`, with a message, if there is none.
pub fn binaries() -> Option<PathBuf> {
    let named = std::env::var_os("AGENTCFG_TEST_PG_BIN").map(PathBuf::from);
    let mut places: Vec<PathBuf> = named.into_iter().collect();
    for parent in ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt"] {
        let versions = fs::read_dir(parent).into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
        versions.sort();
        places.extend(versions.into_iter().rev());
    }
    let found = places.into_iter().find(|place| place.join("initdb").exists());
    if found.is_none() {
        missing("PostgreSQL", "apt-get install postgresql");
    }
    found
}

/// Reports that a test cannot run; panics where all tests must run (`CI=true`).
pub fn missing(what: &str, remedy: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{what} is missing, and CI=true allows no gaps: {remedy}"
    );
    eprintln!("NOT RUN: {what} is missing ({remedy})");
}

/// A command that runs as an unprivileged user: PostgreSQL's programs refuse root.
pub fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user(), "--regid", user_group(), "--clear-groups", "--"]);
    command.arg(program);
    command
}

fn user() -> &'static str {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    if passwd.lines().any(|line| line.starts_with("postgres:")) {
        "postgres"
    } else {
        "nobody"
    }
}

fn user_group() -> &'static str {
    if user() == "postgres" { "postgres" } else { "nogroup" }
}

/// Makes the user of [`unprivileged`] the owner of a path.
pub fn hand_over(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let owner = format!("{}:{}", user(), user_group());
        let status = Command::new("chown").arg("-R").arg(owner).arg(path).status().unwrap();
        assert!(status.success());
    }
}

/// A directory that the database's user owns and every user may enter.
pub fn directory() -> TempDir {
    let place = tempfile::Builder::new()
        .prefix("agentcfg-pg-")
        .tempdir_in("/tmp")
        .unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    hand_over(place.path());
    place
}

/// A server, running or stopped by its test.
pub struct Cluster {
    place: PathBuf,
    /// Removes `place`; a server that all tests of a run share has none, and is not `running` here.
    _guard: Option<TempDir>,
    binaries: PathBuf,
    port: u16,
    settings: Vec<String>,
    running: Mutex<Option<Running>>,
    schemas: AtomicU32,
}

struct Running {
    /// A shell that stops the server when its standard input ends, which includes the death of the test process.
    shell: Child,
    log: Receiver<String>,
}

impl Cluster {
    /// A running server, shared by tests that do not restart it.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::of_run().or_else(|| Self::start(SHARED_SETTINGS))?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// The running server of all tests of this run of nextest.
    fn of_run() -> Option<Self> {
        // Only the clients of its socket reach it, so it needs no port that is free.
        const PORT: u16 = 5432;
        let at = |place: PathBuf| Some(Self::at(place, None, PORT, binaries()?, SHARED_SETTINGS));
        let place = of_run(Path::new("/tmp"), "postgres", |place| {
            let Some(cluster) = at(place.to_owned()) else { return };
            cluster.init();
            end_with_run(&cluster.server(), place);
            until("the server answers", || cluster.try_sql("SELECT"));
        });
        at(place?)
    }

    /// Starts a new server for one test.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let cluster = Self::of_test(directory(), binaries()?, settings);
        cluster.init();
        cluster.up();
        Some(cluster)
    }

    /// A server for one test, not started yet.
    fn of_test(place: TempDir, binaries: PathBuf, settings: &[&str]) -> Self {
        let port = free_address().port();
        Self::at(place.path().to_owned(), Some(place), port, binaries, settings)
    }

    fn at(place: PathBuf, guard: Option<TempDir>, port: u16, binaries: PathBuf, settings: &[&str]) -> Self {
        Self {
            place,
            _guard: guard,
            binaries,
            port,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            running: Mutex::new(None),
            schemas: AtomicU32::new(0),
        }
    }

    /// A running standby of this server.
    pub fn standby(&self, settings: &[&str]) -> Self {
        let place = directory();
        let output = unprivileged(&self.binary("pg_basebackup"))
            .args(["-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-h"])
            .arg(self.socket())
            .arg("-p")
            .arg(self.port.to_string())
            .arg("-D")
            .arg(place.path().join("data"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let standby = Self::of_test(place, self.binaries.clone(), settings);
        standby.up();
        standby
    }

    /// Makes the data directory.
    fn init(&self) {
        hand_over(&self.place);
        let output = unprivileged(&self.binary("initdb"))
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "--no-sync",
                "-D",
            ])
            .arg(self.data())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// The directory of the socket.
    pub fn socket(&self) -> &Path {
        &self.place
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's address as URLs need it: the directory of the socket and the port.
    pub fn host(&self) -> String {
        format!(
            "{}:{}",
            self.socket().display().to_string().replace('/', "%2F"),
            self.port
        )
    }

    /// The URL of the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.host())
    }

    /// Creates a database for one test and returns its URL.
    pub fn database(&self) -> String {
        let name = self.schema();
        self.sql(&format!("CREATE DATABASE {name}"));
        format!("postgres://postgres@{}/{name}", self.host())
    }

    /// A schema name that is unique among all tests.
    pub fn schema(&self) -> String {
        format!(
            "test_{}_{}",
            process_name(),
            self.schemas.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// A new store, in a schema of its own.
    pub async fn store(&self) -> PostgresStore {
        self.store_with(Statements::Prepared).await
    }

    /// As [`Self::store`], with this kind of statements.
    pub async fn store_with(&self, statements: Statements) -> PostgresStore {
        let options = self.options().statements(statements);
        PostgresStore::connect(&options).await.unwrap()
    }

    /// The options of a store in a schema of its own.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions::new(self.url()).schema(self.schema()).pool_size(8)
    }

    /// The command of the server.
    fn server(&self) -> Command {
        let mut command = unprivileged(&self.binary("postgres"));
        command.arg("-D").arg(self.data()).arg("-k").arg(self.socket());
        command.arg("-p").arg(self.port.to_string());
        for setting in self.settings.iter().map(String::as_str).chain(["listen_addresses="]) {
            // The first value of a setting takes precedence here, but the last one on PostgreSQL's command line.
            let name = setting.split_once('=').map_or(setting, |(name, _)| name);
            if setting == "listen_addresses=" && self.settings.iter().any(|own| own.starts_with(name)) {
                continue;
            }
            command.arg("-c").arg(setting);
        }
        command
    }

    /// Starts the server and waits until it accepts clients.
    pub fn up(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let script = "\"$@\" & server=$!; cat > /dev/null; kill -INT $server; wait $server";
        let server = self.server();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh"]);
        command.arg(server.get_program()).args(server.get_args());
        command
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let stderr = shell.stderr.take().unwrap();
        let (lines, log) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if std::env::var_os("AGENTCFG_TEST_PG_LOG").is_some() {
                    eprintln!("{line}");
                }
                // The test may have dropped the receiver.
                let _ = lines.send(line);
            }
        });
        let started = Running { shell, log };
        started.wait_for("ready to accept");
        *running = Some(started);
    }

    /// Stops the server like a crash (immediate shutdown): nothing is flushed, and the next start has to recover.
    pub fn crash(&self) {
        self.stop("QUIT");
    }

    /// Stops the server in order: clients are disconnected, and everything is flushed.
    pub fn shut_down(&self) {
        self.stop("INT");
    }

    fn stop(&self, signal: &str) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut running) = running else { return };
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(pid) = pid.lines().next() {
            let _ = Command::new("kill").arg(format!("-{signal}")).arg(pid).status();
        }
        drop(running.shell.stdin.take());
        let _ = running.shell.wait();
    }

    /// Waits for a line in the server's log.
    pub fn wait_for(&self, text: &str) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().expect("a running server").wait_for(text);
    }

    /// The lines of the server's log until now, after those of the last call.
    pub fn log(&self) -> Vec<String> {
        // The log has the mark in its own line and in that of the statement, so each call needs another one.
        let mark = format!("<{}>", self.schema());
        self.sql(&format!("DO $$ BEGIN RAISE LOG '{mark}'; END $$"));
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().expect("a running server").until(&mark)
    }

    /// Runs SQL and returns its output, one line for each row.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in("postgres", sql)
    }

    /// As [`Self::sql`], in this database.
    pub fn sql_in(&self, database: &str, sql: &str) -> String {
        self.run(database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// As [`Self::sql`]; `None` when that fails, such as while the server is down.
    pub fn try_sql(&self, sql: &str) -> Option<String> {
        self.run("postgres", sql).ok()
    }

    fn run(&self, database: &str, sql: &str) -> Result<String, String> {
        let output = Command::new(self.binaries.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "postgres",
                "-d",
                database,
                "-h",
            ])
            .arg(self.socket())
            .arg("-p")
            .arg(self.port.to_string())
            .args(["-c", sql])
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    pub fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name)
    }
}

impl Running {
    fn wait_for(&self, text: &str) {
        self.until(text);
    }

    /// Waits for a line with this text, and returns those before it.
    fn until(&self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.log.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(text) => return seen,
                Ok(line) => seen.push(line),
                Err(error) => panic!("{text:?} is not in the server's log ({error}):\n{}", seen.join("\n")),
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shut_down();
    }
}
