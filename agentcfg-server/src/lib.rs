//! The REST API of agentcfg as a library: everything behind the `agentcfg-server` binary.
//!
//! [`App`] is the API as a [`tower_service::Service`], for an app that mounts it beside its own routes. The feature
//! `process` (on by default) adds the rest of the binary: command line, settings, engines, listener, logs and metrics.
//!
//! ```
//! use agentcfg_core::{AgentCfg, store::MemoryStore};
//! use agentcfg_server::{App, Cors};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
//! let request = hyper::Request::get("/healthz").body(String::new())?;
//! assert_eq!(app.respond(request).await.status(), 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library owns no globals. It installs no subscriber, no panic hook and no signal handler unless the binary runs a
//! command.

#![warn(missing_debug_implementations)]

mod api;
mod http;
mod hyper_internals;
#[cfg(feature = "process")]
mod identity;
#[cfg(feature = "process")]
pub mod listen;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use listen::fuzzing;
mod outbound;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "process")]
mod secret;

pub use api::{
    Answered, App, CallTimeouts, Content, Definition, ModelCalls, Needs, Observer, Route, Streams, endpoints, routes,
};
#[cfg(feature = "dashboard")]
pub use api::{Dashboard, IdentityProvider, Pending, SignInError, SignedIn};
pub use http::{Body, BodyError, Browser, ByteBudget, Compression, Cors, Disconnect, InvalidPublicUrl, WatchClient};
pub use outbound::{Options as OutboundOptions, Outbound, OutboundBody, OutboundError, WebhookTransport};
