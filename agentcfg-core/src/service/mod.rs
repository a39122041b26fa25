//! The service: every rule of agentcfg behind one handle.
//!
//! [`AgentCfg`] is cheap to clone and safe to share. Each method takes the caller first, decides on
//! current state whether the caller may, and makes each mutation one commit of the store with its
//! audit entry inside.

mod access;
mod agents;
mod api_keys;
mod audit;
mod change;
mod diff;
mod entry;
mod epoch;
mod lists;
mod master_keys;
mod members;
mod models;
mod provider_keys;
mod records;
mod status;
#[cfg(test)]
mod tests;
mod workspaces;
mod written;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::OnceCell;
use uuid::Uuid;

pub use self::entry::{Caller, Entry, EntryError};
use self::entry::{KeyTable, LastUses, Plaintexts};
pub use self::lists::AgentList;
use self::lists::Lists;
pub use self::master_keys::{MasterKeyError, MasterKeysNeeded, RewrapProgress};
pub use self::models::{ModelCall, ModelRequest, ModelRoute};
use crate::clock::{Clock, Entropy, EntropyError, Ids, SystemClock, SystemEntropy};
use crate::error::{Error, ErrorKind};
pub use crate::model::AgentFilter;
use crate::model::{Epoch, Plan, PlanLimits, Provider, Timestamp};
use crate::rate_limit::{MemoryLimiter, RateLimiter};
use crate::routing::Catalogue;
use crate::secret::ProviderCredential;
use crate::session::{Session, SessionError, SessionVerifier};
use crate::store::Store;
use crate::token::HashError;
use crate::vault::{SealError, Vault};

/// The settings of a deployment.
///
/// ```
/// use agentcfg_core::Settings;
/// use agentcfg_core::model::{Plan, PlanLimits};
/// let settings = Settings {
///     default_plan: Plan::Free,
///     plan_limits: PlanLimits { free: Some(5), ..PlanLimits::default() },
///     operators: ["root".to_owned()].into(),
///     ..Settings::default()
/// };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many active agents each plan allows.
    pub plan_limits: PlanLimits,
    /// The plan of a new workspace.
    pub default_plan: Plan,
    /// Requests per minute of each user; at least 1.
    pub session_rate_limit: u32,
    /// How long a status report is live, in seconds.
    pub status_ttl_seconds: u32,
    /// Whether keys of scope `write` may configure agents.
    pub write_scope_configures_agents: bool,
    /// Users who may change the plan of any workspace.
    pub operators: BTreeSet<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plan_limits: PlanLimits::default(),
            default_plan: Plan::Enterprise,
            session_rate_limit: 600,
            status_ttl_seconds: 120,
            write_scope_configures_agents: true,
            operators: BTreeSet::new(),
        }
    }
}

/// The service. Clones share everything.
///
/// ```
/// use agentcfg_core::model::{NewAgent, NewWorkspace};
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let service = AgentCfg::builder(MemoryStore::new()).build();
/// let ada = service.trusted_user("ada")?;
/// let workspace = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
/// let writer = service.create_agent(&ada, NewAgent::new(workspace.id, "writer".parse()?, "Writer")).await?;
/// assert!(writer.value.is_active);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AgentCfg {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    sessions: Arc<dyn SessionVerifier>,
    counting: Counting,
    settings: Settings,
    catalogue: Catalogue,
    managed: Managed,
    vault: RwLock<Option<Arc<Vault>>>,
    ids: Ids,
    keys: KeyTable,
    plaintexts: Plaintexts,
    uses: LastUses,
    lists: Arc<Lists>,
    epoch: OnceCell<Epoch>,
    remote_store: bool,
}

/// Builds a service; see [`AgentCfg::builder`].
///
/// ```
/// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
/// let service = AgentCfg::builder(MemoryStore::new())
///     .settings(Settings { status_ttl_seconds: 30, ..Settings::default() })
///     .list_cache_bytes(16 << 20)
///     .build();
/// ```
pub struct Builder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    sessions: Arc<dyn SessionVerifier>,
    counting: Counting,
    settings: Settings,
    catalogue: Catalogue,
    managed: Managed,
    vault: Option<Vault>,
    list_cache_bytes: u64,
    remote_store: bool,
}

/// Where requests are counted.
enum Counting {
    /// In this process: requests of users in this limiter, requests of API keys in the key table.
    Here(MemoryLimiter),
    /// In a limiter of the embedding app.
    Elsewhere(Arc<dyn RateLimiter>),
}

/// The deployment's own credentials, by provider.
type Managed = [Option<ProviderCredential>; Provider::ALL.len()];

