//! Files of agents on disk: directories of them, and writing one in one step.

mod atomic_write;
mod directory;

pub use atomic_write::{make_private, pause_writing, remove_leftovers, write_file, write_private_file};
pub use directory::{Directory, content, unreadable};
