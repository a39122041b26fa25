//! A server for the tests of an app that calls agentcfg, behind the feature `testing`.
//!
//! [`FakeServer`] is the API itself, the crate `agentcfg-server`, in the process of the test: the rules, messages and
//! header fields of the service are the real ones. Its store is in memory, its clock stands until the test moves it,
//! and it listens on a port of its own on the loopback address, so that tests run side by side.
//!
//! ```toml
//! [dev-dependencies]
//! agentcfg-client = { version = "0.1", features = ["testing"] }
//! ```
//!
//! A test of an app that embeds the service needs no server: `agentcfg-core` with a `MemoryStore` and a `ManualClock`
//! is one already.

use std::fmt;
use std::io;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::Settings;
use agentcfg_core::clock::{Clock, ManualClock};
use agentcfg_core::service::Builder;
use agentcfg_core::session::{LocalSessions, SESSION_SECONDS};
use agentcfg_core::store::MemoryStore;
use agentcfg_server::{App, Cors};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::{Client, Error};

/// When a fake server starts, by its clock.
const START: &str = "2026-01-01T00:00:00Z";
/// The secret of its session tokens, which no other server takes.
const SECRET: &[u8] = b"the secret of a server for tests alone";
/// Requests a minute of each user. A clock that stands opens no further window.
const RATE_LIMIT: u32 = 1_000_000;

/// A server of the API in this process, for tests. It ends when it is dropped.
///
/// ```
/// use agentcfg_client::AgentFilter;
/// use agentcfg_client::model::{NewAgent, NewWorkspace};
/// use agentcfg_client::testing::FakeServer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = FakeServer::start().await?;
/// let ada = server.client("ada")?;
/// let studio = ada.create_workspace(&NewWorkspace::new("Studio")).await?.id;
/// ada.create_agent(&NewAgent::new(studio, "writer".parse()?, "Writer")).await?;
///
/// // What the app does, with the URL and a credential of the server.
/// let agents = ada.list_agents(studio, &AgentFilter::default()).await?.value;
/// assert_eq!(agents[0].agent_id, "writer");
/// assert_eq!(agents[0].created_at.to_string(), "2026-01-01T00:00:00.000Z");
/// # Ok(())
/// # }
/// ```
pub struct FakeServer {
    url: String,
    service: AgentCfg,
    clock: Arc<ManualClock>,
    sessions: LocalSessions,
    listening: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server with an empty store. It is a task of the runtime that calls this.
    ///
    /// A user may make a million requests a minute, because the clock stands. The limit of an API key is that of the
    /// key.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = agentcfg_client::testing::FakeServer::start().await?;
    /// server.client("ada")?.ready().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start() -> io::Result<Self> {
        let settings = Settings::default().session_rate_limit(RATE_LIMIT);
        let builder = AgentCfg::builder(MemoryStore::new()).settings(settings);
        Self::serve(builder.map_err(io::Error::other)?).await
    }

    /// Starts a server for this service, such as one with other settings, models or a store with data. Its clock and
    /// its verifier of session tokens are replaced by those of the fake server.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::testing::FakeServer;
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let builder = AgentCfg::builder(MemoryStore::new()).settings(Settings::default().session_rate_limit(1_u32))?;
    /// let server = FakeServer::serve(builder).await?;
    /// let ada = server.client("ada")?;
    /// ada.list_workspaces().await?;
    /// let refused = ada.list_workspaces().await.unwrap_err();
    /// assert!(refused.is_rate_limited());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve(builder: Builder) -> io::Result<Self> {
        let clock = Arc::new(ManualClock::at(START.parse().map_err(io::Error::other)?));
        let sessions = || LocalSessions::new(SECRET).map_err(io::Error::other);
        let builder = builder
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .sessions(sessions()?);
        let service = builder.build();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let app = App::new(service.clone(), Cors::default());
        Ok(Self {
            url,
            service,
            clock,
            sessions: sessions()?,
            listening: tokio::spawn(listen(listener, app)),
        })
    }

    /// The base URL, for the settings of the app under test.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = agentcfg_client::testing::FakeServer::start().await?;
    /// assert!(server.url().starts_with("http://127.0.0.1:"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The service behind the API, to set up what the app under test finds, and to read what it has done.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = agentcfg_client::testing::FakeServer::start().await?;
    /// let ada = server.service().trusted_user("ada")?;
    /// assert!(server.service().list_workspaces(&ada).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn service(&self) -> &AgentCfg {
        &self.service
    }

    /// The clock of the server. It stands until it is advanced.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = agentcfg_client::testing::FakeServer::start().await?;
    /// let ada = server.client("ada")?;
    /// server.clock().advance_millis(3_600_000);
    /// let refused = ada.list_workspaces().await.unwrap_err();
    /// assert!(refused.is_unauthorized(), "a session token lasts an hour");
    /// # Ok(())
    /// # }
    /// ```
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// A session token of a user, which lasts an hour by the clock of the server.
    ///
    /// # Errors
    ///
    /// For a text that is no identifier of a user.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = agentcfg_client::testing::FakeServer::start().await?;
    /// use agentcfg_client::Client;
    /// let client = Client::builder(server.url()).session_token(server.token("ada")?).build()?;
    /// assert_eq!(client.whoami().await?.id, "ada");
    /// # Ok(())
    /// # }
    /// ```
    pub fn token(&self, user_id: &str) -> Result<String, Error> {
        let issued = self.sessions.issue(user_id, SESSION_SECONDS, self.clock.now());
        issued.map_err(|error| Error::input(error.to_string()))
    }

    /// A client with a session of this user.
    ///
    /// # Errors
    ///
    /// As [`Self::token`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = agentcfg_client::testing::FakeServer::start().await?;
    /// assert!(server.client("ada")?.list_workspaces().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self, user_id: &str) -> Result<Client, Error> {
        Client::builder(&self.url).session_token(self.token(user_id)?).build()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        // The connections are in a set of the task, so they end with it.
        self.listening.abort();
    }
}

