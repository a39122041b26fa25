//! The OpenAPI document.
//!
//! It is generated from the definitions of the endpoints and from the types, and kept as a file: the server serves the file,
//! and a test compares it with what is generated. After a change, write the file again:
//!
//! ```sh
//! UPDATE_OPENAPI=1 cargo test -p agentcfg-server --lib openapi
//! ```

mod document;
mod failures;
mod rpc;
mod schemas;
#[cfg(test)]
mod tests;
