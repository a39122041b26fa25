//! The REST API of agentcfg as a library: everything behind the `agentcfg-server` binary.
//!
//! The library owns no globals. It installs no subscriber, no panic hook and no signal handler unless the binary
//! asks for it through [`process::telemetry`] and [`process::signals`].

pub mod api;
pub mod http;
pub mod identity;
pub mod listen;
pub mod outbound;
pub mod process;
