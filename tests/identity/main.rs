//! Sessions of a real identity provider: `oidc-provider` on loopback, with this server in the same process.
//!
//! It needs Node.js and the packages of `provider/`: `npm ci --prefix tests/identity/provider`. Without them each test
//! says that it did not run, and fails where `CI` is `true`.

mod asked;
mod forged;
mod http;
mod provider;
mod proxy;
mod published;
mod service;
