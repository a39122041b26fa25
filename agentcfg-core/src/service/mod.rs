//! The service: every rule of agentcfg behind one handle.
//!
//! [`AgentCfg`] is cheap to clone and safe to share. Each method takes the caller first, decides on
//! current state whether the caller may, and makes each mutation one commit of the store with its
//! audit entry inside.

mod access;
mod agent_change;
mod agent_labels;
mod agents;
mod api_keys;
mod apply;
mod audit;
mod base;
mod blocking;
mod budgets;
mod builder;
mod change;
mod changes_of_agents;
mod chunked_reads;
mod diff;
mod entry;
mod epoch;
mod export;
mod fair_permits;
mod feed;
mod for_each;
mod groups;
mod history;
mod key_limits;
mod labels;
mod lists;
mod log_since;
mod long_answers;
mod long_reads;
mod master_keys;
mod members;
mod model_calls;
mod models;
mod moment;
mod operators;
mod past;
mod profiles;
mod prompts;
mod provider_keys;
mod records;
mod removal;
mod renewal;
mod retention;
mod retry;
mod rollback;
mod sealing;
mod serialized_record;
mod settings;
mod shutdown;
mod sign_in;
mod sign_out;
mod single_flight;
mod status;
mod swapped;
mod tasks;
#[cfg(test)]
mod tests;
mod text_lines;
mod usage;
mod versions;
mod weak_map;
mod webhooks;
mod weighted_cache;
mod whoami;
mod workspaces;

use std::fmt;
use std::sync::Arc;

use tokio::sync::{OnceCell, broadcast};
use uuid::Uuid;

pub use self::audit::AuditPages;
use self::budgets::Budgets;
pub use self::budgets::{CostBound, InputTokens, OutputCap, Reservation};
pub use self::builder::Builder;
use self::builder::Managed;
pub use self::entry::{Caller, Entry, EntryError};
use self::entry::{KeyTable, LastUses, Plaintexts, RateCounting};
pub use self::export::Export;
#[cfg(feature = "stream")]
pub use self::feed::WatchStream;
pub use self::feed::{ChangePage, SerializedEvent, Update, Watch};
use self::feed::{EndedEntry, Heads, RecentEvents, StatusFeeds};
pub use self::labels::LabelHistory;
use self::lists::Cache;
pub use self::lists::{AgentList, ListText, RowList};
use self::long_answers::LongAnswers;
pub use self::long_answers::{AnswerBudget, LongAnswer};
use self::long_reads::LongReads;
pub use self::master_keys::{MasterKeyError, MasterKeysNeeded, RewrapProgress};
pub use self::model_calls::{ModelAttempt, ModelCall, ModelRequest};
pub use self::provider_keys::SavedProviderKey;
pub use self::retention::RemovedHistory;
pub use self::settings::Settings;
use self::shutdown::Lifetime;
pub use self::sign_in::{BrowserSession, LOGIN_CODE_SECONDS, LoginCode};
use self::status::StatusHistory;
pub use self::status::{StatusChanges, StatusList, StatusPiece};
use self::swapped::Swapped;
use self::usage::Ledger;
pub use self::usage::{CallFacts, CallMeter, EndedCall};
use self::webhooks::NewEvents;
pub use self::webhooks::{SenderNumbers, WebhookSender};
use crate::clock::{Clock, Entropy, EntropyError, Ids};
use crate::error::{Error, ErrorKind};
pub use crate::model::AgentFilter;
use crate::model::{ApiKeyId, Epoch, IdRef, Limits, Plan, Provider, Timestamp};
use crate::routing::{Catalogue, CatalogueProvider, InvalidCatalogue};
use crate::secret::ProviderCredential;
use crate::session::{SessionRenewal, SessionVerifier};
use crate::store::{Stamps, Store};
use crate::token::HashError;
use crate::validate::{Invalid, quoted};
use crate::vault::{SealError, Vault};

/// The handle of the service. Clones share all state.
///
/// ```
/// use agentcfg_core::model::{NewAgent, NewWorkspace};
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let service = AgentCfg::builder(MemoryStore::new()).build();
/// let ada = service.trusted_user("ada")?;
/// let workspace = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
/// let writer = service.create_agent(&ada, NewAgent::new(workspace.id, "writer".parse()?, "Writer")).await?;
/// assert!(writer.value.is_active);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AgentCfg {
    inner: Arc<Inner>,
    /// Counts the long answers, where this handle has a budget of them.
    answers: Option<Arc<LongAnswers>>,
}

struct Inner {
    store: Arc<dyn Store>,
    stamps: Stamps,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    sessions: Arc<dyn SessionVerifier>,
    /// Which tokens open a browser session, as a digest: it ends when this changes.
    admission: String,
    renewal: Option<Arc<dyn SessionRenewal>>,
    counting: RateCounting,
    settings: Swapped<Arc<Settings>>,
    limits: Limits,
    catalogue: Swapped<Arc<Catalogue>>,
    managed: Managed,
    vault: Swapped<Option<Arc<Vault>>>,
    ids: Ids,
    keys: KeyTable,
    plaintexts: Plaintexts,
    uses: LastUses,
    cache: Arc<Cache>,
    epoch: OnceCell<Epoch>,
    heads: Heads,
    /// Sends closed browser sessions and removed users, so that their watches end.
    ended_entries: broadcast::Sender<EndedEntry>,
    status_feeds: StatusFeeds,
    status_history: StatusHistory,
    recent: RecentEvents,
    long_reads: Arc<LongReads>,
    new_events: NewEvents,
    lifetime: Lifetime,
    ledger: Ledger,
    budgets: Budgets,
    /// When the service was made, in milliseconds.
    began: i64,
    /// Held while records of deleted workspaces are removed, so that one task of the process does it at a time.
    removing: tokio::sync::Mutex<()>,
}

