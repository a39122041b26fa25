//! Model calls through the real binary: a fake upstream replaces the providers. The callers are their official SDKs,
//! and raw requests that no SDK would make.
//!
//! The SDKs need Node.js and the packages of `tests/sdk`: `npm ci --prefix tests/sdk`, and for Python
//! `scripts/python.sh`. Without them their tests report that they did not run, and fail if `CI` is `true`.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod base_url;
mod bodies;
mod budgets;
mod calls;
mod collector;
mod credentials;
mod definitions;
mod egress;
mod fallback;
mod faults;
mod fixture;
mod forwarding;
mod limited_keys;
mod provider_formats;
mod providers;
mod python;
mod refusals;
mod sdk;
mod secrets;
mod stream_ends;
mod traces;
mod upstream;
mod usage;
mod versions;
