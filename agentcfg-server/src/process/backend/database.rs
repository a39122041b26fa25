//! Stores in databases that servers share: their selection by the configuration, and the operations that all of them
//! have.

use std::io;
use std::sync::Arc;

use agentcfg_core::rate_limit::SharedWindows;
use agentcfg_core::store::{Store, TransferError, Transferred};
use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_postgres::{PostgresOptions, PostgresStore};

use super::BackendError;
use crate::process::config::{Config, Secret, Statements};

/// The store in a database that servers share.
#[derive(Clone)]
pub enum Database {
    /// PostgreSQL.
    Postgres(Arc<PostgresStore>),
    /// An etcd cluster.
    Etcd(Arc<EtcdStore>),
}

/// The database that a store is in.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// The database of this URL.
    Postgres(Secret),
    /// The etcd cluster with these members.
    Etcd(String),
}

impl DatabaseLocation {
    /// The database that the configuration names, if it names one.
    pub fn of(config: &Config) -> Option<Self> {
        let url = config.database_url.clone().map(Self::Postgres);
        url.or_else(|| config.etcd_endpoints.clone().map(Self::Etcd))
    }

    /// The sentence that the setting of this database is set.
    pub fn is_set(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "database_url is set",
            Self::Etcd(_) => "etcd_endpoints is set",
        }
    }

    /// The variable of the environment that names this database.
    pub fn variable(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "AGENTCFG_DATABASE_URL_FILE",
            Self::Etcd(_) => "AGENTCFG_ETCD_ENDPOINTS",
        }
    }

    /// The tools for a store in this database, which replace the commands on a data directory.
    pub fn other_tools(&self) -> &'static str {
        match self {
            Self::Postgres(_) => {
                "a store in PostgreSQL is backed up, restored and checked with the database's own tools \
                 (pg_basebackup, pg_dump, pg_restore, pg_amcheck); to work on a data directory, unset database_url"
            }
            Self::Etcd(_) => {
                "a store in etcd is backed up, restored and checked with the cluster's own tools (etcdctl snapshot save, \
                 etcdctl snapshot restore, etcdctl check), and `migrate --from etcd --to DIR` copies it into a data \
                 directory; to work on a data directory, unset etcd_endpoints"
            }
        }
    }

    /// The database that a text of the command line names: a URL, or the name of the engine for the database of the
    /// configuration; `None` for any other text.
    ///
    /// # Errors
    ///
    /// When the configuration names no such database.
    pub fn named(text: &str, config: &Config) -> Result<Option<Self>, &'static str> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Some(Self::Postgres(Secret::new(text))));
        }
        let location = Self::of(config);
        match (text, location) {
            ("postgres", Some(location @ Self::Postgres(_))) | ("etcd", Some(location @ Self::Etcd(_))) => {
                Ok(Some(location))
            }
            ("postgres", _) => {
                Err("`postgres` means the URL in database_url (AGENTCFG_DATABASE_URL or _FILE), and there is none")
            }
            ("etcd", _) => {
                Err("`etcd` means the cluster in etcd_endpoints (AGENTCFG_ETCD_ENDPOINTS), and there is none")
            }
            _ if text.contains("://") => {
                Err("--from and --to take a data directory, a postgres:// URL, `postgres` or `etcd`, and no other URL")
            }
            _ => Ok(None),
        }
    }
}

