//! The REST API of agentcfg as a library: everything behind the `agentcfg-server` binary.
//!
//! The library owns no globals. It installs no subscriber, no panic hook and no signal handler unless the binary
//! asks for it through [`telemetry`] and [`signals`].

pub mod app;
pub mod backend;
pub mod cli;
pub mod commands;
pub mod compression;
pub mod config;
pub mod control;
pub mod cors;
pub mod datadir;
pub mod errors;
pub mod handlers;
pub mod identity;
pub mod listen;
pub mod master_keys;
pub mod model_calls;
pub mod openapi;
pub mod outbound;
pub mod query;
pub mod request;
pub mod request_id;
pub mod response;
pub mod routes;
pub mod server;
pub mod signals;
pub mod telemetry;
