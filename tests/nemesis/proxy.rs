//! A proxy in front of a database that cuts connections at random bytes, or lets nothing pass.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

use agentcfg_tests::harness::Dice;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The bytes after which a connection is cut, at most. The answer to a commit has less, so that it is often cut before,
/// within and behind it.
const LONGEST: usize = 1200;

/// Who connects: the bit of a set of clients.
pub type Clients = u8;

/// All clients.
pub const ALL: Clients = Clients::MAX;

/// Tells which client connects from an address, as a set of one; `None` for a client that has gone.
pub type Recognise = Arc<dyn Fn(SocketAddr) -> Option<Clients> + Send + Sync>;

/// Where a proxy connects to.
#[derive(Debug, Clone)]
pub enum Target {
    Socket(PathBuf),
    Port(u16),
}

impl From<&Path> for Target {
    fn from(socket: &Path) -> Self {
        Self::Socket(socket.to_owned())
    }
}

/// A proxy on a port of its own.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    target: RwLock<Target>,
    recognise: Option<Recognise>,
    /// Whether new connections are cut too.
    is_cutting: AtomicBool,
    dice: Mutex<Dice>,
    connections: Mutex<Vec<Weak<Connection>>>,
    held: watch::Sender<Held>,
}

/// The clients whose bytes do not pass now, in each direction.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    to_target: Clients,
    to_client: Clients,
}

/// What a connection still passes.
struct Connection {
    client: Clients,
    /// How many bytes, in each direction.
    to_target: AtomicI64,
    to_client: AtomicI64,
    /// Whether nothing passes any more, and neither end learns of it.
    is_abandoned: AtomicBool,
}

#[derive(Clone, Copy)]
enum Way {
    ToTarget,
    ToClient,
}

impl Proxy {
    pub async fn start(target: impl Into<Target>, dice: Dice) -> Self {
        Self::recognising(target, dice, None).await
    }