/// Shows no secret.
impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

async fn listen(listener: TcpListener, app: App) {
    let mut connections = JoinSet::new();
    loop {
        // A client that has gone before it was accepted is no reason to end.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let app = app.clone();
        let exchange = service_fn(move |request| app.exchange(request));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), exchange));
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agentcfg_core::model::{
        After, AgentPatch, Environment, NewAgent, NewApiKey, NewWorkspace, Permission, Precondition, Scope, WorkspaceId,
    };

    use super::*;
    use crate::{Followed, RetryPolicy};

    async fn studio(server: &FakeServer) -> (Client, WorkspaceId) {
        let ada = server.client("ada").unwrap();
        let studio = ada.create_workspace(&NewWorkspace::new("Studio")).await.unwrap().id;
        let writer = NewAgent::new(studio, "writer".parse().unwrap(), "Writer");
        ada.create_agent(&writer).await.unwrap();
        (ada, studio)
    }

    #[tokio::test]
    async fn the_service_and_its_clients_have_one_state_and_one_clock() {
        let server = FakeServer::start().await.unwrap();
        let (ada, studio) = studio(&server).await;
        server.clock().advance_millis(1500);
        let user = server.service().trusted_user("ada").unwrap();
        let editor = NewAgent::new(studio, "editor".parse().unwrap(), "Editor");
        server.service().create_agent(&user, editor).await.unwrap();
        let mut changes = ada.changes(studio, After::Start);
        let created = async {
            loop {
                match changes.next().await.unwrap() {
                    Followed::Change(change) if change.target.id == "editor" => break change,
                    _ => {}
                }
            }
        };
        let change = tokio::time::timeout(Duration::from_secs(20), created).await.unwrap();
        assert_eq!(change.created_at.to_string(), "2026-01-01T00:00:01.500Z");
    }

    #[tokio::test]
    async fn servers_are_apart_and_end_with_their_value() {
        let (first, second) = (FakeServer::start().await.unwrap(), FakeServer::start().await.unwrap());
        studio(&first).await;
        assert!(
            second
                .client("ada")
                .unwrap()
                .list_workspaces()
                .await
                .unwrap()
                .is_empty()
        );
        let (url, token) = (first.url().to_owned(), first.token("ada").unwrap());
        let client = Client::builder(&url)
            .session_token(&token)
            .retry(RetryPolicy::NEVER)
            .build()
            .unwrap();
        client.list_workspaces().await.unwrap();
        drop(first);
        let ended = async {
            while client.list_workspaces().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Client::builder(&url)
                .retry(RetryPolicy::NEVER)
                .build()
                .unwrap()
                .healthy()
                .await
                .unwrap_err()
        };
        let error = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
        assert!(error.is_connect(), "{error:?}");
    }

    #[tokio::test]
    async fn an_error_names_the_faulty_fields() {
        let server = FakeServer::start().await.unwrap();
        let (ada, studio) = studio(&server).await;
        let mut new = NewAgent::new(studio, "editor".parse().unwrap(), " ");
        new.capabilities = vec!["edit".into(), String::new()];
        let error = ada.create_agent(&new).await.unwrap_err();
        assert!(error.is_invalid(), "{error:?}");
        assert_eq!(error.fields(), ["display_name", "capabilities[1]"]);
        let other = ada.get_agent(studio, "unknown").await.unwrap_err();
        assert!(other.fields().is_empty());
    }

    #[tokio::test]
    async fn a_412_has_the_current_tag_for_callers_that_may_read_the_agent() {
        let server = FakeServer::start().await.unwrap();
        let (ada, studio) = studio(&server).await;
        let stale = ada.get_agent(studio, "writer").await.unwrap().tag;
        let patch = AgentPatch::default().role("author");
        let current = ada
            .update_agent(None, "writer", &patch, &Precondition::None)
            .await
            .unwrap()
            .tag;
        let key = |permissions: Vec<Permission>| {
            NewApiKey::new(studio, "ci", Environment::Production, Scope::Write).permissions(permissions)
        };
        let refused = async |client: Client| {
            let error = client
                .update_agent(Some(studio), "writer", &patch, &Precondition::matches(stale))
                .await
                .unwrap_err();
            assert!(error.is_precondition_failed(), "{error:?}");
            (error.current_tag(), error.message().contains(&current.to_string()))
        };
        let configures = vec![Permission::AgentsConfigure];
        let reads_too = vec![Permission::AgentsConfigure, Permission::AgentsRead];
        for (permissions, expected) in [(reads_too, Some(current)), (configures, None)] {
            let key = ada.create_api_key(&key(permissions)).await.unwrap().key;
            let client = ada.with_api_key(key).unwrap();
            assert_eq!(refused(client).await, (expected, expected.is_some()));
        }
        assert_eq!(refused(ada.clone()).await, (Some(current), true));
        let missing = ada
            .update_agent(Some(studio), "unknown", &patch, &Precondition::matches(stale))
            .await;
        assert_eq!(missing.unwrap_err().current_tag(), None);
    }
}
