//! Faults of a primary with a synchronous standby, while random clients work.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use agentcfg_tests::harness::{Dice, setting};

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;
use crate::faults::proxy::Proxy;
use crate::faults::{self, Servers, Stage};

const DATABASE: &str = "shared";

/// The databases survive crashes of their processes alone, so that nothing needs to be synced.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "synchronous_standby_names=*",
    "hot_standby=on",
    "max_connections=200",
];

/// What happens to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The primary crashes and is started again.
    Crash,
    /// A process of the primary is killed, after which the primary recovers by itself.
    KilledBackend,
    /// All processes of the primary are halted for a time.
    Pause,
    /// Connections to the primary are cut at random bytes.
    Cuts,
    /// The synchronous standby is away for a time, so that no commit ends.
    NoStandby,
    /// The primary is gone, and the standby is promoted.
    Failover,
    /// A server is killed and another one started.
    KilledServer,
}

struct Databases {
    primary: Cluster,
    standby: Cluster,
    /// In the order of the servers' URL.
    proxies: [Proxy; 2],
    /// Which proxy leads to the primary.
    leading: usize,
    servers: Servers,
}

impl Databases {
    /// Three servers on a primary with a synchronous standby; `None` where there is no PostgreSQL.
    async fn start(dice: &mut Dice) -> Option<Self> {
        let primary = Cluster::start(SETTINGS)?;
        let standby = primary.standby(SETTINGS);
        primary.sql(&format!("CREATE DATABASE {DATABASE}"));
        let proxies = [
            Proxy::start(&*socket(&primary), dice.split(0)).await,
            Proxy::start(&*socket(&standby), dice.split(0)).await,
        ];
        let [one, two] = [proxies[0].address(), proxies[1].address()];
        let url = format!("postgres://postgres@{one},{two}/{DATABASE}?target_session_attrs=read-write");
        Some(Self {
            primary,
            standby,
            proxies,
            leading: 0,
            servers: Servers::start(vec![url; 3]).await,
        })
    }

    fn fail_over(&mut self) {
        self.primary.crash();
        self.standby.sql("SELECT pg_promote()");
        let next = self.standby.standby(SETTINGS);
        self.proxies[self.leading].point_to(&*socket(&next));
        self.leading = 1 - self.leading;
        // The old primary is removed with its files.
        self.primary = std::mem::replace(&mut self.standby, next);
    }

    /// Waits until a database accepts clients.
    async fn answers(&self, cluster: &Cluster) {
        for _ in 0..600 {
            if cluster.try_sql("SELECT 1").is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the database does not come back");
    }

    /// Waits until the standby has everything that clients may have seen, so that it may be promoted.
    async fn until_synchronous(&self) {
        self.answers(&self.primary).await;
        let position = self.primary.sql("SELECT pg_current_wal_lsn()");
        let query =
            format!("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= '{position}'");
        for _ in 0..600 {
            if self.primary.try_sql(&query).as_deref() == Some("1") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the standby does not come back");
    }
}

impl Stage for Databases {
    type Fault = Fault;

    const FAULTS: &'static [Fault] = &[
        Fault::Cuts,
        Fault::Crash,
        Fault::Failover,
        Fault::KilledServer,
        Fault::Pause,
        Fault::KilledBackend,
        Fault::NoStandby,
    ];

    const LEAVES_UNKNOWN: bool = true;

    fn servers(&self) -> &Servers {
        &self.servers
    }

    async fn strike(&mut self, fault: Fault, dice: &mut Dice, changed: impl Fn(&Servers)) {
        match fault {
            Fault::Crash => {
                self.primary.crash();
                tokio::time::sleep(dice.millis(500)).await;
                self.primary.up();
            }
            Fault::KilledBackend => {
                let backends = processes(&self.primary);
                // The first one is the server itself.
                let one = backends[1 + dice.below(backends.len() - 1)];
                send(&[one], Signal::KILL);
                self.answers(&self.primary).await;
            }
            Fault::Pause => {
                let all = processes(&self.primary);
                send(&all, Signal::STOP);
                tokio::time::sleep(Duration::from_millis(100) + dice.millis(2000)).await;
                send(&all, Signal::CONT);
            }
            Fault::Cuts => {
                for _ in 0..8 {
                    self.proxies[self.leading].cut();
                    tokio::time::sleep(Duration::from_millis(50) + dice.millis(200)).await;
                }
                self.proxies[self.leading].heal();
            }
            Fault::NoStandby => {
                self.standby.crash();
                tokio::time::sleep(dice.millis(1500)).await;
                self.standby.up();
            }
            Fault::Failover => self.fail_over(),
            Fault::KilledServer => self.servers.replace(dice, changed).await,
        }
        self.until_synchronous().await;
    }

    async fn until_quiet(&self) {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                     AND state <> 'idle' AND pid <> pg_backend_pid()";
        for _ in 0..600 {
            if self.primary.try_sql(query).as_deref() == Some("0") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "a transaction does not end: {}",
            self.primary.sql("SELECT state, query FROM pg_stat_activity")
        );
    }

    async fn counted(&self, workspace: &str) -> (u64, u64) {
        let count = |table: &str, condition: &str| {
            let query = format!("SELECT value FROM agentcfg.{table} WHERE workspace_id = '{workspace}' {condition}");
            let number = self.primary.sql_in(DATABASE, &query);
            number.parse().unwrap_or_else(|_| panic!("{query}: {number:?}"))
        };
        (count("counters", "AND name = 'active_agents'"), count("log_heads", ""))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_see_one_history_through_faults() {
    let seed = setting("SEED", 1);
    let mut dice = Dice::new(seed);
    let Some(mut databases) = Databases::start(&mut dice).await else {
        return;
    };
    faults::run(&mut databases, seed, dice).await;
}

fn socket(cluster: &Cluster) -> PathBuf {
    cluster.socket().join(format!(".s.PGSQL.{}", cluster.port()))
}

/// Sends a signal to processes, of which some may have ended.
pub fn send(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = kill_process(*process, signal);
    }
}

/// The server process of a database, and its children.
pub fn processes(cluster: &Cluster) -> Vec<Pid> {
    let file = fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap();
    let server = file
        .lines()
        .next()
        .and_then(|line| line.trim().parse::<i32>().ok())
        .unwrap();
    let mut all = vec![server];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // The fields after the name, which is in parentheses and may hold anything: the state, and the parent.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
        if parent == Some(server) {
            all.push(pid);
        }
    }
    all.into_iter().filter_map(Pid::from_raw).collect()
}
