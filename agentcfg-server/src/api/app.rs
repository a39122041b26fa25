//! The API as a service: what it is made of. How it answers a request is in `exchange.rs`.

mod exchange;
mod outages;
mod pages;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::routing::Catalogue;
use agentcfg_core::webhook::Transport;
use hyper::http::request::Parts;

use self::outages::Outages;
use crate::api::feed::Streams;
use crate::api::model_calls::ModelCalls;
use crate::api::observer::Observer;
#[cfg(feature = "dashboard")]
use crate::api::ui::Dashboard;
use crate::http::request::RequestIds;
use crate::http::{Browser, ByteBudget, Compression, Cors, Disconnect, Leaving, PeerAddress, TrustedProxies};

/// The API as a function from requests to responses; clones share everything.
///
/// It is a [`tower_service::Service`], so that an app with a router of its own can mount it under a
/// prefix.
///
/// ```
/// use agentcfg_server::App;
/// use hyper::{Request, Response};
/// use tower_service::Service;
/// /// An app with routes of its own gives `App` the others.
/// async fn route(app: &mut App, request: Request<String>) -> Response<agentcfg_server::Body> {
///     let Ok(response) = app.call(request).await;
///     response
/// }
/// ```
#[derive(Clone)]
pub struct App {
    connected: Arc<Connected>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    /// The API of a service. Answers are compressed for clients that accept gzip. Model calls are refused until [a
    /// proxy is set](Self::with_model_calls).
    ///
    /// ```
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Cors};
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let app = App::new(service, Cors::new(vec!["https://dashboard.example.com".into()]));
    /// ```
    pub fn new(service: AgentCfg, cors: Cors) -> Self {
        Self::make(AppShared::new(service, cors))
    }

    /// The same API, with model calls through this proxy.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Cors, ModelCalls, CallTimeouts};
    /// use std::time::Duration;
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let timeouts = CallTimeouts::default().first_byte(Duration::from_secs(120));
    /// let app = app.with_model_calls(ModelCalls::new(timeouts)?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_model_calls(&self, model_calls: ModelCalls) -> Self {
        self.with(|shared| shared.model_calls = Some(model_calls))
    }

    /// The same API, with tests of webhooks by this transport. Without one they are refused.
    ///
    /// The events themselves are sent by a [`WebhookSender`](agentcfg_core::service::WebhookSender).
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Cors, WebhookTransport};
    /// use std::sync::Arc;
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let app = app.with_webhooks(Arc::new(WebhookTransport::new(&[])?));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_webhooks(&self, transport: Arc<dyn Transport>) -> Self {
        self.with(|shared| shared.webhooks = Some(transport))
    }

    /// The same API, with another budget of request bodies in flight. A body that does not fit is refused with 429 or
    /// 503.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, ByteBudget, Cors};
    /// # let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let app = App::new(service, Cors::default()).with_body_budget(ByteBudget::of_bodies(64 << 20, 16 << 20));
    /// ```
    #[must_use]
    pub fn with_body_budget(&self, body_budget: ByteBudget) -> Self {
        self.with(|shared| shared.body_budget = body_budget)
    }

    /// The same API, with another budget of answers that their clients have not read. An answer that does not fit is
    /// refused with 429 or 503.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, ByteBudget, Cors};
    /// # let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let app = App::new(service, Cors::default()).with_answer_budget(ByteBudget::of_answers(64 << 20, 16 << 20));
    /// ```
    #[must_use]
    pub fn with_answer_budget(&self, answer_budget: ByteBudget) -> Self {
        self.with(|shared| {
            shared.service = shared.service.with_answer_budget(Arc::new(answer_budget.clone()));
            shared.answer_budget = answer_budget;
        })
    }

    /// The same API, with other limits of streams of changes. Keep a clone to [close](Streams::close) them at shutdown.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Cors, Streams};
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let streams = Streams::new(200);
    /// let app = app.with_streams(streams.clone());
    /// // At shutdown:
    /// streams.close();
    /// ```
    #[must_use]
    pub fn with_streams(&self, streams: Streams) -> Self {
        self.with(|shared| shared.streams = streams)
    }

    /// The same API, as browsers see it: their cookies and the origin of its pages follow from that.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Browser, Cors};
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let app = app.with_browser(Browser::default().public_url("https://agents.example.com")?);
    /// # Ok::<(), agentcfg_server::InvalidPublicUrl>(())
    /// ```
    #[must_use]
    pub fn with_browser(&self, browser: Browser) -> Self {
        self.with(|shared| shared.browser = browser)
    }

    /// The same API, with the web dashboard at `/` and below `/ui/`.
    #[cfg(feature = "dashboard")]
    #[must_use]
    pub fn with_dashboard(&self, dashboard: Dashboard) -> Self {
        self.with(|shared| shared.dashboard = Some(dashboard))
    }

    /// The same API, with answers compressed or not.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{App, Compression, Cors};
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// // A proxy in front compresses.
    /// let app = app.with_compression(Compression::off());
    /// ```
    #[must_use]
    pub fn with_compression(&self, compression: Compression) -> Self {
        self.with(|shared| shared.compression = compression)
    }

    /// The same API, with an observer of every answer.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// use agentcfg_server::{Answered, App, Cors, Observer};
    /// use std::sync::Arc;
    ///
    /// struct Print;
    ///
    /// impl Observer for Print {
    ///     fn answered(&self, answered: &Answered<'_>) {
    ///         println!("{} {}: {}", answered.method, answered.route, answered.status);
    ///     }
    /// }
    ///
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let app = app.with_observer(Arc::new(Print));
    /// ```
    #[must_use]
    pub fn with_observer(&self, observer: Arc<dyn Observer>) -> Self {
        self.with(|shared| shared.observer = Some(observer))
    }

    /// The same API, whose readiness fails once the server is about to stop.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use agentcfg_server::{App, Cors, Leaving};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let leaving = Leaving::default();
    /// let app = app.with_leaving(leaving.clone());
    /// leaving.begin();
    /// let request = hyper::Request::get("/readyz").body(String::new())?;
    /// assert_eq!(app.respond(request).await.status(), 503);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_leaving(&self, leaving: Leaving) -> Self {
        self.with(|shared| shared.leaving = leaving)
    }

    /// The same API behind these proxies, whose word counts for the addresses that observers get.
    ///
    /// ```
    /// # use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # use agentcfg_server::{App, Cors, TrustedProxies};
    /// # let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
    /// let app = app.with_trusted_proxies(TrustedProxies::new(vec!["10.0.0.0/8".parse()?]));
    /// # Ok::<(), agentcfg_server::InvalidNetwork>(())
    /// ```
    #[must_use]
    pub fn with_trusted_proxies(&self, trusted_proxies: TrustedProxies) -> Self {
        self.with(|shared| shared.trusted_proxies = trusted_proxies)
    }

    /// The same API for the requests of one client. A server makes one for each connection: reads of a client that
    /// disconnects are cancelled, and each connection counts its references apart, since a count that many threads
    /// change is slow.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use agentcfg_server::{App, Disconnect, WatchClient};
    /// # fn example(app: &App, connection: Arc<dyn WatchClient>) {
    /// let of_one_client = app.for_connection(Disconnect::new(connection));
    /// # }
    /// ```
    #[must_use]
    pub fn for_connection(&self, client: Disconnect) -> Self {
        Self {
            connected: Arc::new(Connected {
                shared: Arc::clone(&self.connected.shared),
                client,
            }),
        }
    }

    /// The same API with a change, and with request ids of its own.
    fn with(&self, change: impl FnOnce(&mut AppShared)) -> Self {
        let mut shared = AppShared::clone(&self.connected.shared);
        change(&mut shared);
        Self::make(shared)
    }

    fn make(shared: AppShared) -> Self {
        Self {
            connected: Arc::new(Connected {
                shared: Arc::new(shared),
                client: Disconnect::default(),
            }),
        }
    }
}

