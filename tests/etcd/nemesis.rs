//! Faults of members, of the network between them, and of the network between servers and members, while random clients
//! work.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use agentcfg_core::model::WorkspaceId;
use agentcfg_core::store::{Key, Kind, Store};
use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_tests::harness::{Dice, free_address, setting};
use rustix::process::Signal;

use crate::cluster::{Cluster, PeerPorts};
use crate::faults::proxy::{ALL, Clients, Proxy, Target};
use crate::faults::{self, Servers, Stage};

const MEMBERS: usize = 3;

const PREFIX: &str = "nemesis";

/// How long the servers may need until all are ready, once a majority of the members answers: `READY_WITHIN` seconds.
/// The test command runs this beside other tests; the full run, which has the machine for itself, sets 5.
fn recovery() -> Duration {
    Duration::from_secs(setting("READY_WITHIN", 20))
}

/// What happens to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// Connections between servers and members are cut at random bytes.
    Cuts,
    /// Connections between members are cut at random bytes.
    PeerCuts,
    /// The leader crashes.
    KilledLeader,
    /// The process of the leader is halted for a time.
    PausedLeader,
    /// No member and no server reaches the leader.
    IsolatedLeader,
    /// No member and no server reaches a follower.
    IsolatedFollower,
    /// No member reaches the leader, though the servers do.
    DeposedLeader,
    /// What the leader sends to the other members does not arrive, and it hears them.
    MutedLeader,
    /// The answers of all members are held, and then lost.
    LostAnswers,
    /// No member reaches another one.
    NoMajority,
    /// A server reaches no member.
    CutOffServer,
    /// A server is killed and another one started.
    KilledServer,
}

/// Three members and three servers. Each member reaches the others through a proxy in front of each, and each server
/// has a proxy of its own in front of each member.
struct Members {
    cluster: Arc<Cluster>,
    /// By the member that they lead to.
    peers: Vec<Proxy>,
    /// By server, then by the member that they lead to.
    clients: Vec<Vec<Proxy>>,
    servers: Servers,
    /// Without any proxy.
    store: EtcdStore,
    /// The longest time from a majority that answers until all servers were ready, by kind of fault.
    recoveries: Mutex<BTreeMap<Fault, Duration>>,
}