impl Database {
    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres(store) => Arc::clone(store) as _,
            Self::Etcd(store) => Arc::clone(store) as _,
        }
    }

    /// The rate windows in the database.
    pub fn windows(&self) -> Arc<dyn SharedWindows> {
        match self {
            Self::Postgres(store) => Arc::clone(store) as _,
            Self::Etcd(store) => Arc::clone(store) as _,
        }
    }

    /// Whether the rate windows go by a clock of the database. Those in etcd go by the clock of the server that counts.
    pub fn has_clock(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Closes the connections of the store.
    pub async fn close(&self) {
        match self {
            Self::Postgres(store) => store.close(),
            Self::Etcd(store) => store.close().await,
        }
    }

    /// Fails while other processes use the store.
    ///
    /// # Errors
    ///
    /// [`TransferError::InUse`].
    pub async fn require_unused(&self) -> Result<(), TransferError> {
        match self {
            Self::Postgres(store) => store.require_unused().await,
            Self::Etcd(store) => store.require_unused().await,
        }
    }

    /// Whether an earlier import was interrupted, so that the existing content is not valid.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    pub async fn has_unfinished_import(&self) -> Result<bool, TransferError> {
        match self {
            // Here an import is one transaction.
            Self::Postgres(_) => Ok(false),
            Self::Etcd(store) => store.has_unfinished_import().await,
        }
    }

    /// Writes all records as a backup.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    pub async fn export(&self, out: impl io::Write) -> Result<Transferred, TransferError> {
        match self {
            Self::Postgres(store) => store.export(out).await,
            Self::Etcd(store) => store.export(out).await,
        }
    }

    /// Imports a backup.
    ///
    /// # Errors
    ///
    /// See [`TransferError`].
    pub async fn import(&self, input: impl io::Read) -> Result<Transferred, TransferError> {
        match self {
            Self::Postgres(store) => store.import(input).await,
            Self::Etcd(store) => store.import(input).await,
        }
    }
}

/// Connects to a database as the configuration says.
///
/// # Errors
///
/// [`BackendError::Database`] or [`BackendError::Cluster`] with advice for the operator.
pub async fn connect(config: &Config, location: &DatabaseLocation) -> Result<Database, BackendError> {
    Ok(match location {
        DatabaseLocation::Postgres(url) => {
            let store = PostgresStore::connect(&database_options(config, url)).await?;
            Database::Postgres(Arc::new(store))
        }
        DatabaseLocation::Etcd(endpoints) => {
            let store = EtcdStore::connect(&cluster_options(config, endpoints)).await?;
            Database::Etcd(Arc::new(store))
        }
    })
}

/// Checks all that [`connect`] needs of the settings, without a connection.
///
/// # Errors
///
/// As [`connect`] for settings that cannot be used.
pub fn check_options(config: &Config, location: &DatabaseLocation) -> Result<(), BackendError> {
    match location {
        DatabaseLocation::Postgres(url) => database_options(config, url).check()?,
        DatabaseLocation::Etcd(endpoints) => cluster_options(config, endpoints).check()?,
    }
    Ok(())
}

/// As [`connect`], but also to a store whose import was interrupted.
///
/// # Errors
///
/// As [`connect`].
pub async fn connect_to_move(config: &Config, location: &DatabaseLocation) -> Result<Database, BackendError> {
    match location {
        DatabaseLocation::Postgres(_) => connect(config, location).await,
        DatabaseLocation::Etcd(endpoints) => {
            let store = EtcdStore::connect_to_import(&cluster_options(config, endpoints)).await?;
            Ok(Database::Etcd(Arc::new(store)))
        }
    }
}

fn database_options(config: &Config, url: &Secret) -> PostgresOptions {
    PostgresOptions::new(url.expose())
        .pool_size(config.database_pool_size)
        .statements(match config.database_statements {
            Statements::Prepared => agentcfg_postgres::Statements::Prepared,
            Statements::Unnamed => agentcfg_postgres::Statements::Unnamed,
        })
        .connect_wait(config.database_wait)
}

fn cluster_options(config: &Config, endpoints: &str) -> EtcdOptions {
    let password = config.etcd_password.as_ref().map(Secret::expose).unwrap_or_default();
    EtcdOptions::new(endpoints)
        .user(config.etcd_user.clone().map(|user| (user, password.to_owned())))
        .tls_ca(config.etcd_tls_ca.clone())
        .tls_identity(config.etcd_tls_cert.clone().zip(config.etcd_tls_key.clone()))
        .prefix(config.etcd_prefix.clone())
        .connect_wait(config.database_wait)
}
