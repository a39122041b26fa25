//! Files that appear at their final path once they are complete, and the rights of files of secrets.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// The permission bits that make a secret in this file one of others. The group may read it if it belongs to another
/// user, such as root: otherwise this process could not.
pub(super) fn rights_of_others(found: &Metadata) -> u32 {
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if is_own { 0o077 } else { 0o037 }
}

/// Moves the draft of a file to `path`, and syncs the directory, so that the name survives a power cut.
///
/// # Errors
///
/// `AlreadyExists` when there is a file at `path`, which is left as it is; others when the draft cannot be moved.
pub(super) fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    move_to_free(draft, path)?;
    File::open(directory_of(path))?.sync_all()
}

/// Moves a file to `path`, and syncs nothing.
///
/// # Errors
///
/// As [`publish`].
pub(super) fn move_to_free(draft: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => rename(draft, path),
        moved => Ok(moved?),
    }
}

/// Moves a file on file systems that have no rename without replacement, as many network shares: by a hard link, or by
/// a plain rename if `path` is free.
fn rename(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Ok(()) => fs::remove_file(draft),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if path.try_exists()? => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(draft, path),
    }
}

/// Removes the files of a directory whose names are those of drafts.
///
/// # Errors
///
/// When the directory cannot be read, or a file not removed.
pub(super) fn remove_drafts(dir: &Path, is_draft: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&is_draft) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
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
    fn a_file_is_never_replaced_whatever_the_file_system_has() {
        let dir = tempfile::tempdir().unwrap();
        let (draft, path) = (dir.path().join("draft"), dir.path().join("file"));
        for publish in [publish, rename] {
            fs::write(&draft, "new").unwrap();
            publish(&draft, &path).unwrap();
            assert!(!draft.exists());
            fs::write(&draft, "another").unwrap();
            let error = publish(&draft, &path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::remove_file(&path).unwrap();
            fs::remove_file(&draft).unwrap();
            let error = publish(&draft, &path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
