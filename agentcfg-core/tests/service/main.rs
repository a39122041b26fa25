//! The rules of the service, a module for each noun, through its public interface alone.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod agents;
mod api_keys;
mod audit;
mod changes;
mod conditions;
mod epochs;
mod faults;
mod histories;
mod lists;
mod members;
mod model;
mod races;
mod rates;
mod sessions;
mod sign_in;
mod status;
mod support;
mod workspaces;