/// What the requests of one connection share; see [`App::for_connection`].
struct Connected {
    shared: Arc<AppShared>,
    /// Detects nothing where no listener watches the client.
    client: Disconnect,
}

impl Connected {
    /// The address of the client of a request.
    fn client_of(&self, head: &Parts) -> Option<IpAddr> {
        let peer = head.extensions.get::<PeerAddress>().map(|peer| peer.0);
        let peer = peer.or_else(|| self.client.address())?;
        Some(self.shared.trusted_proxies.client(peer, &head.headers))
    }
}

/// What the requests of an app share.
#[derive(Clone)]
struct AppShared {
    service: AgentCfg,
    /// Its providers, which never change, decide how paths of model calls are read.
    catalogue: Arc<Catalogue>,
    /// `None` where no origin is allowed.
    cors: Option<Cors>,
    compression: Compression,
    request_ids: RequestIds,
    model_calls: Option<ModelCalls>,
    webhooks: Option<Arc<dyn Transport>>,
    body_budget: ByteBudget,
    answer_budget: ByteBudget,
    streams: Streams,
    browser: Browser,
    #[cfg(feature = "dashboard")]
    dashboard: Option<Dashboard>,
    observer: Option<Arc<dyn Observer>>,
    leaving: Leaving,
    outages: Arc<Outages>,
    trusted_proxies: TrustedProxies,
}

impl AppShared {
    /// The parts of an app that has nothing but a service.
    fn new(service: AgentCfg, cors: Cors) -> Self {
        let answer_budget = ByteBudget::of_answers(ByteBudget::SERVER_ANSWERS_MB << 20, ByteBudget::CALLER_MB << 20);
        Self {
            catalogue: service.catalogue(),
            service: service.with_answer_budget(Arc::new(answer_budget.clone())),
            cors: cors.allows_any().then_some(cors),
            compression: Compression::on(),
            request_ids: RequestIds::new(),
            model_calls: None,
            webhooks: None,
            body_budget: ByteBudget::of_bodies(ByteBudget::SERVER_MB << 20, ByteBudget::CALLER_MB << 20),
            answer_budget,
            streams: Streams::default(),
            browser: Browser::default(),
            #[cfg(feature = "dashboard")]
            dashboard: None,
            observer: None,
            leaving: Leaving::default(),
            outages: Arc::default(),
            trusted_proxies: TrustedProxies::default(),
        }
    }
}
