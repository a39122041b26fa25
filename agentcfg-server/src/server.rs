//! The server as a whole: data directory, store, core, listener, and their orderly end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::model::{PlanLimits, Provider};
use agentcfg_core::routing::{Catalogue, InvalidCatalogue};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::service::RewrapProgress;
use agentcfg_core::session::LocalSessions;
use agentcfg_core::store::redb::{OpenError, RedbOptions, RedbStore};
use agentcfg_core::{AgentCfg, Settings};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::App;
use crate::config::{Config, ConfigError};
use crate::control::{self, Order};
use crate::cors::Cors;
use crate::datadir::{DataDir, DataDirError, DataLock};
use crate::identity::Identity;
use crate::listen::{self, Drained, Limits};
use crate::master_keys::{self, MasterKeyFault};
use crate::model_calls::{ModelCalls, Patience};
use crate::telemetry::{self, Metrics};

/// How often the server looks after what no request does.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(10);

/// Why the server did not start, with the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Settings do not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store in it cannot be opened.
    #[error("cannot open the store in {dir}: {source}{}", way_out(.source))]
    Store {
        /// The data directory.
        dir: String,
        /// What the store said.
        source: OpenError,
    },
    /// The master keys cannot be used, or are not those of the store.
    #[error(transparent)]
    MasterKeys(#[from] MasterKeyFault),
    /// The models or the addresses of the providers break a rule.
    #[error("the configuration of the models: {0}")]
    Models(#[from] InvalidCatalogue),
    /// A managed credential breaks a rule.
    #[error("the managed credential for {0} must be 1 to 500 visible ASCII characters")]
    ManagedCredential(Provider),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; stop what uses it, or choose another with {setting}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What chooses it.
        setting: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something else of the system failed.
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

fn way_out(error: &OpenError) -> &'static str {
    match error {
        OpenError::Held => "; stop that process first, or name another directory with --data",
        OpenError::TooNew { .. } => "; run the release that wrote it, nothing was changed",
        OpenError::Damaged(_) => {
            "; restore a backup into a new directory with `agentcfg-server restore`, nothing was changed"
        }
        _ => "",
    }
}

/// Opens the store in a data directory that this process holds.
///
/// # Errors
///
/// [`StartError::Store`] with the way out.
pub fn open_store(lock: &DataLock, cache_mb: u64) -> Result<RedbStore, StartError> {
    // One half for pages of the file, the other for records that are read often.
    let half = usize::try_from(cache_mb << 19).unwrap_or(usize::MAX);
    let options = RedbOptions {
        cache_bytes: half,
        hot_bytes: half,
        ..RedbOptions::default()
    };
    RedbStore::open(lock.dir().store_path(), options).map_err(|source| StartError::Store {
        dir: lock.dir().path().display().to_string(),
        source,
    })
}

/// Listens on an address.
///
/// # Errors
///
/// [`StartError::Listen`] with the way out.
pub async fn bind(address: std::net::SocketAddr, setting: &'static str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen {
        address,
        setting,
        source,
    })
}

/// A server that has its data and does not listen yet.
pub struct Server {
    config: Config,
    lock: DataLock,
    store: Arc<RedbStore>,
    service: AgentCfg,
    identity: Identity,
    is_new: bool,
}

