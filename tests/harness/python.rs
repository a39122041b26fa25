//! Python with the packages of the tests.

use std::path::PathBuf;

use super::binary::target;
use super::not_run;

/// The interpreter of the virtual environment that `scripts/test.sh` makes in the target directory; reports it if there
/// is none.
#[track_caller]
pub fn python() -> Option<PathBuf> {
    let python = target().join("python/bin/python");
    if python.exists() {
        return Some(python);
    }
    not_run("the Python packages are missing; run: scripts/python.sh");
    None
}
