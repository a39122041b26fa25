//! A typed client of the agentcfg REST API.
//!
//! ```no_run
//! use agentcfg_client::model::{AgentPatch, NewAgent, Patch, Precondition};
//! use agentcfg_client::{AgentFilter, Client};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("http://127.0.0.1:7420")
//!     .api_key(std::env::var("AGENTCFG_API_KEY")?)
//!     .build()?;
//! let workspace = client.list_workspaces().await?[0].workspace.id;
//!
//! let writer = client.create_agent(&NewAgent::new(workspace, "writer".parse()?, "Writer")).await?;
//! let patch = AgentPatch::default().role("author");
//! match client.update_agent(None, "writer", &patch, &Precondition::matches(writer.tag)).await {
//!     Ok(writer) => println!("changed at {}", writer.value.updated_at),
//!     Err(error) if error.is_precondition_failed() => println!("another writer was faster"),
//!     Err(error) => return Err(error.into()),
//! }
//! let agents = client.list_agents(workspace, &AgentFilter::default()).await?;
//! assert!(agents.value.iter().any(|agent| agent.agent_id == "writer"));
//! # Ok(())
//! # }
//! ```
//!
//! # Testing
//!
//! With the feature `testing`, [`testing::FakeServer`] is the API in the process of a test: the real rules, messages
//! and header fields, a store in memory, a clock that the test moves, and a port of its own. The app under test gets
//! its URL and a token.
//!
//! ```
//! use agentcfg_client::Client;
//! use agentcfg_client::testing::FakeServer;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = FakeServer::start().await?;
//! let client = Client::builder(server.url()).session_token(server.token("ada")?).build()?;
//! assert!(client.list_workspaces().await?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - Each endpoint of the API's resources is one method of [`Client`] with the types of [`agentcfg_core::model`], which is
//!   re-exported as [`model`]; the methods have the names of the core's operations. Model calls, browser sessions, `/mcp`
//!   and the documentation have none.
//! - All clones of a client share one connection pool. Redirects are not followed, so no other host receives the
//!   credential, and the size of a response is bounded.
//! - Idempotent calls are retried with exponential, jittered backoff that respects the server's `Retry-After`. Other
//!   changes are retried only when the server has certainly changed nothing; [`RetryPolicy`] has the table.
//! - [`Client::changes`] follows the changes of a workspace across lost connections, and [`Client::mirror`] keeps a copy of
//!   its agents.
//! - [`Builder::proxy`] and [`Builder::proxy_from_env`] send calls through an HTTP proxy.
//! - [`Timeouts`] bound connecting, each attempt, and the whole call with all its retries.
//! - [`Error`] classifies failures by what a caller can do about them, above all [`Error::may_have_been_applied`]:
//!   whether to read before trying again.
//!
//! Calls need a Tokio runtime with time and I/O enabled; [`Builder::build`] does not. `https`
//! trusts the roots of the Mozilla programme and those given to [`Builder::root_certificates`]; the
//! crate installs no process-wide TLS provider.
//!
//! | feature | gives |
//! |---|---|
//! | `tls-aws-lc` (default) | the crypto provider aws-lc-rs, which is the default of rustls and compiles C |
//! | `tls-ring` | the crypto provider *ring* |
//! | `tracing` | a span for each attempt of a call, with method, path and status, and neither query nor credential |
//! | `testing` | [`testing::FakeServer`]: the API in the process of a test |
//!
//! An app has one of them, the one that its other crates use: with both in the tree, `rustls::ClientConfig::builder()`
//! of the app does not know which to take, and panics. Without either, `https` needs [`Builder::tls_config`] or a
//! provider that the app has installed for the process.

#![warn(missing_debug_implementations)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod agents;
mod api_keys;
mod apply;
mod attempt_outcome;
mod audit;
mod budgets;
mod builder;
mod change_page;
mod changes;
mod client;
mod connect;
mod error;
mod export;
mod health;
mod labels;
mod members;
mod mirror;
mod models;
mod operators;
mod polls;
mod provider_keys;
mod proxy;
mod rate_limit;
mod reconnect;
mod released_file;
mod released_mirror;
mod releases;
mod request;
mod response;
mod retry;
mod sse;
mod status;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod timeouts;
mod trace;
mod tunnel;
mod usage;
mod versions;
mod webhooks;
mod whoami;
mod workspaces;

#[cfg(test)]
mod tests;

pub use agentcfg_core::model::{self, AgentFilter, Tagged};
pub use agentcfg_core::secret::ProviderCredential;
pub use audit::Page;
pub use builder::Builder;
pub use change_page::ChangePage;
pub use changes::{ChangeStream, Followed};
pub use client::Client;
pub use error::Error;
pub use export::Export;
pub use mirror::{Mirror, MirrorBuilder};
pub use rate_limit::RateLimit;
pub use released_mirror::{ReleasedMirror, ReleasedMirrorBuilder};
pub use releases::Released;
pub use retry::RetryPolicy;
pub use timeouts::Timeouts;
pub use versions::{Agents, SelectedVersion};
