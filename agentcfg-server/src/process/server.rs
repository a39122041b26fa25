//! The server as a whole: data directory, store, core, listener, and their graceful shutdown.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::service::WebhookSender;
use agentcfg_core::session::LocalSessions;
use agentcfg_core::vault::Vault;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[cfg(feature = "dashboard")]
use crate::api::Dashboard;
use crate::api::{App, CallTimeouts, ModelCalls, Observer, Observers, Streams};
use crate::http::{ByteBudget, Compression, Cors, Leaving};
#[cfg(feature = "dashboard")]
use crate::identity::CodeFlow;
use crate::identity::Identity;
use crate::listen::{self, Drained, Limits, Tls};
use crate::outbound::{Options, WebhookTransport};
use crate::process::backend::{self, Backend};
use crate::process::certificate::{self, Certificate};
use crate::process::config::Config;
use crate::process::datadir::{DataDir, DataDirError};
use crate::process::maintenance::{
    finish_rotation, flush, maintain, remove_deleted_workspaces, remove_old_history, send_webhooks,
};
use crate::process::master_keys;
use crate::process::outbound_options::outbound_options;
pub use crate::process::parts::local_sessions;
use crate::process::parts::{browser, identity, limits_of, managed_credentials, settings, trusted_proxies};
#[cfg(feature = "dashboard")]
use crate::process::sign_in;
pub use crate::process::start_error::StartError;
use crate::process::store_health::{check_store, numbers};
use crate::process::telemetry::{self, AccessLog, Metrics, SpanExport};

/// The listen backlog. Clients that connect all at once, such as after a restart, must not be refused; the system
/// lowers the number to its own limit (`net.core.somaxconn`).
const BACKLOG: u32 = 1024;

