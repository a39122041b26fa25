//! A proxy in front of a database that cuts connections at random bytes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use agentcfg_tests::harness::Dice;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

/// The bytes after which a connection is cut, at most. The answer to a commit has less, so that it is often cut before, within
/// and behind it.
const LONGEST: usize = 1200;

/// A proxy on a port of its own, for a database on a socket.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    socket: RwLock<PathBuf>,
    /// Whether new connections are cut too.
    is_cutting: AtomicBool,
    dice: Mutex<Dice>,
    connections: Mutex<Vec<Weak<Budgets>>>,
}

/// How many bytes a connection still passes in each direction.
struct Budgets {
    to_database: AtomicI64,
    to_server: AtomicI64,
}

impl Proxy {
    pub async fn start(socket: &Path, dice: Dice) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            socket: RwLock::new(socket.to_owned()),
            is_cutting: AtomicBool::new(false),
            dice: Mutex::new(dice),
            connections: Mutex::default(),
        });
        let accepting = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(Arc::clone(&shared), stream));
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
    pub fn point_to(&self, socket: &Path) {
        *self.shared.socket.write().unwrap() = socket.to_owned();
    }

    /// Cuts the connections, each after a random number of further bytes in a random direction; until [`Self::heal`] half of
    /// the new ones too.
    pub fn cut(&self) {
        self.shared.is_cutting.store(true, Ordering::SeqCst);
        let mut connections = self.shared.connections.lock().unwrap();
        connections.retain(|connection| connection.strong_count() > 0);
        for budgets in connections.iter().filter_map(Weak::upgrade) {
            self.shared.limit(&budgets);
        }
    }

    pub fn heal(&self) {
        self.shared.is_cutting.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn limit(&self, budgets: &Budgets) {
        let mut dice = self.dice.lock().unwrap();
        let bytes = i64::try_from(dice.below(LONGEST)).unwrap();
        match dice.below(3) {
            0 => budgets.to_database.store(bytes, Ordering::SeqCst),
            _ => budgets.to_server.store(bytes, Ordering::SeqCst),
        }
    }
}

async fn serve(shared: Arc<Shared>, server: TcpStream) {
    let socket = shared.socket.read().unwrap().clone();
    let Ok(database) = UnixStream::connect(socket).await else {
        return;
    };
    let _ = server.set_nodelay(true);
    let budgets = Arc::new(Budgets {
        to_database: AtomicI64::new(i64::MAX),
        to_server: AtomicI64::new(i64::MAX),
    });
    if shared.is_cutting.load(Ordering::SeqCst) && shared.dice.lock().unwrap().below(2) == 0 {
        shared.limit(&budgets);
    }
    shared.connections.lock().unwrap().push(Arc::downgrade(&budgets));
    let (mut from_server, mut to_server) = server.into_split();
    let (mut from_database, mut to_database) = database.into_split();
    // When one direction ends, both are closed.
    tokio::select! {
        () = pass(&mut from_server, &mut to_database, &budgets.to_database) => {}
        () = pass(&mut from_database, &mut to_server, &budgets.to_server) => {}
    }
}

async fn pass(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin), budget: &AtomicI64) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
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
