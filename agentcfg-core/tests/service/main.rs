//! The rules of the service, a module for each noun, through its public interface alone.

#![cfg(feature = "redb")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod agents;
mod api_keys;
mod apply;
mod apply_properties;
mod audit;
mod budget_scenarios;
mod budgets;
mod changes;
mod conditions;
mod epochs;
mod export;
mod faults;
mod groups;
mod histories;
mod labels;
mod lists;
mod long_texts;
mod members;
mod model;
mod moments;
mod operators;
mod past;
mod past_model;
mod races;
mod random_numbers;
mod rate_windows;
mod releases;
mod removal;
mod retention;
mod session_ends;
mod sessions;
mod shutdown;
mod sign_in;
mod status;
mod status_lists;
mod status_model;
mod support;
mod usage;
mod usage_ledger;
mod versions;
mod webhooks;
mod workspaces;
