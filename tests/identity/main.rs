//! Sessions of a real identity provider: `oidc-provider` on loopback, with this server in the test's process.
//!
//! Needs Node.js and the packages of `provider/`: `npm ci --prefix tests/identity/provider`. Without them each test
//! reports that it did not run, and fails if `CI` is `true`.

mod admission;
mod browser;
mod forged;
mod http;
mod introspection;
mod jwks;
mod provider;
mod proxy;
mod service;
mod single_sign_on;
