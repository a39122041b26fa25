//! A typed client of the agentcfg REST API.
//!
//! ```no_run
//! use agentcfg_client::model::{AgentPatch, NewAgent, Patch, Precondition};
//! use agentcfg_client::{AgentFilter, Client};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("http://127.0.0.1:7420")
//!     .api_key(std::env::var("API_KEY")?)
//!     .build()?;
//! let workspace = client.list_workspaces().await?[0].workspace.id;
//!
//! let writer = client.create_agent(&NewAgent::new(workspace, "writer", "Writer")).await?;
//! let patch = AgentPatch { role: Patch::Set("author".into()), ..AgentPatch::default() };
//! match client.update_agent(None, "writer", &patch, &Precondition::matches(&writer.etag)).await {
//!     Ok(writer) => println!("changed at {}", writer.value.updated_at),
//!     Err(error) if error.is_precondition_failed() => println!("somebody was faster"),
//!     Err(error) => return Err(error.into()),
//! }
//! let agents = client.list_agents(workspace, &AgentFilter::default()).await?;
//! assert!(agents.value.iter().any(|agent| agent.agent_id == "writer"));
//! # Ok(())
//! # }
//! ```
//!
//! # What it does for you
//!
//! - Each endpoint but that of model calls is one method of [`Client`] with the types of [`agentcfg_core::model`], which is
//!   re-exported as [`model`]; the methods bear the names of the operations in the core.
//! - Connections are pooled and shared by all clones of a client. Redirects are not followed, so the
//!   credential goes nowhere else, and an answer's size is bounded.
//! - What is safe to repeat is repeated, with growing and jittered pauses, and no sooner than the
//!   server's `Retry-After` says. What is not safe never is; the table is at [`RetryPolicy`].
//! - [`Timeouts`] bound the connecting, each attempt, and the whole call with all its repeats.
//! - [`Error`] tells apart what a caller decides on, above all
//!   [`Error::may_have_been_applied`]: whether to look before trying again.
//!
//! Calls need a Tokio runtime with its timer and I/O; [`Builder::build`] needs none. `https` trusts
//! the roots of the Mozilla programme and those given to [`Builder::root_certificates`]; nothing
//! global is installed for it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod agents;
mod api_keys;
mod audit;
mod builder;
mod client;
mod connect;
mod error;
mod etag;
mod health;
mod members;
mod models;
mod provider_keys;
mod rate;
mod request;
mod response;
mod retry;
mod status;
mod workspaces;

#[cfg(test)]
mod tests;

pub use agentcfg_core::model;
pub use agentcfg_core::secret::ProviderCredential;
pub use agents::AgentFilter;
pub use audit::Page;
pub use builder::{Builder, Timeouts};
pub use client::Client;
pub use error::Error;
pub use etag::{Etag, Tagged};
pub use rate::RateLimit;
pub use retry::RetryPolicy;
