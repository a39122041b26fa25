//! HTTP as the API uses it: reading requests and writing responses.
//!
//! This module depends on no route and no endpoint. Of the core it uses errors, tags, rate figures and the text of
//! lists.

mod body;
mod body_timeout;
pub mod browser;
pub mod byte_budget;
mod client_address;
pub mod compression;
pub mod conditions;
pub mod cors;
mod disconnect;
pub mod errors;
pub mod fault_fields;
#[cfg(any(test, feature = "dashboard"))]
pub mod html;
mod leaving;
pub mod pull_body;
pub mod query;
pub mod received_body;
pub mod request;
pub mod response;
pub mod static_file;

pub use body::{Body, BodyError};
pub use body_timeout::BodyTimeout;
pub use browser::{Browser, InvalidPublicUrl};
pub use byte_budget::ByteBudget;
pub use client_address::{InvalidNetwork, Network, PeerAddress, TrustedProxies};
pub use compression::Compression;
pub use cors::Cors;
pub use disconnect::{Disconnect, WatchClient};
pub use leaving::Leaving;
