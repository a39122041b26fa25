//! Every rule of agentcfg: agents of a workspace, their live status, API keys, members, plans and an
//! audit trail, over a small store contract.
//!
//! ```
//! use agentcfg_core::model::{NewAgent, NewWorkspace};
//! use agentcfg_core::{AgentCfg, store::MemoryStore};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let service = AgentCfg::builder(MemoryStore::new()).build();
//! let ada = service.trusted_user("ada")?;
//! let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
//! service.create_agent(&ada, NewAgent::new(studio.id, "writer".parse()?, "Writer")).await?;
//! let agents = service.list_agents(&ada, studio.id, &Default::default()).await?;
//! assert_eq!(agents.value.agents()?[0].agent_id, "writer");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In an app
//!
//! Calls need a Tokio runtime with time enabled, as `#[tokio::main]` makes it; without it, waiting for changes panics.
//! Runtimes that share a service must all be running: a search that begins on one of them is a task of it, which others
//! may wait for. The stores on PostgreSQL and etcd (crates `agentcfg-postgres` and `agentcfg-etcd`) need I/O too. In
//! the background a service writes the last uses of keys, hashes keys, and ends the deletion of a workspace that it has
//! begun; nothing else runs by itself, so an app that runs for long calls
//!
//! | method | when |
//! |---|---|
//! | [`AgentCfg::adopt_master_keys`] | at the start, if provider keys or webhooks are saved |
//! | [`AgentCfg::remove_deleted_workspaces`] | at the start and now and then: it finishes what a crash cut off |
//! | [`AgentCfg::sweep_browser_sessions`] | now and then, if users sign in with a browser |
//! | [`WebhookSender::tick`](service::WebhookSender::tick) | about once a second, if there are webhooks. Its [`Transport`](webhook::Transport) is the app's: it sends one request |
//! | [`WebhookSender::send_changed`](service::WebhookSender::send_changed) | when [`WebhookSender::changed`](service::WebhookSender::changed) is ready, if webhooks are not to wait for the next tick |
//! | [`AgentCfg::shutdown`] | at the end: watches end, the last uses of keys are written, and the file of the store is free |
//!
//! A change whose future is dropped, by a timeout for example, may be committed all the same: read before you repeat
//! it.
//!
//! # Testing
//!
//! A test of an app needs neither a server nor a file: [`MemoryStore`](store::MemoryStore) keeps the guarantees of
//! every store, and [`ManualClock`](clock::ManualClock) stands until the test moves it. Then statuses grow old, keys
//! expire and rate windows end without a pause. [`AgentCfg::trusted_user`] gives a caller without a credential.
//!
//! ```
//! use std::sync::Arc;
//! use agentcfg_core::clock::ManualClock;
//! use agentcfg_core::model::{LiveStatus, NewAgent, NewWorkspace, StatusReport};
//! use agentcfg_core::{AgentCfg, store::MemoryStore};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse()?));
//! let service = AgentCfg::builder(MemoryStore::new()).clock(clock.clone()).build();
//! let ada = service.trusted_user("ada")?;
//! let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?.id;
//! service.create_agent(&ada, NewAgent::new(studio, "writer".parse()?, "Writer")).await?;
//! service.report_status(&ada, Some(studio), "writer", StatusReport::idle()).await?;
//!
//! clock.advance_millis(120_000);
//! let statuses = service.agent_status(&ada, studio).await?;
//! assert_eq!(statuses[0].status, LiveStatus::Offline);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A store of your own is tested by the macro `conformance_tests!` of the feature `conformance`. For an app that calls
//! a server there is `testing::FakeServer` of the crate `agentcfg-client`.
//!
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`model`] | the resources and their values, as they travel and as they are stored |
//! | [`validate`] | the limits of every field, and reports of all faults at once |
//! | [`error`] | the kinds of failures, and what the caller should do |
//! | [`secret`] | plaintext that is never printed |
//! | [`address`] | which addresses are public |
//! | [`service`] | the handle [`AgentCfg`] with every operation |
//! | [`store`] | the storage contract, and its stores in memory and in a file |
//! | [`session`] | the verifiers of session tokens |
//! | [`rate_limit`] | the fixed windows that count requests |
//! | [`token`] | the text of API keys |
//! | [`vault`] | provider keys at rest, sealed under master keys |
//! | [`routing`] | which model and whose credential a model call uses |
//! | [`webhook`] | the messages of webhooks, their signatures, and the trait of the transport that sends them |
//! | [`clock`] | time, identifiers and randomness |
//! | [`tls`] | the configuration of TLS for connections to other servers |
//!
//! # Features
//!
//! | feature | gives |
//! |---|---|
//! | none | [`model`], [`validate`], [`error`]: all that a client needs |
//! | `engine` | the service and the memory store |
//! | `redb` (default) | the embedded store in one file; on Linux, threads that hash keys also get a lower priority |
//! | `jwks` | sessions of OpenID Connect providers: the only feature of `engine` that compiles C, but for TLS |
//! | `tls` | the TLS that connections to other servers use |
//! | `tls-ring`, `tls-aws-lc` | its crypto provider; without one, the provider that the app has installed for the process |
//! | `stream` | watches as a `Stream`, for the combinators of `futures` |
//! | `conformance` | tests for your own store |
//! | `schema` | JSON Schemas of the types of the API, for an OpenAPI document |

#![warn(missing_debug_implementations)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// The engine alone uses some of the model.
#![cfg_attr(not(feature = "engine"), allow(dead_code, unused_imports))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
pub mod error;
pub mod model;
pub mod secret;
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "tls")]
pub mod tls;
pub mod validate;

mod body;
mod json;
mod rules;

cfg_if::cfg_if! {
    if #[cfg(feature = "engine")] {
        pub mod clock;
        pub mod rate_limit;
        pub mod routing;
        pub mod service;
        pub mod session;
        pub mod token;
        pub mod vault;
        pub mod webhook;

        mod hex;

        pub use service::{AgentCfg, Caller, Settings};
    }
}

// By itself, because a macro that it exports has no path out of another macro.
#[cfg(feature = "engine")]
pub mod store;

pub use error::{Error, ErrorKind};
