//! What the first start on a directory makes, which goes again where that start is refused.

use std::fs;
use std::path::PathBuf;

use super::{DataDir, lock, master_key, session_key};

/// The files that a first start makes. They are removed on drop, unless they are [kept](Self::keep).
#[derive(Debug, Default)]
pub struct FirstStart {
    /// Those that were not there before, the directory last.
    missing: Vec<PathBuf>,
}

impl FirstStart {
    /// Begins in a directory that this process holds, and that has no store. `had_dir` and `had_lock` are whether the
    /// directory and its lock file were there before.
    pub fn begin(dir: &DataDir, had_dir: bool, had_lock: bool) -> Self {
        let mut missing = vec![dir.store_path()];
        missing.extend([session_key::NAME, master_key::NAME].map(|name| dir.path.join(name)));
        missing.retain(|path| fs::symlink_metadata(path).is_err());
        missing.extend((!had_lock).then(|| dir.path.join(lock::NAME)));
        missing.extend((!had_dir).then(|| dir.path.clone()));
        Self { missing }
    }

    /// The start has succeeded.
    pub fn keep(&mut self) {
        self.missing.clear();
    }
}

impl Drop for FirstStart {
    fn drop(&mut self) {
        for path in &self.missing {
            // The reason of the refusal is more important than this error. A directory with other files stays.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}
