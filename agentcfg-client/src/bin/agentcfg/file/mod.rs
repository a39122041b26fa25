//! Files of agents: their format, which is the library's, and directories of them.

mod directory;
mod write;

pub use agentcfg_client::agent_file::{
    EXTENSION, Fields, Problem, UNRESOLVED, compose, field, is_agent_file, read, write,
};
pub use directory::{Directory, content, unreadable};
pub use write::{pause_writing, remove_leftovers, write_file};
