//! The OpenAPI document, and the documentation that is made from it.
//!
//! It is generated from the definitions of the endpoints and from the types, and kept as files: the server serves the
//! files, and a test compares them with what is generated. After a change, write the files again:
//!
//! ```sh
//! UPDATE_OPENAPI=1 cargo test -p agentcfg-server --lib openapi
//! ```

mod call_refusals;
mod docs;
mod document;
mod failures;
mod json_tree;
mod rpc;
mod schemas;
mod tests;