impl AgentCfg {
    /// A handle without a budget of answers.
    fn of(inner: Arc<Inner>) -> Self {
        Self { inner, answers: None }
    }

    /// The settings of the deployment.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert_eq!(service.settings().status_ttl_seconds, 120);
    /// ```
    pub fn settings(&self) -> Arc<Settings> {
        self.inner.settings.get()
    }

    /// Replaces the limits of this handle and all its clones while they are in use: `plan_limits`, `session_rate_limit`
    /// and `max_workspaces_per_user` are taken from these settings, the others stay.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for settings that [`Settings::validate`] refuses. Nothing is replaced then.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// service.set_limits(&Settings::default().session_rate_limit(60_u32))?;
    /// assert_eq!(service.settings().session_rate_limit, 60);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn set_limits(&self, settings: &Settings) -> Result<(), Invalid> {
        settings.validate()?;
        let old = self.settings();
        self.inner.settings.set(Arc::new(Settings {
            plan_limits: settings.plan_limits.clone(),
            session_rate_limit: settings.session_rate_limit,
            max_workspaces_per_user: settings.max_workspaces_per_user,
            ..(*old).clone()
        }));
        Ok(())
    }

    /// The limits of the deployment by which bodies are checked.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let settings = Settings::default().max_persona_prompt(20_000_u32);
    /// let service = AgentCfg::builder(MemoryStore::new()).settings(settings)?.build();
    /// assert_eq!(service.limits().persona_prompt, 20_000);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn limits(&self) -> Limits {
        self.inner.limits
    }

    /// The models that are offered and where their providers are.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert!(service.catalogue().model("gpt-5.5").is_some());
    /// ```
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.inner.catalogue.get()
    }

    /// Replaces the models, with their prices, of this handle and all its clones while they are in use. Calls that
    /// have reserved of a budget are charged by the prices before, all others by the new ones. The providers stay, since their credentials belong to the start.
    ///
    /// # Errors
    ///
    /// [`InvalidCatalogue`] for a model of a provider that this service does not have. Nothing is replaced then.
    ///
    /// ```
    /// use agentcfg_core::routing::Catalogue;
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// service.set_models(&Catalogue::default().with_models(Vec::new())?)?;
    /// assert!(service.catalogue().model("gpt-5.5").is_none());
    /// # Ok::<(), agentcfg_core::routing::InvalidCatalogue>(())
    /// ```
    pub fn set_models(&self, source: &Catalogue) -> Result<(), InvalidCatalogue> {
        let catalogue = (*self.catalogue()).clone();
        let catalogue = catalogue
            .with_models(source.models().to_vec())?
            .with_embedding_models(source.embedding_models().to_vec())?;
        self.inner.catalogue.set(Arc::new(catalogue));
        Ok(())
    }

    /// The master keys in use.
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// assert!(service.vault().is_none(), "no provider key can be saved");
    /// ```
    pub fn vault(&self) -> Option<Arc<Vault>> {
        self.inner.vault.get()
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
        self.inner.vault.set(Some(Arc::new(vault)));
    }

    fn managed(&self, provider: Provider) -> Option<&ProviderCredential> {
        let mut managed = self.inner.managed.iter();
        managed
            .find(|(of, _)| *of == provider)
            .map(|(_, credential)| credential)
    }

    /// Whether storage answers. Session tokens are a matter of [`Self::sessions_unavailable`]: API keys work without
    /// them.
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
        Ok(self.store().ready().await?)
    }

    /// Why the identity provider of session tokens could not be reached at the last attempt; `None` when it could, or
    /// when none is needed. The text is for logs.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(service.sessions_unavailable(), None);
    /// # Ok(()) }) }
    /// ```
    pub fn sessions_unavailable(&self) -> Option<String> {
        self.inner.sessions.ready().err().map(|error| error.to_string())
    }

    /// Why changes are refused now while reads may be served, such as a full disk; `None` when nothing is known that
    /// would make a change fail. The text is for logs.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(service.read_only(), None);
    /// # Ok(()) }) }
    /// ```
    pub fn read_only(&self) -> Option<String> {
        self.store().read_only()
    }

    fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The time of a change of a record: now, or just after its last change if that is later.
    fn after(&self, last: Timestamp) -> Timestamp {
        self.now().max(last.plus_millis(1))
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

/// The provider of the catalogue with this identifier.
fn known_provider(catalogue: &Catalogue, provider: Provider) -> Result<&CatalogueProvider, Error> {
    catalogue.provider(provider).ok_or_else(|| {
        let names = catalogue.provider_names();
        Error::new(
            ErrorKind::NotFound,
            format!("provider {provider} not found, there are {names}"),
        )
    })
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
            error => Self::new(ErrorKind::Internal, "the secret could not be sealed").because(error),
        }
    }
}

/// Shows the settings, and neither the store nor a secret.
impl fmt::Debug for AgentCfg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCfg")
            .field("settings", &self.settings())
            .field("is_shared", &self.store().is_shared())
            .finish_non_exhaustive()
    }
}

/// The error for a user who is no member. A workspace that does not exist gets the same.
fn no_member() -> Error {
    Error::new(ErrorKind::Forbidden, "you are not a member of this workspace")
}

/// There is no API key of this identifier. A text that is none may be a whole key, which is not repeated.
fn no_api_key(key_id: IdRef<'_, ApiKeyId>) -> Error {
    match key_id.is_possible() {
        true => not_found("API key", key_id.as_str()),
        false => Error::new(
            ErrorKind::NotFound,
            "API key not found: key_id must be the id of a key, the 20 letters and digits behind its prefix, without the rest",
        ),
    }
}

fn not_found(what: &str, id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{what} {} not found", quoted(id)))
}