impl Builder {
    /// Chooses the settings.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .settings(Settings { session_rate_limit: 60, ..Settings::default() })
    ///     .build();
    /// assert_eq!(service.settings().session_rate_limit, 60);
    /// ```
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Chooses the verifier of session tokens. Without one, every session token is refused.
    ///
    /// A verifier that is chosen at run time comes as an `Arc<dyn SessionVerifier>` or a `Box` of one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::session::{LocalSessions, SESSION_SECONDS};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use agentcfg_core::clock::{Clock, SystemClock};
    /// let sessions = LocalSessions::new(b"a secret of at least thirty-two bytes")?;
    /// let token = sessions.issue("ada", SESSION_SECONDS, SystemClock.now())?;
    /// let service = AgentCfg::builder(MemoryStore::new()).sessions(sessions).build();
    /// assert_eq!(service.authenticate(&token).await?.user_id()?, "ada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sessions(mut self, verifier: impl SessionVerifier) -> Self {
        self.sessions = Arc::new(verifier);
        self
    }

    /// Chooses where requests are counted. The default counts in this process.
    ///
    /// ```
    /// use agentcfg_core::rate_limit::MemoryLimiter;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).rate_limiter(MemoryLimiter::default()).build();
    /// ```
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter) -> Self {
        self.counting = Counting::Elsewhere(Arc::new(limiter));
        self
    }

    /// Chooses the models that are offered and where their providers are.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let catalogue = Catalogue::default().with_base_url(Provider::OpenAi, "https://proxy.example.com/openai")?;
    /// let service = AgentCfg::builder(MemoryStore::new()).catalogue(catalogue).build();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// Sets the deployment's own (managed) credential for a provider, for the calls of workspaces that use no key of
    /// their own.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::secret::ProviderCredential;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .managed_credential(Provider::OpenAi, ProviderCredential::new("sk-managed")?)
    ///     .build();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn managed_credential(mut self, provider: Provider, credential: ProviderCredential) -> Self {
        self.managed[provider as usize] = Some(credential);
        self
    }

    /// Sets the master keys that seal provider keys. Without them, no provider key can be saved.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    /// let service = AgentCfg::builder(MemoryStore::new()).vault(vault).build();
    /// assert!(service.vault().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn vault(mut self, vault: Vault) -> Self {
        self.vault = Some(vault);
        self
    }

    /// Chooses the clock, for tests.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::ManualClock;
    /// # use agentcfg_core::{AgentCfg, model::NewWorkspace, store::MemoryStore};
    /// let clock = Arc::new(ManualClock::at("2026-11-20T09:30:00Z".parse()?));
    /// let service = AgentCfg::builder(MemoryStore::new()).clock(clock.clone()).build();
    /// # let ada = service.trusted_user("ada")?;
    /// clock.advance_millis(1500);
    /// let studio = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
    /// assert_eq!(studio.created_at.to_string(), "2026-11-20T09:30:01.500Z");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Chooses the source of randomness, for tests.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::clock::{Entropy, EntropyError};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    ///
    /// struct Sevens;
    ///
    /// impl Entropy for Sevens {
    ///     fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError> {
    ///         buffer.fill(7);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let service = AgentCfg::builder(MemoryStore::new()).entropy(Arc::new(Sevens)).build();
    /// ```
    #[must_use]
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.entropy = entropy;
        self
    }

    /// Chooses the memory of the cache of agent lists in bytes; 64 MiB by default. A list that takes more than half of
    /// that is not cached, only shared by requests that read it at the same time.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).list_cache_bytes(16 << 20).build();
    /// ```
    #[must_use]
    pub fn list_cache_bytes(mut self, bytes: u64) -> Self {
        self.list_cache_bytes = bytes;
        self
    }

    /// Says that each call of the store is a round trip over a network. [`AgentCfg::enter`] then reads what the
    /// request is likely to need together with the record of its API key, and counts the request at the same time.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_core::AgentCfg;
    /// use agentcfg_core::store::postgres::{PostgresOptions, PostgresStore};
    /// let store = PostgresStore::connect(&PostgresOptions::new("postgres://localhost/agentcfg")).await?;
    /// let service = AgentCfg::builder(store).remote_store(true).build();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remote_store(mut self, remote: bool) -> Self {
        self.remote_store = remote;
        self
    }

    /// The service.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let same_service = service.clone();
    /// ```
    pub fn build(self) -> AgentCfg {
        AgentCfg {
            inner: Arc::new(Inner {
                store: self.store,
                clock: self.clock,
                entropy: self.entropy,
                sessions: self.sessions,
                counting: self.counting,
                settings: self.settings,
                catalogue: self.catalogue,
                managed: self.managed,
                vault: RwLock::new(self.vault.map(Arc::new)),
                ids: Ids::default(),
                keys: KeyTable::default(),
                plaintexts: Plaintexts::default(),
                uses: LastUses::default(),
                lists: Lists::new(self.list_cache_bytes),
                epoch: OnceCell::new(),
                remote_store: self.remote_store,
            }),
        }
    }
}

