//! The store of a server. This file and those below it are the only ones of the server that open a storage engine.

mod database;
mod file_store;
mod staged;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Clock, FollowingClock, SystemClock};
use agentcfg_core::rate_limit::{SharedLimiter, SharedState};
use agentcfg_core::store::Store;
use agentcfg_core::store::redb::RedbStore;
use agentcfg_core::vault::Vault;
use agentcfg_postgres::PostgresStore;

use crate::process::config::{Config, SessionProvider};
use crate::process::control::{self, Control, Order};
use crate::process::datadir::{self, DataDir, DataDirError, DataLock, Expected, FirstStart, TokenSource};
use crate::process::master_keys::{self, MasterKeyFault};

/// The store in a data directory.
pub type FileStore = RedbStore;
pub use self::database::{Database, DatabaseLocation, check_options, connect, connect_to_move};
pub use self::file_store::{CacheShares, compact, finish_removals, open_store, open_store_to_read};
pub use self::staged::StagedStore;
pub use agentcfg_core::store::redb::{BackupError, CompactError, OpenError, RestoreError, Scrub, check, verify_backup};
pub use agentcfg_core::store::{TransferError, Transferred};

/// Why a store cannot be used, with advice for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store in it cannot be opened.
    #[error("cannot open the store in {dir}: {source}{}", store_hint(.source))]
    Store {
        /// The data directory.
        dir: String,
        /// The error of the store.
        source: OpenError,
    },
    /// The database cannot be used.
    #[error("{source}{}", database_hint(.source))]
    Database {
        /// The error of the store.
        #[from]
        source: agentcfg_postgres::ConnectError,
    },
    /// The etcd cluster cannot be used.
    #[error("{source}{}", etcd_hint(.source))]
    Cluster {
        /// The error of the store.
        #[from]
        source: agentcfg_etcd::ConnectError,
    },
    /// The master keys cannot be used.
    #[error(transparent)]
    MasterKeys(#[from] MasterKeyFault),
}

impl BackendError {
    /// The store in this directory cannot be opened.
    pub(super) fn in_dir(dir: &DataDir, source: OpenError) -> Self {
        Self::Store {
            dir: dir.path().display().to_string(),
            source,
        }
    }
}

fn store_hint(error: &OpenError) -> &'static str {
    match error {
        OpenError::Held => "; stop that process first, or name another directory with --data or AGENTCFG_DATA",
        OpenError::OtherFormat(_) => "; run that build, nothing was changed",
        OpenError::Damaged(_) => {
            "; restore a backup into a new directory with `agentcfg-server restore`, nothing was changed"
        }
        OpenError::Io(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; run as the owner of the data directory, or give that user the file store.redb with chown"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space, nothing was lost",
            io::ErrorKind::ReadOnlyFilesystem => "; the store needs a file system that can be written",
            _ => "",
        },
        _ => "",
    }
}

fn database_hint(error: &agentcfg_postgres::ConnectError) -> &'static str {
    match error {
        agentcfg_postgres::ConnectError::Options(_) => " (database_url)",
        agentcfg_postgres::ConnectError::Unreachable(_) => {
            "; check database_url, or let `serve --wait-for SECONDS` wait longer for the database"
        }
        agentcfg_postgres::ConnectError::OtherFormat(_) => "; run that build, nothing was changed",
        _ => "",
    }
}

fn etcd_hint(error: &agentcfg_etcd::ConnectError) -> &'static str {
    match error {
        agentcfg_etcd::ConnectError::Options(_) => " (the settings that begin with etcd_)",
        agentcfg_etcd::ConnectError::Unreachable(_) => {
            "; check etcd_endpoints, etcd_user and the certificates of etcd_tls_ca and etcd_tls_cert, or let \
             `serve --wait-for SECONDS` wait longer for the cluster"
        }
        agentcfg_etcd::ConnectError::TooSmall(_) => "; restart its members with that option, one after another",
        agentcfg_etcd::ConnectError::Full(_) => "; compact and defragment it, then disarm the alarm",
        agentcfg_etcd::ConnectError::OtherFormat(_) => "; run that build, nothing was changed",
        _ => "",
    }
}