    /// A proxy that can hold the connections of some clients alone.
    pub async fn recognising(target: impl Into<Target>, dice: Dice, recognise: Option<Recognise>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: RwLock::new(target.into()),
            recognise,
            is_cutting: AtomicBool::new(false),
            dice: Mutex::new(dice),
            connections: Mutex::default(),
            held: watch::Sender::default(),
        });
        let accepting = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((stream, from)) = listener.accept().await {
                    tokio::spawn(serve(Arc::clone(&shared), stream, from));
                }
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects to another database from now on.
    pub fn point_to(&self, target: impl Into<Target>) {
        *self.shared.target.write().unwrap() = target.into();
    }

    /// Cuts the connections, each after a random number of further bytes in a random direction; until [`Self::heal`]
    /// half of the new ones too.
    pub fn cut(&self) {
        self.shared.is_cutting.store(true, Ordering::SeqCst);
        for connection in self.shared.connections() {
            self.shared.limit(&connection);
        }
    }

    /// Lets nothing of these clients pass, in either direction, until [`Self::heal`].
    pub fn hold(&self, clients: Clients) {
        self.hold_requests(clients);
        self.hold_answers(clients);
    }

    /// Lets nothing pass that these clients send.
    pub fn hold_requests(&self, clients: Clients) {
        self.shared.held.send_modify(|held| held.to_target |= clients);
    }

    /// Lets nothing pass that is sent to these clients.
    pub fn hold_answers(&self, clients: Clients) {
        self.shared.held.send_modify(|held| held.to_client |= clients);
    }

    /// The connections that are held pass nothing any more, also after [`Self::heal`], as after a network that has
    /// forgotten them: each end has to find out by itself.
    pub fn abandon(&self) {
        let held = *self.shared.held.borrow();
        for connection in self.shared.connections() {
            if connection.client & (held.to_target | held.to_client) != 0 {
                connection.is_abandoned.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Ends the connections that are held: what they have not passed is lost.
    pub fn end_held(&self) {
        let held = *self.shared.held.borrow();
        for connection in self.shared.connections() {
            if connection.client & (held.to_target | held.to_client) != 0 {
                connection.to_target.store(0, Ordering::SeqCst);
                connection.to_client.store(0, Ordering::SeqCst);
            }
        }
    }

    /// New connections pass everything again, and those that are held go on.
    pub fn heal(&self) {
        self.shared.is_cutting.store(false, Ordering::SeqCst);
        self.shared.held.send_replace(Held::default());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn connections(&self) -> Vec<Arc<Connection>> {
        let mut connections = self.connections.lock().unwrap();
        connections.retain(|connection| connection.strong_count() > 0);
        connections.iter().filter_map(Weak::upgrade).collect()
    }

    fn limit(&self, connection: &Connection) {
        let mut dice = self.dice.lock().unwrap();
        let bytes = i64::try_from(dice.below(LONGEST)).unwrap();
        match dice.below(3) {
            0 => connection.to_target.store(bytes, Ordering::SeqCst),
            _ => connection.to_client.store(bytes, Ordering::SeqCst),
        }
    }

    async fn connect(&self) -> io::Result<Ends> {
        let target = self.target.read().unwrap().clone();
        Ok(match target {
            Target::Socket(path) => {
                let (from, to) = UnixStream::connect(path).await?.into_split();
                (Box::pin(from), Box::pin(to))
            }
            Target::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", port)).await?;
                stream.set_nodelay(true)?;
                let (from, to) = stream.into_split();
                (Box::pin(from), Box::pin(to))
            }
        })
    }

    /// Waits as long as the bytes of a connection are held.
    async fn until_free(&self, connection: &Connection, way: Way) {
        let mut held = self.held.subscribe();
        let is_free = |held: &Held| {
            let clients = match way {
                Way::ToTarget => held.to_target,
                Way::ToClient => held.to_client,
            };
            connection.client & clients == 0
        };
        // The sender outlives the connection.
        let _ = held.wait_for(is_free).await;
        if connection.is_abandoned.load(Ordering::SeqCst) {
            // Longer than any client waits.
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
    }
}

type Ends = (Pin<Box<dyn AsyncRead + Send>>, Pin<Box<dyn AsyncWrite + Send>>);

async fn serve(shared: Arc<Shared>, client: TcpStream, from: SocketAddr) {
    let recognised = match &shared.recognise {
        Some(recognise) => recognise(from),
        None => Some(ALL),
    };
    let (Some(recognised), Ok((mut from_target, mut to_target))) = (recognised, shared.connect().await) else {
        return;
    };
    let _ = client.set_nodelay(true);
    let connection = Arc::new(Connection {
        client: recognised,
        to_target: AtomicI64::new(i64::MAX),
        to_client: AtomicI64::new(i64::MAX),
        is_abandoned: AtomicBool::new(false),
    });
    if shared.is_cutting.load(Ordering::SeqCst) && shared.dice.lock().unwrap().below(2) == 0 {
        shared.limit(&connection);
    }
    shared.connections.lock().unwrap().push(Arc::downgrade(&connection));
    let (mut from_client, mut to_client) = client.into_split();
    // When one direction ends, both are closed.
    tokio::select! {
        () = pass(&shared, &connection, Way::ToTarget, &mut from_client, &mut to_target) => {}
        () = pass(&shared, &connection, Way::ToClient, &mut from_target, &mut to_client) => {}
    }
}

async fn pass(
    shared: &Shared,
    connection: &Connection,
    way: Way,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) {
    let budget = match way {
        Way::ToTarget => &connection.to_target,
        Way::ToClient => &connection.to_client,
    };
    let mut buffer = vec![0; 16 << 10];
    loop {
        let count = from.read(&mut buffer).await;
        // The end of a connection is held too.
        shared.until_free(connection, way).await;
        let Ok(count @ 1..) = count else { return };
        let left = budget.load(Ordering::SeqCst);
        let passed = count.min(usize::try_from(left).unwrap_or(0));
        if to.write_all(&buffer[..passed]).await.is_err() || passed < count {
            return;
        }
        if left != i64::MAX {
            budget.fetch_sub(i64::try_from(passed).unwrap(), Ordering::SeqCst);
        }
    }
}
