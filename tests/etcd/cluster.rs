//! A private etcd cluster of three members in a temporary directory.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_tests::harness::{dies_with_parent, end_with_run, free_address, not_run, of_run, process_name, spawn};

/// The timeout of every expected event of the cluster.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The settings that the documentation names.
pub const LIMITS: [&str; 4] = [
    "--max-txn-ops=10000",
    "--max-request-bytes=10485760",
    "--auto-compaction-retention=10m",
    "--quota-backend-bytes=8589934592",
];

/// Members, each running, stopped or killed by its test.
pub struct Cluster {
    place: PathBuf,
    /// Removes `place`; a cluster that all tests of a run share has none, and its members are not `running` here.
    _guard: Option<TempDir>,
    members: Vec<Member>,
    settings: Vec<String>,
    initial: String,
    /// How clients reach the members, and what `etcdctl` needs for it.
    scheme: &'static str,
    credentials: Mutex<Vec<String>>,
    stores: AtomicU32,
}

struct Member {
    name: String,
    /// The port that members call each other on, where it is told to the others, and the one for clients.
    peer: u16,
    advertised: u16,
    client: u16,
    running: Mutex<Option<Child>>,
}

/// The ports of a member that other members use: the one that it listens on, and the one that it tells them.
#[derive(Debug, Clone, Copy)]
pub struct PeerPorts {
    pub listen: u16,
    pub advertised: u16,
}

impl PeerPorts {
    fn free() -> Self {
        let listen = free_address().port();
        Self {
            listen,
            advertised: listen,
        }
    }
}

impl Cluster {
    /// A running cluster, shared by tests that do not disturb it; `None`, with a message, without the program.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::of_run().or_else(|| Self::start(&[]))?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// The running cluster of all tests of this run of nextest.
    fn of_run() -> Option<Self> {
        program()?;
        let place = of_run(&memory(), "etcd", |place| {
            let ports: Vec<_> = (0..3).map(|_| (free_address().port(), free_address().port())).collect();
            fs::write(place.join("ports"), serde_json::to_vec(&ports).unwrap()).unwrap();
            let cluster = Self::at_ports(place.to_owned(), &ports);
            for member in 0..3 {
                end_with_run(&cluster.member(member), place);
            }
            cluster.wait_until_ready();
        })?;
        let ports: Vec<_> = serde_json::from_slice(&fs::read(place.join("ports")).unwrap()).unwrap();
        Some(Self::at_ports(place, &ports))
    }

    /// A cluster with these ports for its peers and its clients.
    fn at_ports(place: PathBuf, ports: &[(u16, u16)]) -> Self {
        let peers = ports.iter().map(|&(listen, _)| PeerPorts {
            listen,
            advertised: listen,
        });
        let ports = peers.zip(ports.iter().map(|&(_, client)| client));
        Self::at(place, None, ports, &LIMITS)
    }

    /// Starts a new cluster for one test, with more settings.
    #[track_caller]
    pub fn start(settings: &[&str]) -> Option<Self> {
        Self::of(3, &[&LIMITS, settings].concat())
    }

    /// Starts a cluster of so many members with these settings alone.
    #[track_caller]
    pub fn of(members: usize, settings: &[&str]) -> Option<Self> {
        let cluster = Self::new((0..members).map(|_| PeerPorts::free()), settings)?;
        cluster.up();
        Some(cluster)
    }

    /// A cluster that is not started yet, whose members reach each other on these ports.
    #[track_caller]
    pub fn prepared(ports: &[PeerPorts]) -> Option<Self> {
        Self::new(ports.iter().copied(), &LIMITS)
    }

    /// Starts a cluster that its clients reach by TLS, with more settings. `credentials` are options of `etcdctl`.
    #[track_caller]
    pub fn with_tls(settings: &[&str], credentials: &[&str]) -> Option<Self> {
        let mut cluster = Self::new((0..3).map(|_| PeerPorts::free()), &[&LIMITS, settings].concat())?;
        cluster.scheme = "https";
        cluster.use_credentials(credentials);
        cluster.up();
        Some(cluster)
    }

    /// The options of `etcdctl` from now on.
    pub fn use_credentials(&self, credentials: &[&str]) {
        let credentials = credentials.iter().map(|&option| option.to_owned()).collect();
        *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = credentials;
    }

