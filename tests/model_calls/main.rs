//! Model calls through the real binary: an upstream of the tests stands in for the providers, and their official SDKs
//! call, besides requests that no SDK would make.
//!
//! The SDKs need Node.js and the packages of `tests/sdk`: `npm ci --prefix tests/sdk`. Without them their tests say that
//! they did not run, and fail where `CI` is `true`.

// Tests watch real processes, and these live in real time.
#![allow(clippy::disallowed_methods)]

mod bodies;
mod calls;
mod credentials;
mod endings;
mod faults;
mod passing;
mod refusals;
mod sdk;
mod secrets;
mod speech;
mod stage;
mod upstream;