/// The store of a server, with the parts that belong to its engine.
pub enum Backend {
    /// One file in a data directory that this process holds.
    Embedded {
        /// The store.
        store: Arc<RedbStore>,
        /// What this start has made. It comes before the lock, which is released last.
        first_start: FirstStart,
        /// The lock of the directory.
        lock: DataLock,
        /// Whether the store was created by this start.
        is_new: bool,
        /// The master keys, until the service takes them.
        vault: Option<Vault>,
        /// The control socket, while the server runs.
        control: Option<Control>,
        /// When the last backup ended, in seconds since 1970; 0 before the first.
        last_backup: Arc<AtomicI64>,
    },
    /// A database that servers share.
    Shared {
        /// The store.
        database: Database,
        /// Counts requests in the database, together with other servers.
        limiter: Option<SharedLimiter>,
        /// The time of all servers on the database.
        clock: Arc<FollowingClock>,
        /// The state of the shared counter, for the metrics.
        state: Arc<SharedState>,
        /// The master keys, until the service takes them.
        vault: Option<Vault>,
    },
}

/// The keys that a server takes from the data directory, since no setting has them.
pub fn expected_keys(config: &Config) -> Expected {
    let is_local = config.session_provider == SessionProvider::Local;
    Expected {
        session_key: is_local && config.session_secret.is_none(),
        master_key: config.master_keys.is_empty(),
    }
}

/// The length up to which a store file is opened for reading first.
const CHECKED_FIRST: u64 = 1 << 30;

/// Refuses a store that cannot be read, or whose master keys are not there, and changes no byte.
async fn verify(dir: &DataDir, config: &Config, vault: Option<&Vault>) -> Result<(), BackendError> {
    let mut builder = AgentCfg::builder(open_store_to_read(dir, config.cache_mb)?);
    if let Some(vault) = vault {
        builder = builder.vault(Vault::clone(vault));
    }
    Ok(master_keys::verify_against_store(&builder.build(), config, dir).await?)
}