    #[track_caller]
    fn new(ports: impl Iterator<Item = PeerPorts>, settings: &[&str]) -> Option<Self> {
        if program().is_none() {
            not_run("etcd is missing (apt-get install etcd-server)");
            return None;
        }
        let place = tempfile::Builder::new()
            .prefix("agentcfg-etcd-")
            .tempdir_in(memory())
            .unwrap();
        let ports = ports.map(|peer| (peer, free_address().port()));
        Some(Self::at(place.path().to_owned(), Some(place), ports, settings))
    }

    fn at(
        place: PathBuf,
        guard: Option<TempDir>,
        ports: impl Iterator<Item = (PeerPorts, u16)>,
        settings: &[&str],
    ) -> Self {
        let members: Vec<Member> = ports
            .enumerate()
            .map(|(number, (peer, client))| Member {
                name: format!("m{number}"),
                peer: peer.listen,
                advertised: peer.advertised,
                client,
                running: Mutex::default(),
            })
            .collect();
        let peers = members
            .iter()
            .map(|member| format!("{}=http://127.0.0.1:{}", member.name, member.advertised));
        Self {
            place,
            _guard: guard,
            initial: peers.collect::<Vec<_>>().join(","),
            members,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            scheme: "http",
            credentials: Mutex::default(),
            stores: AtomicU32::new(0),
        }
    }

    /// Starts all members, and waits until the cluster answers.
    #[track_caller]
    pub fn up(&self) {
        (0..self.members.len()).for_each(|member| self.start_member(member));
        self.wait_until_ready();
    }

    /// Kills all members like a loss of power.
    pub fn shut_down(&self) {
        (0..self.members.len()).for_each(|member| self.kill(member));
    }

