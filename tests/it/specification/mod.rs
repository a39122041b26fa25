//! The interface specification, chapter by chapter: each test name is one of its statements.

mod agent_record;
mod api_keys;
mod conventions;
mod create;
mod delete;
mod errors;
mod limits;
mod list;
mod permissions;
mod sessions;
mod status;
mod update;