impl Server {
    /// Takes the data directory and opens the store in it, making both where there is nothing.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn open(config: Config) -> Result<Self, StartError> {
        config.provider()?;
        let dir = DataDir::open_or_create(&config.data)?;
        let lock = dir.lock()?;
        let is_new = !dir.has_store()?;
        // Before the store: a crash between the two leaves a key without a store, never the other way round.
        let vault = master_keys::find(&config, &dir, is_new)?;
        let store = Arc::new(open_store(&lock, config.cache_mb)?);
        let identity = Identity::new(&config, &dir)?;
        let mut builder = AgentCfg::builder_on(Arc::clone(&store) as _)
            .settings(settings(&config))
            .sessions(identity.verifier())
            .catalogue(catalogue(&config)?);
        for (provider, credential) in managed_credentials(&config)? {
            builder = builder.managed_credential(provider, credential);
        }
        if let Some(vault) = vault {
            builder = builder.vault(vault);
        }
        let service = builder.build();
        wait(master_keys::fit(&service, &config, &dir))??;
        Ok(Self {
            config,
            lock,
            store,
            service,
            identity,
            is_new,
        })
    }

    /// The core.
    pub fn service(&self) -> &AgentCfg {
        &self.service
    }

    /// The local identity provider, where tokens are issued by this server.
    pub fn sessions(&self) -> Option<&LocalSessions> {
        self.identity.local()
    }

    /// Whether the store was made just now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The data directory.
    pub fn dir(&self) -> &DataDir {
        self.lock.dir()
    }

    /// What the owner of the data directory can order while the server runs.
    fn obey(&self) -> impl Fn(Order, &mut dyn io::Write) -> io::Result<()> + Send + Sync + 'static {
        let (store, service, dir) = (Arc::clone(&self.store), self.service.clone(), self.dir().clone());
        let configured = !self.config.master_keys.is_empty();
        let runtime = tokio::runtime::Handle::current();
        move |order, out| match order {
            Order::Backup => store.backup(out).map(drop).map_err(io::Error::other),
            Order::RotateMasterKey { .. } if configured => Err(io::Error::other(MasterKeyFault::FromConfiguration)),
            Order::RotateMasterKey { drop_old } => {
                let (sender, lines) = std::sync::mpsc::channel::<String>();
                let (service, dir) = (service.clone(), dir.clone());
                let rotation = runtime.spawn(async move {
                    let mut say = |line: String| {
                        tracing::info!("master key: {line}");
                        // Whoever asked may have gone; the rotation goes on.
                        let _ = sender.send(line);
                    };
                    master_keys::rotate(&service, &dir, drop_old, &mut say).await
                });
                for line in lines {
                    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
                }
                runtime.block_on(rotation)?.map_err(io::Error::other)
            }
        }
    }

    /// Serves until `shutdown` resolves; then finishes what is in flight and closes the store.
    ///
    /// `ready` is called when requests are answered.
    ///
    /// # Errors
    ///
    /// When the control socket or the metrics address cannot be had.
    pub async fn run(
        mut self,
        listener: TcpListener,
        ready: impl FnOnce(std::net::SocketAddr),
        shutdown: impl Future<Output = ()>,
    ) -> Result<Drained, StartError> {
        let address = listener.local_addr()?;
        self.lock.announce(address)?;
        let _control = control::spawn(&self.lock, self.obey())?;
        let metrics = Arc::new(Metrics::new());
        let mut limits = Limits {
            open_connections: metrics.open_connections.clone(),
            ..Limits::from(&self.config)
        };
        listen::fit_to_open_files(&mut limits);

        let (stop, stopped) = watch::channel(false);
        let patience = Patience {
            first_byte: self.config.model_call_first_byte_timeout,
            idle: self.config.model_call_idle_timeout,
        };
        let mut app = App::new(self.service.clone(), Cors::new(self.config.cors_origins.clone()))
            .with_model_calls(ModelCalls::new(patience)?);
        let metrics_server = match self.config.metrics_listen {
            Some(address) => {
                let listener = bind(address, "metrics_listen").await?;
                app = app.with_metrics(Arc::clone(&metrics));
                let serving =
                    telemetry::serve_metrics(listener, Arc::clone(&metrics), limits.clone(), until(stopped.clone()));
                Some(tokio::spawn(serving))
            }
            None => None,
        };
        if master_keys::is_pending(&self.service).await? {
            tokio::spawn(finish_rotation(self.service.clone()));
        }
        let maintenance = tokio::spawn(maintain(
            self.service.clone(),
            Arc::clone(&self.store),
            metrics,
            until(stopped.clone()),
        ));

        let keeping_keys = tokio::spawn(self.identity.clone().keep(until(stopped.clone())));
        ready(address);
        let answering = listen::service_fn(move |request| {
            let app = app.clone();
            async move { Ok(app.respond(request).await) }
        });
        let drained = listen::serve(listener, answering, limits, shutdown).await;

        let _ = stop.send(true);
        let _ = maintenance.await;
        let _ = keeping_keys.await;
        if let Some(server) = metrics_server {
            let _ = server.await;
        }
        if let Err(error) = self.service.flush().await {
            tracing::warn!(?error, "could not write when API keys were last used");
        }
        self.store.close();
        Ok(drained)
    }
}