    /// Starts a member.
    pub fn start_member(&self, member: usize) {
        let mut command = self.member(member);
        let member = &self.members[member];
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.log(member));
        *member.lock() = Some(spawn(command).unwrap());
    }

    /// The command of a member.
    fn member(&self, member: usize) -> Command {
        let (client, member) = (self.endpoint(member), &self.members[member]);
        let (peer, advertised) = (
            format!("http://127.0.0.1:{}", member.peer),
            format!("http://127.0.0.1:{}", member.advertised),
        );
        let mut command = dies_with_parent(&program().unwrap(), None);
        command
            .args(["--name", &member.name, "--data-dir"])
            .arg(self.place.join(&member.name))
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &advertised,
            ])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--initial-cluster", &self.initial, "--logger=zap", "--log-level=error"])
            .args(&self.settings);
        command
    }

    /// Saves a snapshot; returns its file, which ends with the cluster.
    #[track_caller]
    pub fn save_snapshot(&self) -> PathBuf {
        let file = self.place.join("snapshot");
        let saved = self
            .etcdctl(&self.endpoint(0), &["snapshot", "save"])
            .arg(&file)
            .output();
        assert!(saved.unwrap().status.success());
        file
    }

    /// Replaces the members by a new cluster with the state of a snapshot.
    #[track_caller]
    pub fn restore(&self, snapshot: &Path, cluster_token: &str) {
        self.shut_down();
        for member in &self.members {
            let data = self.place.join(&member.name);
            fs::remove_dir_all(&data).unwrap();
            let mut command = Command::new("etcdctl");
            command
                .env("ETCDCTL_API", "3")
                .args(["snapshot", "restore"])
                .arg(snapshot);
            command.args(["--name", &member.name, "--initial-cluster", &self.initial]);
            let advertised = format!("http://127.0.0.1:{}", member.advertised);
            command.args(["--initial-advertise-peer-urls", &advertised]);
            command
                .args(["--initial-cluster-token", cluster_token, "--data-dir"])
                .arg(&data);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        self.up();
    }

    fn log(&self, member: &Member) -> File {
        let path = self.place.join(format!("{}.log", member.name));
        File::options().create(true).append(true).open(path).unwrap()
    }

    /// Waits until the cluster has a leader and answers.
    #[track_caller]
    pub fn wait_until_ready(&self) {
        let end = Instant::now() + TIMEOUT;
        while !self.try_ctl(&["put", "test/ready", "1"]) {
            assert!(Instant::now() < end, "the cluster is not ready: {}", self.logs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills a member like a crash of its machine.
    pub fn kill(&self, member: usize) {
        if let Some(mut child) = self.members[member].lock().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a signal to a member, such as one that stops it.
    pub fn signal(&self, member: usize, signal: Signal) {
        if let Some(child) = &*self.members[member].lock() {
            kill_process(Pid::from_child(child), signal).unwrap();
        }
    }

    /// The process of a member, while it runs.
    pub fn pid(&self, member: usize) -> Option<u32> {
        self.members[member].lock().as_ref().map(Child::id)
    }

    /// Whether a member answers a read that takes a majority.
    pub fn answers(&self, member: usize) -> bool {
        let output = self.etcdctl(&self.endpoint(member), &["get", "test/ready"]).output();
        output.unwrap().status.success()
    }

    /// The number of the leader.
    pub fn leader(&self) -> Option<usize> {
        let all: Vec<_> = (0..self.members.len()).collect();
        self.leader_among(&all)
    }

    /// The first of these members that takes itself for the leader. One that was cut off does so for a second or two.
    pub fn leader_among(&self, members: &[usize]) -> Option<usize> {
        members.iter().copied().find(|member| {
            let status = self.ctl_of(*member, &["endpoint", "status", "-w", "fields"]);
            let field = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name))?;
                line.rsplit_once(' ').map(|(_, value)| value.to_owned())
            };
            field("\"MemberID\"").is_some_and(|id| field("\"Leader\"") == Some(id))
        })
    }

    /// The revision of the last change.
    #[track_caller]
    pub fn revision(&self) -> u64 {
        let status = self.ctl(&["endpoint", "status", "-w", "fields"]);
        let line = status.lines().find(|line| line.starts_with("\"Revision\"")).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// The addresses of all members, as the setting has them.
    pub fn endpoints(&self) -> String {
        let all: Vec<_> = (0..self.members.len()).map(|member| self.endpoint(member)).collect();
        all.join(",")
    }

    /// The address of a member for clients.
    pub fn endpoint(&self, member: usize) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.members[member].client)
    }

    /// The port of a member for clients.
    pub fn port(&self, member: usize) -> u16 {
        self.members[member].client
    }

    /// A prefix that is unique among all tests.
    pub fn prefix(&self) -> String {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        format!("test-{}-{number}", process_name())
    }

    /// The cluster with a new prefix, as [`agentcfg_tests::harness::database_settings`] reads it.
    pub fn database(&self) -> String {
        format!("{}#{}", self.endpoints(), self.prefix())
    }

    /// The options of a new store.
    pub fn options(&self) -> EtcdOptions {
        EtcdOptions::new(self.endpoints()).prefix(self.prefix())
    }

    /// A new, empty store.
    pub async fn store(&self) -> EtcdStore {
        EtcdStore::connect(&self.options()).await.unwrap()
    }

    /// Runs `etcdctl` and returns its output.
    #[track_caller]
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.etcdctl(&self.endpoints(), arguments).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `etcdctl` with a line of input.
    #[track_caller]
    pub fn ctl_with_input(&self, arguments: &[&str], line: &str) {
        let mut command = self.etcdctl(&self.endpoints(), arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }

    fn try_ctl(&self, arguments: &[&str]) -> bool {
        self.etcdctl(&self.endpoints(), arguments)
            .output()
            .unwrap()
            .status
            .success()
    }

    fn ctl_of(&self, member: usize, arguments: &[&str]) -> String {
        let output = self.etcdctl(&self.endpoint(member), arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn etcdctl(&self, endpoints: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3");
        command.args(["--endpoints", endpoints, "--command-timeout=2s", "--dial-timeout=1s"]);
        command.args(&*self.credentials.lock().unwrap_or_else(PoisonError::into_inner));
        command.args(arguments);
        command
    }

    fn logs(&self) -> String {
        let log = |member: &Member| fs::read_to_string(self.place.join(format!("{}.log", member.name)));
        self.members.iter().filter_map(|member| log(member).ok()).collect()
    }
}

impl Member {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Memory in place of a disk: a test writes more often than a disk can sync.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// The program `etcd`, with `etcdctl` beside it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        std::env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|file| file.is_file())
    };
    find("etcdctl").and_then(|_| find("etcd"))
}