impl Members {
    /// `None` where there is no etcd.
    async fn start(dice: &mut Dice) -> Option<Self> {
        let running: Arc<OnceLock<Arc<Cluster>>> = Arc::default();
        let recognise = {
            let running = Arc::clone(&running);
            Arc::new(move |from| member_at(running.get(), from)) as _
        };
        let (mut peers, mut ports) = (Vec::new(), Vec::new());
        for _ in 0..MEMBERS {
            let listen = free_address().port();
            let target = Target::Port(listen);
            let proxy = Proxy::recognising(target, dice.split(0), Some(Arc::clone(&recognise))).await;
            ports.push(PeerPorts {
                listen,
                advertised: proxy.address().port(),
            });
            peers.push(proxy);
        }
        let made = tokio::task::spawn_blocking(move || {
            let cluster = Arc::new(Cluster::prepared(&ports)?);
            // From now on the proxies recognise the members.
            let _ = running.set(Arc::clone(&cluster));
            cluster.up();
            Some(cluster)
        });
        let cluster = made.await.unwrap()?;
        let (mut clients, mut databases) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut own = Vec::new();
            for member in 0..MEMBERS {
                own.push(Proxy::start(Target::Port(cluster.port(member)), dice.split(0)).await);
            }
            let addresses: Vec<_> = own.iter().map(|proxy| format!("http://{}", proxy.address())).collect();
            databases.push(format!("{}#{PREFIX}", addresses.join(",")));
            clients.push(own);
        }
        let options = EtcdOptions::new(cluster.endpoints()).prefix(PREFIX);
        Some(Self {
            store: EtcdStore::connect(&options).await.unwrap(),
            servers: Servers::start(databases).await,
            cluster,
            peers,
            clients,
            recoveries: Mutex::default(),
        })
    }

    /// Waits until one of these members is the leader.
    async fn leader_among(&self, members: &[usize]) -> usize {
        for _ in 0..300 {
            let (cluster, members) = (Arc::clone(&self.cluster), members.to_vec());
            if let Some(leader) = blocking(move || cluster.leader_among(&members)).await {
                return leader;
            }
        }
        panic!("no leader among {members:?}");
    }

    /// No other member reaches this one, and it reaches no other.
    fn isolate(&self, member: usize) {
        for (to, proxy) in self.peers.iter().enumerate() {
            proxy.hold(if to == member { ALL } else { bit(member) });
        }
    }

    /// What this member sends to the others does not arrive.
    fn mute(&self, member: usize) {
        for (to, proxy) in self.peers.iter().enumerate() {
            match to == member {
                true => proxy.hold_answers(ALL),
                false => proxy.hold_requests(bit(member)),
            }
        }
    }

    fn to_member(&self, member: usize) -> impl Iterator<Item = &Proxy> {
        self.clients.iter().map(move |own| &own[member])
    }

    fn all(&self) -> impl Iterator<Item = &Proxy> {
        self.peers.iter().chain(self.clients.iter().flatten())
    }

    /// Ends what holds connections: in some cases they go on where they were, in others they never pass anything again.
    fn heal(&self, dice: &mut Dice) {
        let abandons = dice.once_in(2);
        for proxy in self.all() {
            if abandons {
                proxy.abandon();
            }
            proxy.heal();
        }
    }

    /// Waits until all servers are ready after a fault that a majority of the members survives or that has ended. The
    /// time counts from the moment that the cluster answers, without any server and proxy in between.
    async fn until_ready(&self, fault: Fault, whole: &[usize]) {
        let begun = Instant::now();
        let (cluster, members) = (Arc::clone(&self.cluster), whole.to_vec());
        let answers = blocking(move || {
            while !members.iter().any(|member| cluster.answers(*member)) {
                assert!(begun.elapsed() < Duration::from_secs(60), "the cluster does not answer");
            }
            Instant::now()
        });
        let ready = async {
            for api in self.servers.apis("") {
                while api.get("/readyz").await.status != 200 {
                    assert!(begun.elapsed() < Duration::from_secs(90), "a server is not ready");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Instant::now()
        };
        let (answered, ready) = tokio::join!(answers, ready);
        let took = ready.saturating_duration_since(answered);
        println!(
            "{fault:?}: the cluster answers after {:?}, all servers are ready after {:?}",
            answered - begun,
            ready - begun
        );
        let mut recoveries = self.recoveries.lock().unwrap();
        let longest = recoveries.entry(fault).or_default();
        *longest = took.max(*longest);
    }
}

impl Stage for Members {
    type Fault = Fault;

    const FAULTS: &'static [Fault] = &[
        Fault::Cuts,
        Fault::IsolatedLeader,
        Fault::LostAnswers,
        Fault::KilledServer,
        Fault::DeposedLeader,
        Fault::NoMajority,
        Fault::KilledLeader,
        Fault::PausedLeader,
        Fault::IsolatedFollower,
        Fault::MutedLeader,
        Fault::CutOffServer,
        Fault::PeerCuts,
    ];

    // The servers find the outcome of each transaction out.
    const LEAVES_UNKNOWN: bool = false;

    fn servers(&self) -> &Servers {
        &self.servers
    }

    async fn strike(&mut self, fault: Fault, dice: &mut Dice, changed: impl Fn(&Servers)) {
        let all: Vec<_> = (0..MEMBERS).collect();
        let leader = self.leader_among(&all).await;
        let others: Vec<_> = (0..MEMBERS).filter(|member| *member != leader).collect();
        let pause = Duration::from_millis(200) + dice.millis(4000);
        match fault {
            Fault::Cuts | Fault::PeerCuts => {
                for _ in 0..8 {
                    match fault {
                        Fault::Cuts => self.clients.iter().flatten().for_each(Proxy::cut),
                        _ => self.peers.iter().for_each(Proxy::cut),
                    }
                    tokio::time::sleep(Duration::from_millis(50) + dice.millis(200)).await;
                }
            }
            Fault::KilledLeader => {
                self.cluster.kill(leader);
                self.until_ready(fault, &others).await;
                self.leader_among(&others).await;
                self.cluster.start_member(leader);
            }
            Fault::PausedLeader => {
                self.cluster.signal(leader, Signal::STOP);
                tokio::time::sleep(pause).await;
                self.cluster.signal(leader, Signal::CONT);
            }
            Fault::IsolatedLeader => {
                self.isolate(leader);
                self.to_member(leader).for_each(|proxy| proxy.hold(ALL));
                self.until_ready(fault, &others).await;
                self.leader_among(&others).await;
                tokio::time::sleep(pause).await;
            }
            Fault::IsolatedFollower => {
                let follower = others[dice.below(others.len())];
                self.isolate(follower);
                self.to_member(follower).for_each(|proxy| proxy.hold(ALL));
                self.until_ready(fault, &[leader]).await;
                tokio::time::sleep(pause).await;
            }
            Fault::DeposedLeader => {
                self.isolate(leader);
                self.until_ready(fault, &others).await;
                self.leader_among(&others).await;
                tokio::time::sleep(pause).await;
            }
            Fault::MutedLeader => {
                self.mute(leader);
                self.until_ready(fault, &others).await;
                self.leader_among(&others).await;
                tokio::time::sleep(pause).await;
            }
            Fault::LostAnswers => {
                for _ in 0..4 {
                    self.clients.iter().flatten().for_each(|proxy| proxy.hold_answers(ALL));
                    tokio::time::sleep(Duration::from_millis(20) + dice.millis(600)).await;
                    for proxy in self.clients.iter().flatten() {
                        proxy.end_held();
                        proxy.heal();
                    }
                    tokio::time::sleep(dice.millis(100)).await;
                }
            }
            Fault::NoMajority => {
                all.iter().for_each(|member| self.isolate(*member));
                tokio::time::sleep(pause).await;
            }
            Fault::CutOffServer => {
                let server = dice.below(3);
                self.clients[server].iter().for_each(|proxy| proxy.hold(ALL));
                tokio::time::sleep(pause).await;
            }
            Fault::KilledServer => self.servers.replace(dice, changed).await,
        }
        self.heal(dice);
        self.until_ready(fault, &all).await;
        // The next fault finds all members.
        let cluster = Arc::clone(&self.cluster);
        blocking(move || {
            let end = Instant::now() + Duration::from_secs(60);
            while !all.iter().all(|member| cluster.answers(*member)) {
                assert!(Instant::now() < end, "a member does not come back");
            }
        })
        .await;
    }

    async fn until_quiet(&self) {
        // A member executes what it got before this read, or never: the clients have their answers, so that no server
        // sends anything more.
        let cluster = Arc::clone(&self.cluster);
        blocking(move || (0..MEMBERS).for_each(|member| assert!(cluster.answers(member)))).await;
    }

    async fn counted(&self, workspace: &str) -> (u64, u64) {
        let workspace: WorkspaceId = workspace.parse().unwrap();
        let counter = Key::in_workspace(workspace, Kind::Counter, "active_agents");
        let found = self.store.get(&[counter, Key::log_head(workspace)]).await.unwrap();
        let number = |at: usize| match &found[at] {
            Some(record) => String::from_utf8_lossy(&record.value).parse().unwrap(),
            None => 0,
        };
        (number(0), number(1))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn bit(member: usize) -> Clients {
    1 << member
}

/// The member whose process has a connection from this address.
fn member_at(cluster: Option<&Arc<Cluster>>, from: SocketAddr) -> Option<Clients> {
    let cluster = cluster?;
    let socket = socket_at(from)?;
    let holds = |member: usize| {
        let files = fs::read_dir(format!("/proc/{}/fd", cluster.pid(member)?)).ok()?;
        let mut links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        links.find(|link| *link == socket)
    };
    (0..MEMBERS).find(|member| holds(*member).is_some()).map(bit)
}

/// The name of the socket at this end of a connection.
fn socket_at(address: SocketAddr) -> Option<PathBuf> {
    // The kernel writes addresses as numbers in the order of the machine's bytes.
    let SocketAddr::V4(address) = address else { return None };
    let local = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(address.ip().octets()),
        address.port()
    );
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let row = table
        .lines()
        .find(|row| row.split_whitespace().nth(1) == Some(&local))?;
    Some(format!("socket:[{}]", row.split_whitespace().nth(9)?).into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_see_one_history_through_faults() {
    let seed = setting("SEED", 1);
    let mut dice = Dice::new(seed);
    let Some(mut members) = Members::start(&mut dice).await else {
        return;
    };
    faults::run(&mut members, seed, dice).await;
    let recoveries = members.recoveries.lock().unwrap();
    println!("FIGURES SEED={seed}: ready after a majority, at the latest {recoveries:.1?}");
    assert!(recoveries.values().all(|took| *took < recovery()), "{recoveries:?}");
}
