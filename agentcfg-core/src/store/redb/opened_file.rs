//! Whether the file that is open is still the one at its path.
//!
//! A file that was removed or replaced can be read and written while it is open, but what is written is lost when the
//! process ends. What is written to a file that was truncated from outside belongs to a state that is gone. So the
//! writer checks the path before each group commit.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::room::Space;

/// The identity of an open file, and the path where it was opened.
#[derive(Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    identity: Identity,
}

impl OpenedFile {
    /// Records which file was opened at a path.
    pub(super) fn of(path: &Path, file: &File) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(&file.metadata()?),
        })
    }

    /// The path where the file was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What happened to the file, unless it is still at its path with at least this many bytes.
    pub(super) fn lost(&self, len: u64) -> Option<String> {
        let path = self.path.display();
        match std::fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity && found.len() < len => {
                let found = found.len();
                Some(format!(
                    "the store file {path} was truncated: it has {found} of {len} bytes"
                ))
            }
            Ok(found) if identity(&found) == self.identity => None,
            Ok(_) => Some(format!("the store file {path} was replaced by another file")),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Some(format!("the store file {path} was removed"))
            }
            // Any other error does not show that the file is gone.
            Err(_) => None,
        }
    }
}

/// The bytes of the file system of a path; `None` if they are not known.
#[cfg(target_os = "linux")]
pub(super) fn space(path: &Path) -> Option<Space> {
    let found = rustix::fs::statvfs(path).ok()?;
    // The blocks that a file system keeps for root.
    let blocks = match rustix::process::geteuid().is_root() {
        true => found.f_bfree,
        false => found.f_bavail,
    };
    Some(Space {
        free: blocks.saturating_mul(found.f_frsize),
        total: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn space(_: &Path) -> Option<Space> {
    None
}

/// What distinguishes a file from another file at the same path: the device and the inode.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(found: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Identity {}
