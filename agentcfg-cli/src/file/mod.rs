//! Files of agents on disk: directories of them, and writing one in one step.

mod directory;
mod write;

pub use directory::{Directory, content, unreadable};
pub use write::{make_private, pause_writing, remove_leftovers, write_file, write_private_file};
