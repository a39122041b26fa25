//! Files of agents: their format, which is the library's, and directories of them.

mod directory;

pub use agentcfg_client::agent_file::{
    EXTENSION, Fields, Problem, UNRESOLVED, compose, field, is_agent_file, read, write,
};
pub use directory::{Directory, content, write_file};
