//! Files of agents on disk: directories of them, and writing one in one step.

mod atomic_write;
mod directory;
mod subdirectories;

pub use atomic_write::{make_private, pause_writing, remove_leftovers, write_file, write_private_file};
pub use directory::{Directory, content, source, unreadable};
pub use subdirectories::with_agents as subdirectories_with_agents;
