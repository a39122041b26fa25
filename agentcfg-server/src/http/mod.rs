//! HTTP as the API speaks it: what is read of a request and how a response is written.
//!
//! Nothing in here knows a route or an endpoint. Of the core it knows errors, tags, rate figures and the text of lists.

mod body;
pub mod body_budget;
mod body_timeout;
pub mod compression;
mod content;
pub mod cors;
pub mod errors;
mod leaving;
pub mod query;
pub mod received_body;
pub mod request;
pub mod request_id;
pub mod response;

pub use body::{Body, BodyError};
pub use body_budget::BodyBudget;
pub use body_timeout::BodyTimeout;
pub use compression::Compression;
pub use cors::Cors;
pub use leaving::{Leaving, WatchClient};
