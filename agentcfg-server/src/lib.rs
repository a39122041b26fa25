//! The REST API of agentcfg as a library: everything behind the `agentcfg-server` binary.
//!
//! [`App`] is the API as a [`tower_service::Service`], for an app that mounts it beside its own routes. The feature
//! `process` (on by default) adds the rest of the binary: command line, settings, engines, listener, logs and metrics.
//! Of these the module `listen` is for other crates, too.
//!
//! The feature `tower` adds [`EntryLayer`], which puts an app's own routes behind the same credentials and rate limits.
//!
//! An app leaves the program out and names the crypto provider that its other crates use, for calls to model providers
//! and webhooks: `default-features = false, features = ["dashboard", "tls-aws-lc"]`, or `tls-ring`.
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
// The program: no part of the interface.
#[cfg(feature = "process")]
#[doc(hidden)]
pub mod process;
#[cfg(feature = "process")]
mod secret;

pub use api::{Answered, App, CallTimeouts, ModelCalls, Observer, Span, Streams, TraceContext, TracedCall};
// What the tests of the workspace read of the endpoints: no part of the interface.
#[doc(hidden)]
pub use api::{Content, Definition, Needs, Route, endpoints, routes};
#[cfg(feature = "dashboard")]
pub use api::{Dashboard, IdentityProvider, Pending, SignInError, SignedIn};
#[cfg(feature = "tower")]
pub use api::{EntryLayer, EntryService};
pub use http::{
    Body, BodyError, Browser, ByteBudget, Compression, Cors, Disconnect, InvalidNetwork, InvalidPublicUrl, Leaving,
    Network, PeerAddress, TrustedProxies, WatchClient,
};
pub use outbound::{
    Egress, InvalidProxy, Options as OutboundOptions, Outbound, OutboundBody, OutboundError, WebhookTransport,
};
