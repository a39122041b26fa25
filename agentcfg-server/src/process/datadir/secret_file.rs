//! Files of secrets: readable by their owner alone, and written atomically.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::Gid;
use rustix::process::{getegid, getgroups};

use super::error::DataDirError;
use crate::process::files;

/// What is done with the rights that a kubelet gives a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupRights {
    /// They are taken back.
    TakenBack,
    /// They stay, for a command that changes nothing.
    Kept,
}

/// Opens a file. Returns its permission bits too, if other users have any.
///
/// A kubelet gives the files of a volume to a group (`fsGroup`), and sets the group bit of its folders. Where this
/// process is in that group, the rights of the group are taken back instead.
pub(super) fn open(path: &Path, rights: GroupRights) -> io::Result<(File, Option<u32>)> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok((file, None));
    }
    if mode & 0o007 != 0 || !is_of_volume(path, &found)? {
        return Ok((file, Some(mode)));
    }
    // A file of another owner, such as root, cannot be changed and is as private as the group.
    if rights == GroupRights::TakenBack
        && let Err(error) = file.set_permissions(Permissions::from_mode(mode & 0o700))
    {
        tracing::debug!(path = %path.display(), %error, "the rights of the group stay");
    }
    Ok((file, None))
}

/// Whether a kubelet has given a file, and the folder that it is in, to a group of this process.
fn is_of_volume(path: &Path, found: &Metadata) -> io::Result<bool> {
    const SET_GROUP_ID: u32 = 0o2000;
    let Some(folder) = path.parent() else {
        return Ok(false);
    };
    let folder = fs::metadata(folder)?;
    let group = Gid::from_raw(found.gid());
    let is_given = folder.mode() & SET_GROUP_ID != 0 && folder.gid() == found.gid();
    Ok(is_given && (getegid() == group || getgroups()?.contains(&group)))
}

/// Creates the file `name` atomically, unless it exists already.
pub(super) fn create(dir: &Path, name: &str, content: &[u8]) -> Result<(), DataDirError> {
    put(dir, name, content, publish)
}

/// Replaces the file `name` atomically. Only the process that holds the lock of the directory may call it, because it
/// removes the drafts of processes that were killed: they hold secrets too.
pub(super) fn replace(dir: &Path, name: &str, content: &[u8]) -> Result<(), DataDirError> {
    put(dir, name, content, |draft, path| fs::rename(draft, path))?;
    remove_drafts(dir, name).map_err(|source| DataDirError::from_io("clean up", dir, source))
}

fn remove_drafts(dir: &Path, name: &str) -> io::Result<()> {
    let rest = |found: &str| Some(found.strip_prefix(name)?.strip_prefix('.')?.ends_with(".new"));
    files::remove_drafts(dir, |found| rest(found) == Some(true))
}

/// Writes a draft under a unique name and calls `place` to move it to the final one.
fn put(dir: &Path, name: &str, content: &[u8], place: fn(&Path, &Path) -> io::Result<()>) -> Result<(), DataDirError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let draft: PathBuf = dir.join(format!("{name}.{}.{number}.new", std::process::id()));
    let path = dir.join(name);
    let made = write(&draft, content).and_then(|()| place(&draft, &path));
    let removed = fs::remove_file(&draft);
    made.map_err(|source| DataDirError::from_io("create", &path, source))?;
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(draft = %draft.display(), %error, "cannot remove the draft of a key, please do");
    }
    // The directory is synced, so that the name survives a power cut: data that is sealed with the secret would be
    // lost without it.
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| DataDirError::from_io("sync", dir, source))
}

fn write(draft: &Path, content: &[u8]) -> io::Result<()> {
    // A killed process with the same process id has left a draft.
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Moves `draft` to `path`, unless `path` exists already.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match files::move_to_free(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
