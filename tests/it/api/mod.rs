//! What the API of agents, statuses and keys promises: each test name is one statement.

mod agent_record;
mod api_keys;
mod budgets;
mod conventions;
mod create;
mod definition;
mod delete;
mod errors;
mod limited_keys;
mod limits;
mod list;
mod overview;
mod permissions;
mod sessions;
mod status;
mod update;