/// What a start would find in the store of the data directory, without one. A store that a process has open, or that is
/// long, is not opened.
///
/// # Errors
///
/// See [`BackendError`].
pub async fn check_store(config: &Config) -> Result<(), BackendError> {
    let dir = DataDir::open(&config.data)?;
    let vault = master_keys::find_unchanged(config, &dir)?;
    if !dir.has_store()? {
        return Ok(());
    }
    match dir.lock_to_read() {
        // It has noted its key in the store.
        Err(DataDirError::Locked { .. }) if vault.is_none() && dir.served_address().is_some() => {
            let file = dir.master_key_path().display().to_string();
            Err(MasterKeyFault::FileRemoved { file }.into())
        }
        Err(DataDirError::Locked { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) if dir.store_bytes()? > CHECKED_FIRST => Ok(()),
        Ok(_lock) => verify(&dir, config, vault.as_ref()).await,
    }
}

impl Backend {
    /// Opens the store that the configuration names, and creates it if there is none.
    ///
    /// # Errors
    ///
    /// See [`BackendError`].
    pub async fn open(config: &Config) -> Result<Self, BackendError> {
        if let Some(location) = DatabaseLocation::of(config) {
            let vault = master_keys::find(config, None, false)?;
            let database = connect(config, &location).await?;
            let clock = Arc::new(FollowingClock::new(Arc::new(SystemClock)));
            let mut limiter = SharedLimiter::new(database.windows());
            if database.has_clock() {
                limiter = limiter.followed_by(Arc::clone(&clock));
            }
            let state = limiter.state();
            return Ok(Self::Shared {
                database,
                limiter: Some(limiter),
                clock,
                state,
                vault,
            });
        }
        let had_dir = DataDir::is_there(&config.data)?;
        let dir = DataDir::open_or_create(&config.data)?;
        // A start that is refused leaves every byte as it is.
        if let Some(fault) = datadir::faults_of_content(&dir, expected_keys(config))
            .into_iter()
            .next()
        {
            return Err(fault.into());
        }
        let had_lock = dir.has_lock();
        let mut lock = dir.lock_quietly()?;
        let is_new = !dir.has_store()?;
        let first_start = match is_new {
            true => FirstStart::begin(&dir, had_dir, had_lock),
            false => FirstStart::default(),
        };
        // Invalid keys are refused before anything is created.
        let found = master_keys::find(config, Some(&dir), false)?;
        // So does one that the keys refuse. A long file may take seconds to be recovered, which is not done twice.
        if !is_new && dir.store_bytes()? <= CHECKED_FIRST {
            verify(&dir, config, found.as_ref()).await?;
        }
        lock.claim()?;
        let store = Arc::new(open_store(&lock, config.cache_mb)?);
        lock.close_to_others();
        // After the store: a crash between the two leaves a store without a key, which gets one at the next start. A
        // key without a store would look like a lost store.
        let vault = match found {
            None if is_new => master_keys::find(config, Some(&dir), true)?,
            found => found,
        };
        Ok(Self::Embedded {
            store,
            first_start,
            lock,
            is_new,
            vault,
            control: None,
            last_backup: Arc::default(),
        })
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded { store, .. } => Arc::clone(store) as _,
            Self::Shared { database, .. } => database.store(),
        }
    }

    /// The data directory, if the store is in one.
    pub fn dir(&self) -> Option<&DataDir> {
        match self {
            Self::Embedded { lock, .. } => Some(lock.dir()),
            Self::Shared { .. } => None,
        }
    }

    /// Whether this start created the store, in a data directory.
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Embedded { is_new: true, .. })
    }

    /// The start has succeeded, so what it has made stays.
    pub fn keep(&mut self) {
        if let Self::Embedded { first_start, .. } = self {
            first_start.keep();
        }
    }

    /// Takes the shared rate limiter, if requests are counted together with other servers.
    pub fn take_limiter(&mut self) -> Option<SharedLimiter> {
        match self {
            Self::Embedded { .. } => None,
            Self::Shared { limiter, .. } => limiter.take(),
        }
    }

    /// The clock of the service.
    pub fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Embedded { .. } => Arc::new(SystemClock),
            Self::Shared { clock, .. } => Arc::clone(clock) as _,
        }
    }

    /// The clock that follows that of the database, if the database has one.
    pub fn followed_clock(&self) -> Option<Arc<FollowingClock>> {
        match self {
            Self::Shared { database, clock, .. } if database.has_clock() => Some(Arc::clone(clock)),
            Self::Shared { .. } | Self::Embedded { .. } => None,
        }
    }

    /// Takes the master keys, if there are any.
    pub fn take_vault(&mut self) -> Option<Vault> {
        match self {
            Self::Embedded { vault, .. } | Self::Shared { vault, .. } => vault.take(),
        }
    }

    /// The state of the shared rate limiter, if there is one.
    pub fn shared_state(&self) -> Option<Arc<SharedState>> {
        match self {
            Self::Embedded { .. } => None,
            Self::Shared { state, .. } => Some(Arc::clone(state)),
        }
    }

    /// Writes the server's address into the lock file, and listens for orders on the control socket.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written.
    pub fn announce(&mut self, address: SocketAddr, service: &AgentCfg, config: &Config) -> Result<(), BackendError> {
        if let Self::Embedded {
            store,
            lock,
            control,
            last_backup,
            ..
        } = self
        {
            let tokens = match config.session_provider {
                SessionProvider::Jwks | SessionProvider::Introspection => TokenSource::Provider,
                SessionProvider::Local if config.session_secret.is_some() => TokenSource::Settings,
                SessionProvider::Local => TokenSource::Directory,
            };
            lock.announce(address, tokens)?;
            let orders = executor(
                (Arc::clone(store), Arc::clone(last_backup)),
                service.clone(),
                lock.dir().clone(),
                (address, config.clone()),
            );
            let made = control::spawn(lock, orders)
                .map_err(|error| DataDirError::from_io("make the control socket", &lock.dir().socket_path(), error));
            *control = Some(made?);
        }
        Ok(())
    }

    /// The embedded store, with the time of its last backup; `None` for a database.
    pub fn embedded(&self) -> Option<(Arc<RedbStore>, Arc<AtomicI64>)> {
        match self {
            Self::Embedded { store, last_backup, .. } => Some((Arc::clone(store), Arc::clone(last_backup))),
            Self::Shared { .. } => None,
        }
    }

    /// The store in PostgreSQL; `None` for another.
    pub fn postgres(&self) -> Option<Arc<PostgresStore>> {
        match self {
            Self::Shared {
                database: Database::Postgres(store),
                ..
            } => Some(Arc::clone(store)),
            Self::Shared { .. } | Self::Embedded { .. } => None,
        }
    }

    /// The periodic task of the store.
    pub fn maintenance(&self) -> StoreMaintenance {
        match self {
            Self::Embedded { store, .. } => StoreMaintenance::Embedded(Arc::clone(store)),
            Self::Shared { database, .. } => StoreMaintenance::Shared(database.clone()),
        }
    }

    /// Ends pending work and closes the store.
    pub async fn close(&self) {
        match self {
            Self::Embedded { store, .. } => store.close(),
            Self::Shared { database, .. } => database.close().await,
        }
    }
}