/// Seals what is still under an older master key: a rotation was killed, or the configured keys have a new first one.
async fn finish_rotation(service: AgentCfg) {
    let mut report = |progress: RewrapProgress| {
        tracing::info!(
            examined = progress.examined,
            rewrapped = progress.rewrapped,
            "sealing provider keys under the first master key"
        );
    };
    match service.rewrap_provider_keys(&mut report).await {
        Ok(done) => tracing::info!(
            examined = done.examined,
            rewrapped = done.rewrapped,
            unreadable = done.unreadable,
            "every provider key is sealed under the first master key, no other one is needed any more"
        ),
        Err(error) => tracing::warn!(%error, "could not seal every provider key under the first master key"),
    }
}

/// Runs a future to its end from a place that cannot wait for it, within a runtime or without.
fn wait<T: Send>(future: impl Future<Output = T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        // A runtime must neither be used nor dropped on a thread of another one.
        let waiting = scope.spawn(|| Ok(tokio::runtime::Builder::new_current_thread().build()?.block_on(future)));
        let panicked = |_| io::Error::other("a step of the start panicked");
        waiting.join().map_err(panicked).flatten()
    })
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is as good as a stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Looks after what no request does: when keys were last used, and whether storage answers.
async fn maintain(service: AgentCfg, store: Arc<RedbStore>, metrics: Arc<Metrics>, stopped: impl Future<Output = ()>) {
    let mut stopped = std::pin::pin!(stopped);
    loop {
        metrics.storage_ready.set(i64::from(store.ready()));
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(MAINTENANCE_EVERY) => {}
        }
        if let Err(error) = service.flush().await {
            tracing::warn!(?error, "could not write when API keys were last used, trying again");
        }
    }
}

/// The local identity provider with the deployment's secret.
///
/// # Errors
///
/// When the secret in the data directory cannot be had.
pub fn local_sessions(config: &Config, dir: &DataDir) -> Result<LocalSessions, DataDirError> {
    Ok(match &config.session_secret {
        Some(secret) => LocalSessions::new(secret.expose().as_bytes()),
        None => LocalSessions::new(dir.session_secret()?.as_bytes()),
    })
}

fn catalogue(config: &Config) -> Result<Catalogue, InvalidCatalogue> {
    Catalogue::default()
        .with_models(config.models.clone())?
        .with_base_url(Provider::OpenAi, &config.openai_base_url)?
        .with_base_url(Provider::Anthropic, &config.anthropic_base_url)
}

fn managed_credentials(config: &Config) -> Result<Vec<(Provider, ProviderCredential)>, StartError> {
    let configured = [
        (Provider::OpenAi, &config.openai_api_key),
        (Provider::Anthropic, &config.anthropic_api_key),
    ];
    let given = configured
        .into_iter()
        .filter_map(|(provider, secret)| secret.as_ref().map(|secret| (provider, secret)));
    given
        .map(|(provider, secret)| {
            let credential = ProviderCredential::new(secret.expose());
            credential
                .map(|credential| (provider, credential))
                .map_err(|_| StartError::ManagedCredential(provider))
        })
        .collect()
}

fn settings(config: &Config) -> Settings {
    let limit = |agents: u64| (agents > 0).then(|| u32::try_from(agents).unwrap_or(u32::MAX));
    Settings {
        plan_limits: PlanLimits {
            free: limit(config.plan_limit_free),
            pro: limit(config.plan_limit_pro),
            team: limit(config.plan_limit_team),
            enterprise: limit(config.plan_limit_enterprise),
        },
        default_plan: config.default_plan,
        session_rate_limit: config.session_rate_limit,
        status_ttl_seconds: u32::try_from(config.status_ttl.as_secs()).unwrap_or(u32::MAX),
        write_scope_configures_agents: config.write_scope_configures_agents,
        operators: config.operators.iter().cloned().collect(),
    }
}
