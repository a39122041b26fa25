//! Files that appear at their final path when they are whole.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Moves the draft of a file to `path`, and syncs the directory, so that the name survives a power cut.
///
/// # Errors
///
/// `AlreadyExists` when there is a file at `path`, which is left as it is; others when the draft cannot be moved.
pub(super) fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Ok(()) => fs::remove_file(draft)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        Err(error) => rename(draft, path, error)?,
    }
    File::open(directory_of(path))?.sync_all()
}

/// Moves a file where there are no hard links. File systems that have no rename without replacement either, such as those of
/// many network shares, have no atomic way: the path was free a moment ago.
fn rename(draft: &Path, path: &Path, no_link: io::Error) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(error) if error == rustix::io::Errno::EXIST => Err(error.into()),
        Err(_) if path.try_exists()? => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(draft, path).map_err(|_| no_link),
    }
}

/// The directory of a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_never_replaced_with_hard_links_or_without() {
        let dir = tempfile::tempdir().unwrap();
        let (draft, path) = (dir.path().join("draft"), dir.path().join("file"));
        let no_link = || io::Error::from(io::ErrorKind::Unsupported);
        for with_links in [true, false] {
            fs::write(&draft, "new").unwrap();
            let publish = || match with_links {
                true => publish(&draft, &path),
                false => rename(&draft, &path, no_link()),
            };
            publish().unwrap();
            assert!(!draft.exists());
            fs::write(&draft, "another").unwrap();
            assert_eq!(publish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::remove_file(&path).unwrap();
        }
        let error = publish(&dir.path().join("gone"), &path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
