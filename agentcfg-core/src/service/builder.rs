//! The builder of a service.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use tokio::sync::{OnceCell, broadcast};

use super::budgets::Budgets;
use super::entry::{KeyTable, LastUses, Plaintexts, RateCounting};
use super::feed::{ENDED_ENTRIES, Heads, RecentEvents, StatusFeeds};
use super::lists::Cache;
use super::long_reads::LongReads;
use super::shutdown::Lifetime;
use super::status::StatusHistory;
use super::swapped::Swapped;
use super::usage::Ledger;
use super::webhooks::NewEvents;
use super::{AgentCfg, Inner, Settings, sign_in};
use crate::clock::{Clock, Entropy, Ids, SystemClock, SystemEntropy};
use crate::model::{Limits, Provider, Timestamp};
use crate::rate_limit::{MemoryLimiter, RateLimiter};
use crate::routing::Catalogue;
use crate::secret::ProviderCredential;
use crate::session::{CookieLife, Session, SessionError, SessionRenewal, SessionVerifier};
use crate::store::{Stamps, Store};
use crate::validate::Invalid;
use crate::vault::Vault;

/// Builds a service; see [`AgentCfg::builder`].
///
/// ```
/// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
/// let service = AgentCfg::builder(MemoryStore::new())
///     .settings(Settings::default().status_ttl_seconds(30_u32))?
///     .list_cache_bytes(16 << 20)
///     .build();
/// # Ok::<(), agentcfg_core::validate::Invalid>(())
/// ```
pub struct Builder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    sessions: Arc<dyn SessionVerifier>,
    renewal: Option<Arc<dyn SessionRenewal>>,
    counting: RateCounting,
    settings: Settings,
    catalogue: Catalogue,
    managed: Managed,
    vault: Option<Vault>,
    list_cache_bytes: u64,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("settings", &self.settings)
            .field("list_cache_bytes", &self.list_cache_bytes)
            .finish_non_exhaustive()
    }
}

/// The deployment's own credentials, by provider.
pub(super) type Managed = Vec<(Provider, ProviderCredential)>;

impl Builder {
    /// Chooses the settings.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for settings that [`Settings::validate`] refuses.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .settings(Settings::default().session_rate_limit(60_u32))?
    ///     .build();
    /// assert_eq!(service.settings().session_rate_limit, 60);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn settings(mut self, settings: Settings) -> Result<Self, Invalid> {
        settings.validate()?;
        self.settings = settings;
        Ok(self)
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

    /// Chooses who renews browser sessions that were opened with a refresh token. Without one, such a session ends with
    /// its token.
    ///
    /// ```
    /// use agentcfg_core::session::{Renewed, SessionError, SessionRenewal};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    ///
    /// struct Provider;
    ///
    /// #[async_trait::async_trait]
    /// impl SessionRenewal for Provider {
    ///     async fn renew(&self, refresh_token: &str) -> Result<Renewed, SessionError> {
    ///         Err(SessionError::Unavailable("it is not asked in this example".to_owned()))
    ///     }
    /// }
    ///
    /// let service = AgentCfg::builder(MemoryStore::new()).renewal(Provider).build();
    /// ```
    #[must_use]
    pub fn renewal(mut self, renewal: impl SessionRenewal) -> Self {
        self.renewal = Some(Arc::new(renewal));
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
        self.counting = RateCounting::External(Arc::new(limiter));
        self
    }

    /// Chooses the models that are offered and where their providers are.
    ///
    /// ```
    /// use agentcfg_core::model::Provider;
    /// use agentcfg_core::routing::Catalogue;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let catalogue = Catalogue::default().with_base_url(Provider::OPENAI, "https://proxy.example.com/openai")?;
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
    ///     .managed_credential(Provider::OPENAI, ProviderCredential::new("sk-managed")?)
    ///     .build();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn managed_credential(mut self, provider: Provider, credential: ProviderCredential) -> Self {
        self.managed.retain(|(of, _)| *of != provider);
        self.managed.push((provider, credential));
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
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
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

    /// Chooses the memory of the cache of agent lists in bytes; 64 MiB by default. A list that takes
    /// nearly all of that (about 97 %) or more is not cached, only shared by requests that read it at the same time.
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

    /// Makes the service.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let same_service = service.clone();
    /// ```
    pub fn build(self) -> AgentCfg {
        let is_shared = self.store.is_shared();
        let begun = self.clock.now();
        let admission = sign_in::admission(&*self.sessions, &self.settings);
        AgentCfg::of(Arc::new(Inner {
            stamps: Stamps::of(&self.store),
            store: self.store,
            clock: self.clock,
            entropy: self.entropy,
            sessions: self.sessions,
            admission,
            renewal: self.renewal,
            counting: self.counting,
            limits: Limits {
                persona_prompt: self.settings.max_persona_prompt,
            },
            settings: Swapped::new(Arc::new(self.settings)),
            catalogue: Swapped::new(Arc::new(self.catalogue)),
            managed: self.managed,
            vault: Swapped::new(self.vault.map(Arc::new)),
            ids: Ids::default(),
            keys: KeyTable::default(),
            plaintexts: Plaintexts::default(),
            uses: LastUses::default(),
            cache: Cache::new(self.list_cache_bytes),
            epoch: OnceCell::new(),
            heads: Heads::default(),
            ended_entries: broadcast::Sender::new(ENDED_ENTRIES),
            status_feeds: StatusFeeds::default(),
            status_history: StatusHistory::since(begun),
            recent: RecentEvents::default(),
            long_reads: LongReads::new(is_shared),
            new_events: NewEvents::default(),
            lifetime: Lifetime::default(),
            ledger: Ledger::default(),
            budgets: Budgets::default(),
            began: begun.unix_millis(),
            removing: tokio::sync::Mutex::default(),
        }))
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
            renewal: None,
            counting: RateCounting::InProcess(MemoryLimiter::default()),
            settings: Settings::default(),
            catalogue: Catalogue::default(),
            managed: Managed::default(),
            vault: None,
            list_cache_bytes: 64 << 20,
        }
    }
}

/// The verifier of a service without one: it refuses every session token.
struct NoSessions;

#[async_trait::async_trait]
impl SessionVerifier for NoSessions {
    async fn verify(&self, _: &str, _: Timestamp) -> Result<Session, SessionError> {
        Err(SessionError::Invalid("no identity provider is configured"))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }

    /// The app that embeds the service signs its users in with login codes.
    fn cookie_life(&self) -> CookieLife {
        CookieLife::Own
    }
}