/// The periodic task of a store; see [`Backend::maintenance`].
pub enum StoreMaintenance {
    /// The embedded store.
    Embedded(Arc<RedbStore>),
    /// The database.
    Shared(Database),
}

impl StoreMaintenance {
    /// Removes rate windows that have ended. Those of the embedded store are in memory.
    pub async fn sweep(&self) {
        if let Self::Shared(database) = self
            && let Err(error) = database.windows().sweep().await
        {
            tracing::warn!(%error, "could not remove rate windows that have ended, trying again");
        }
    }

    /// Whether the store answers and takes changes.
    pub async fn is_ready(&self) -> bool {
        match self {
            Self::Embedded(store) => store.is_ready(),
            Self::Shared(database) => {
                let store = database.store();
                store.ready().await.is_ok() && store.read_only().is_none()
            }
        }
    }
}

/// Carries out the orders of the owner of the data directory.
fn executor(
    (store, last_backup): (Arc<RedbStore>, Arc<AtomicI64>),
    service: AgentCfg,
    dir: DataDir,
    (address, config): (SocketAddr, Config),
) -> impl Fn(&Order, &mut dyn io::Write) -> io::Result<()> + Send + Sync + 'static {
    let runtime = tokio::runtime::Handle::current();
    let configured = !config.master_keys.is_empty();
    let is_local = config.session_provider == SessionProvider::Local;
    move |order, out| match *order {
        Order::Backup => {
            store.backup(out).map_err(io::Error::other)?;
            last_backup.store(SystemClock.now().unix_millis() / 1000, Ordering::Relaxed);
            Ok(())
        }
        Order::Compact => {
            let removed = runtime.block_on(finish_removals(&service));
            let (sender, lines) = mpsc::channel::<String>();
            let store = Arc::clone(&store);
            let compaction = std::thread::spawn(move || {
                let done = compact(&store, move |line| {
                    tracing::info!("{line}");
                    // The command that sent the order may have ended; the compaction goes on.
                    let _ = sender.send(line);
                });
                done.inspect(|line| tracing::info!("{line}"))
            });
            relay(lines, out);
            let done = compaction
                .join()
                .map_err(|_| io::Error::other("the compaction panicked"))?;
            writeln!(out, "{}", done.map_err(io::Error::other)?)?;
            removed.map_err(io::Error::other)
        }
        Order::LoginLink { .. } if !is_local => Err(io::Error::other(
            "session_provider is not local: users sign in with the identity provider",
        )),
        Order::LoginLink { ref user } => {
            let login = runtime.block_on(service.make_login_code(user));
            let login = login.map_err(io::Error::other)?;
            writeln!(out, "{}", config.login_link(address, &login.code))
        }
        Order::RotateMasterKey { .. } if configured => Err(io::Error::other(MasterKeyFault::FromConfiguration)),
        Order::RotateMasterKey { drop_old } => {
            let (sender, lines) = mpsc::channel::<String>();
            let (service, dir) = (service.clone(), dir.clone());
            let rotation = runtime.spawn(async move {
                let mut say = |line: String| {
                    tracing::info!("master key: {line}");
                    // The command that sent the order may have ended; the rotation goes on.
                    let _ = sender.send(line);
                };
                master_keys::rotate(&service, &dir, drop_old, &mut say).await
            });
            relay(lines, out);
            runtime.block_on(rotation)?.map_err(io::Error::other)
        }
    }
}

/// Writes the lines of a task as they come. The client of `out` may have gone; the task goes on all the same.
fn relay(lines: mpsc::Receiver<String>, out: &mut dyn io::Write) {
    for line in lines {
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