impl AgentCfg {
    /// Starts a service on a store. A store that is shared, or chosen at run time, comes as an `Arc`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::AgentCfg;
    /// use agentcfg_core::store::{MemoryStore, Store};
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// let service = AgentCfg::builder(store).build();
    /// ```
    pub fn builder(store: impl Store) -> Builder {
        let store = match (&store as &dyn Any).downcast_ref::<Arc<dyn Store>>() {
            // A second `Arc` around it would add an indirection to each use.
            Some(shared) => Arc::clone(shared),
            None => Arc::new(store),
        };
        Builder {
            store,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            sessions: Arc::new(NoSessions),
            counting: Counting::Here(MemoryLimiter::default()),
            settings: Settings::default(),
            catalogue: Catalogue::default(),
            managed: Managed::default(),
            vault: None,
            list_cache_bytes: 64 << 20,
            remote_store: false,
        }
    }

    /// The settings.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert_eq!(service.settings().status_ttl_seconds, 120);
    /// ```
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The models that are offered and where their providers are.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert!(service.catalogue().model("gpt-5").is_some());
    /// ```
    pub fn catalogue(&self) -> &Catalogue {
        &self.inner.catalogue
    }

    /// The master keys in use.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert!(service.vault().is_none(), "no provider key can be saved");
    /// ```
    pub fn vault(&self) -> Option<Arc<Vault>> {
        self.inner.vault.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the master keys in use, for this handle and all its clones. Keys that something is
    /// sealed under must be among them.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let key = MasterKey::generate(&SystemEntropy)?;
    /// service.set_vault(Vault::new(vec![key.clone()])?);
    /// assert_eq!(service.vault().map(|vault| vault.sealing_key()), Some(key.id()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_vault(&self, vault: Vault) {
        *self.inner.vault.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(vault));
    }

    fn managed(&self, provider: Provider) -> Option<&ProviderCredential> {
        self.inner.managed[provider as usize].as_ref()
    }

    /// Whether storage answers and session tokens can be verified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] when not.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.ready().await?;
    /// # Ok(()) }) }
    /// ```
    pub async fn ready(&self) -> Result<(), Error> {
        self.store().ready().await?;
        self.inner.sessions.ready().map_err(|error| {
            let why = match error {
                SessionError::Unavailable(why) => why,
                SessionError::Invalid(why) => why.to_owned(),
            };
            Error::new(
                ErrorKind::Unavailable,
                format!("session tokens cannot be verified: {why}"),
            )
        })
    }

    fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    fn entropy(&self) -> &dyn Entropy {
        &*self.inner.entropy
    }

    fn new_id(&self, now: Timestamp) -> Result<Uuid, Error> {
        Ok(self.inner.ids.next(now, self.entropy())?)
    }

    fn agent_limit(&self, plan: Plan) -> Option<u32> {
        self.settings().plan_limits.of(plan)
    }
}

impl From<EntropyError> for Error {
    fn from(error: EntropyError) -> Self {
        Self::new(ErrorKind::Internal, "the server could not draw randomness").because(error)
    }
}

impl From<HashError> for Error {
    fn from(error: HashError) -> Self {
        match error {
            HashError::Entropy(error) => error.into(),
            error => Self::new(ErrorKind::Internal, "the API key could not be hashed").because(error),
        }
    }
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Entropy(error) => error.into(),
            error => Self::new(ErrorKind::Internal, "the provider key could not be sealed").because(error),
        }
    }
}

/// The verifier of a service that has none.
struct NoSessions;

#[async_trait::async_trait]
impl SessionVerifier for NoSessions {
    async fn verify(&self, _: &str, _: Timestamp) -> Result<Session, SessionError> {
        Err(SessionError::Invalid("no identity provider is configured"))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

/// What the deployment chose, without its store and its secrets.
impl fmt::Debug for AgentCfg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCfg")
            .field("settings", self.settings())
            .field("remote_store", &self.inner.remote_store)
            .finish_non_exhaustive()
    }
}

/// The answer to a user who is no member, and to every user for a workspace that does not exist.
fn no_member() -> Error {
    Error::new(ErrorKind::Forbidden, "you are not a member of this workspace")
}

fn not_found(what: &str, id: &str) -> Error {
    let shown: String = id.chars().take(60).collect();
    Error::new(ErrorKind::NotFound, format!("{what} {shown:?} not found"))
}
