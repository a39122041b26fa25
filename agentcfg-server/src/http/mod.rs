//! HTTP as the API speaks it: what is read of a request and how a response is written. Nothing in here knows an agent.

pub mod compression;
pub mod cors;
pub mod errors;
pub mod query;
pub mod request;
pub mod request_id;
pub mod response;