/// Listens on an address.
///
/// # Errors
///
/// [`StartError::Listen`] with advice for the operator.
pub async fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, StartError> {
    listen_on(address).map_err(|source| StartError::Listen {
        address,
        setting,
        source,
    })
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server can bind the address although connections of the old one are still in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A server that has opened its store and is not listening yet.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use agentcfg_server::process::{Config, Flags, Server};
/// let server = Server::open(Config::load(Flags::default(), std::env::vars_os())?).await?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7420").await?;
/// let end = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
/// server.run(listener, |address| println!("ready at {address}"), end).await?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    config: Config,
    backend: Backend,
    service: AgentCfg,
    identity: Identity,
    certificate: Option<Arc<Certificate>>,
    outbound: Options,
    metrics_listener: Option<TcpListener>,
    /// Where the dashboard signs in, if the settings name a client.
    #[cfg(feature = "dashboard")]
    sign_in: Option<Arc<CodeFlow>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the store that the configuration names, or creates it.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_server::process::{Config, Flags, Server};
    /// let server = Server::open(Config::load(Flags::default(), std::env::vars_os())?).await?;
    /// server.service().ready().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(config: Config) -> Result<Self, StartError> {
        let is_local = config.provider()?.is_none();
        if is_local && config.is_shared() && config.session_secret.is_none() {
            return Err(StartError::NoSessionSecret);
        }
        // Loaded before anything is created on disk.
        let certificate = Certificate::load(&config)?;
        if let Some(warning) = certificate.as_ref().and_then(|certificate| certificate.warning()) {
            tracing::warn!("{warning}");
        }
        let (catalogue, managed) = (config.catalogue()?, managed_credentials(&config)?);
        let outbound = outbound_options(&config)?;
        let metrics_listener = match config.metrics_listen {
            Some(address) => Some(bind(address, "metrics_listen").await?),
            None => None,
        };
        let mut backend = Backend::open(&config).await?;
        // Checked before `session.key` is created: a start that the master keys refuse leaves no secret.
        let vault = fit_vault(&config, &mut backend).await?;
        if is_local
            && config.session_secret.is_none()
            && !backend.is_new()
            && let Some(dir) = backend.dir()
            && dir.has_lost_session_secret()?
        {
            tracing::warn!(
                data = %dir.path().display(),
                "session.key is missing and is made again: session tokens from before are refused, unless you stop the \
                 server and put the old file back"
            );
        }
        let identity = identity(&config, backend.dir())?;
        let mut builder = AgentCfg::builder(backend.store())
            .settings(settings(&config))?
            .list_cache_bytes(backend::CacheShares::of(config.cache_mb).lists)
            .sessions(identity.verifier())
            .catalogue(catalogue);
        for (provider, credential) in managed {
            builder = builder.managed_credential(provider, credential);
        }
        if let Some(vault) = vault {
            builder = builder.vault(vault);
        }
        builder = builder.clock(backend.clock());
        #[cfg(feature = "dashboard")]
        let sign_in = match config.dashboard {
            true => sign_in::provider(&config, &outbound)?,
            false => None,
        };
        #[cfg(feature = "dashboard")]
        if let Some(provider) = &sign_in {
            builder = builder.renewal(Arc::clone(provider));
        }
        // After all that can refuse the start, because it writes.
        if let Some(limiter) = backend.take_limiter() {
            // Credentials are judged by the time of the database from the first request on.
            if let Err(error) = limiter.read_clock().await {
                tracing::warn!(%error, "the time of the database could not be read at the start");
            }
            builder = builder.rate_limiter(limiter);
        }
        let service = builder.build();
        backend.keep();
        Ok(Self {
            config,
            backend,
            service,
            identity,
            certificate,
            outbound,
            metrics_listener,
            #[cfg(feature = "dashboard")]
            sign_in,
        })
    }

    /// The core.
    pub fn service(&self) -> &AgentCfg {
        &self.service
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The local identity provider, where tokens are issued by this server.
    pub fn sessions(&self) -> Option<&LocalSessions> {
        self.identity.sessions()
    }

    /// Whether this start created the store, in a data directory.
    pub fn is_new(&self) -> bool {
        self.backend.is_new()
    }

    /// The data directory, if the store is in one.
    pub fn dir(&self) -> Option<&DataDir> {
        self.backend.dir()
    }

    /// Serves until `shutdown` resolves; then finishes requests in flight and closes the store.
    ///
    /// `ready` is called when requests are answered.
    ///
    /// # Errors
    ///
    /// When the control socket or the metrics address cannot be bound.
    pub async fn run(
        mut self,
        listener: TcpListener,
        ready: impl FnOnce(SocketAddr),
        shutdown: impl Future<Output = ()>,
    ) -> Result<Drained, StartError> {
        let address = listener.local_addr()?;
        self.backend.announce(address, &self.service, &self.config)?;
        if self.certificate.is_none() && self.config.public_url.is_none() && !address.ip().is_loopback() {
            tracing::info!(
                "{address} is open to other machines without TLS: set tls_cert and tls_key, or put a proxy with TLS in front"
            );
        }
        let metrics = Arc::new(Metrics::new());
        if let Some(state) = self.backend.shared_state() {
            metrics.follow(state);
        }
        let leaving = Leaving::default();
        let mut limits = Limits {
            open_connections: metrics.open_connections.clone(),
            leaving: leaving.clone(),
            ..limits_of(&self.config)
        };
        listen::fit_to_open_files(&mut limits);

        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let streams = Streams::new(self.config.max_streams);
        // Tests of webhooks have a transport of their own, so that many of them do not delay deliveries.
        let transport = || WebhookTransport::with_options(&self.config.webhook_allowed_hosts, &self.outbound);
        let sender = WebhookSender::new(&self.service, Arc::new(transport()?)).map_err(io::Error::other)?;
        metrics.follow_webhooks(sender.numbers());
        let app = self.app(address)?.with_streams(streams.clone());
        let mut app = app.with_webhooks(Arc::new(transport()?)).with_leaving(leaving.clone());
        let mut observers = self.observers(&metrics, &stopped, &mut tasks)?;
        // Without an observer, answers are not measured.
        match observers.len() {
            0 => {}
            1 => app = app.with_observer(observers.swap_remove(0)),
            _ => app = app.with_observer(Arc::new(Observers(observers))),
        }
        if let Some(listener) = self.metrics_listener.take() {
            let end = until(stopped.clone());
            let served = (Arc::clone(&metrics), app.clone());
            tasks.spawn(telemetry::serve_metrics(listener, served, limits.clone(), end));
        }
        let tls = match &self.certificate {
            Some(certificate) => {
                let tls = Tls::new(Arc::clone(certificate) as _)?;
                Some(tls.counting_failures(metrics.failed_handshakes.clone()))
            }
            None => None,
        };
        tasks.spawn(send_webhooks(sender, until(stopped.clone())));
        self.spawn_tasks(&mut tasks, &metrics, &stopped).await?;
        ready(address);
        // Calls of HTTP/2 are `tower` calls of the app, whose futures are boxed.
        let http2 = app.clone();
        let http1 = move |client| {
            let app = app.for_connection(client);
            listen::service_fn(move |request| app.exchange(request))
        };
        let delay = self.config.shutdown_delay;
        let shutdown = async {
            shutdown.await;
            leaving.begin();
            if !delay.is_zero() {
                tracing::info!(
                    seconds = delay.as_secs(),
                    "answering requests for the time of shutdown_delay, while /readyz answers 503"
                );
                tokio::time::sleep(delay).await;
            }
            // Otherwise a stream lasts as long as the shutdown may take.
            streams.close();
        };
        let drained = match tls {
            Some(tls) => listen::serve_tls(listener, &tls, (http1, http2), limits, shutdown).await,
            None => listen::serve(listener, http1, limits, shutdown).await,
        };

        let _ = stop.send(true);
        while tasks.join_next().await.is_some() {}
        flush(&self.service).await;
        self.backend.close().await;
        Ok(drained)
    }

    /// The observers of answers: the access log, the metrics and the spans.
    fn observers(
        &self,
        metrics: &Arc<Metrics>,
        stopped: &watch::Receiver<bool>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Vec<Arc<dyn Observer>>, StartError> {
        let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
        if self.config.access_log {
            observers.push(Arc::new(AccessLog));
        }
        if self.config.metrics_listen.is_some() {
            observers.push(Arc::clone(metrics) as _);
        }
        if let Some(tracing) = self.config.tracing() {
            let (spans, export) = SpanExport::new(&tracing, &self.outbound, metrics.dropped_spans.clone())?;
            observers.push(Arc::new(spans));
            // It ends after those that make spans: they have ended when the server has stopped.
            tasks.spawn(export.run(until(stopped.clone())));
        }
        Ok(observers)
    }

    /// The API with the options of the settings.
    fn app(&self, address: SocketAddr) -> Result<App, StartError> {
        let config = &self.config;
        let timeouts = CallTimeouts {
            first_byte: config.model_call_first_byte_timeout,
            idle: config.model_call_idle_timeout,
        };
        let bodies = ByteBudget::of_bodies(config.max_body_mb_in_flight << 20, config.max_caller_body_mb << 20);
        let answers = ByteBudget::of_answers(config.max_answer_mb_in_flight << 20, config.max_caller_answer_mb << 20);
        let mut app = App::new(self.service.clone(), Cors::new(config.cors_origins.clone()))
            .with_model_calls(ModelCalls::with_options(timeouts, self.outbound.clone())?)
            .with_body_budget(bodies)
            .with_answer_budget(answers)
            .with_browser(browser(config, address)?)
            .with_trusted_proxies(trusted_proxies(config));
        #[cfg(feature = "dashboard")]
        if config.dashboard {
            let mut dashboard = Dashboard::default();
            if let Some(provider) = &self.sign_in {
                dashboard = dashboard.with_provider(Arc::clone(provider) as _);
            }
            app = app.with_dashboard(dashboard);
        }
        if !config.compression {
            app = app.with_compression(Compression::off());
        }
        Ok(app)
    }

    /// Starts the background tasks, which end when the server has stopped.
    async fn spawn_tasks(
        &mut self,
        tasks: &mut JoinSet<()>,
        metrics: &Arc<Metrics>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let end = || until(stopped.clone());
        if master_keys::is_pending(&self.service).await? {
            // This may take longer than the shutdown; the next start resumes it.
            tokio::spawn(finish_rotation(self.service.clone()));
        }
        if let Some(certificate) = self.certificate.take() {
            let shown = Arc::clone(&certificate);
            metrics.follow_certificate(move || shown.expiry());
            tasks.spawn(certificate::renew(certificate, Arc::clone(metrics), end()));
        }
        if let Some((store, last_backup)) = self.backend.embedded() {
            let shown = Arc::clone(&store);
            metrics.follow_store(move || numbers(&shown, &last_backup));
            tasks.spawn(check_store(store, end()));
        }
        if let Some(store) = self.backend.postgres() {
            metrics.follow_pool(move || store.pool_use());
        }
        let store = self.backend.maintenance();
        tasks.spawn(maintain(self.service.clone(), store, Arc::clone(metrics), end()));
        tasks.spawn(remove_deleted_workspaces(self.service.clone(), end()));
        let clock = self.backend.followed_clock();
        tasks.spawn(remove_old_history(self.service.clone(), clock, end()));
        tasks.spawn(self.identity.clone().keep(end()));
        Ok(())
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // A dropped sender counts as a stop.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// The master keys, after a check that they are those that the store needs.
async fn fit_vault(config: &Config, backend: &mut Backend) -> Result<Option<Vault>, StartError> {
    let mut builder = AgentCfg::builder(backend.store());
    if let Some(vault) = backend.take_vault() {
        builder = builder.vault(vault);
    }
    let service = builder.build();
    let checked = master_keys::check_against_store(&service, config, backend.dir()).await;
    checked.map_err(|error| match backend.dir() {
        // The first master key is the first record of a new store.
        Some(dir) if backend.is_new() && backend.store().read_only().is_some() => {
            DataDirError::from_io("create", &dir.store_path(), io::ErrorKind::StorageFull.into()).into()
        }
        _ => StartError::from(error),
    })?;
    Ok(service.vault().map(|vault| Vault::clone(&vault)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn many_connections_wait_to_be_accepted() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "listen").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connected: Vec<_> = (0..400)
            .map(|_| TcpStream::connect_timeout(&address, Duration::from_millis(900)))
            .collect();
        let refused = connected.iter().filter(|connection| connection.is_err()).count();
        assert_eq!(refused, 0);
    }

    #[tokio::test]
    async fn a_start_that_the_settings_refuse_makes_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        let config = Config {
            data: data.clone(),
            openai_base_url: "no URL".to_owned(),
            ..Config::default()
        };
        let error = Server::open(config).await.unwrap_err();
        assert!(matches!(error, StartError::Models(_)), "{error}");
        assert!(!data.exists());
    }
}
