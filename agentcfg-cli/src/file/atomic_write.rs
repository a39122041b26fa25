//! Writing a file in one step, and what an interrupted write has left.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use agentcfg_core::sync::lock;

use crate::failure::{CommandFailure, Result};

/// What the names of temporary files begin with, and how many letters and digits follow.
const PREFIX: &str = ".agentcfg-";
const RANDOM: usize = 6;

/// Held while there is a temporary file.
static WRITING: Mutex<()> = Mutex::new(());

/// Waits until there is no temporary file of this process. There is none until the guard is dropped.
pub fn pause_writing() -> MutexGuard<'static, ()> {
    lock(&WRITING)
}

/// Writes a file in one step: a reader finds the old content or the new one. It has the permissions of the file that it
/// replaces, or else those of a file that an editor would make.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    write(path, content, true)
}

/// As [`write_file`], but the file is for its owner alone.
pub fn write_private_file(path: &Path, content: &[u8]) -> Result<()> {
    write(path, content, false)
}

fn write(path: &Path, content: &[u8], is_shared: bool) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let _writing = pause_writing();
        let mut file = new_file(dir)?;
        // Tells the file from a leftover. Without locks on this file system it is none either.
        let _ = file.as_file().try_lock();
        file.write_all(content)?;
        #[cfg(unix)]
        if is_shared {
            file.as_file().set_permissions(permissions(path))?;
        }
        #[cfg(not(unix))]
        let _ = is_shared;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !dir.exists() => CommandFailure::error(format_args!(
            "{}: the directory {} does not exist",
            path.display(),
            dir.display()
        )),
        _ => CommandFailure::io(path.display(), &error),
    })
}

/// A temporary file, which is for its owner alone.
fn new_file(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .rand_bytes(RANDOM)
        .tempfile_in(dir)
}

/// The permissions of the file at this path, or of one that would be made there.
#[cfg(unix)]
fn permissions(path: &Path) -> fs::Permissions {
    use rustix::fs::Mode;
    use rustix::process::umask;
    use std::os::unix::fs::PermissionsExt as _;

    let mode = match fs::metadata(path) {
        Ok(found) => found.permissions().mode() & 0o777,
        Err(_) => {
            // The umask is read by setting it, for this moment to the strictest one.
            let mask = umask(Mode::RWXG | Mode::RWXO);
            umask(mask);
            // On Linux the modes have this type already.
            #[allow(clippy::useless_conversion)]
            let mask = u32::from(mask.as_raw_mode());
            0o666 & !mask
        }
    };
    fs::Permissions::from_mode(mode)
}

/// Takes the rights of other users on a file away.
pub fn make_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Removes the temporary files of processes that were killed while they wrote to this directory.
pub fn remove_leftovers(dir: &Path) -> Result<()> {
    let failed = |error| CommandFailure::io(dir.display(), &error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_regular = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_regular && entry.file_name().to_str().is_some_and(is_temporary) && is_abandoned(&entry.path()) {
            // What cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).unwrap_or_default();
    random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether no process writes the file: the lock of one that does ends with it.
fn is_abandoned(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_temporary_file_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let file = new_file(dir.path()).unwrap();
        let mode = file.as_file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn leftovers_alone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let kept = [
            ".agentcfg-abc",
            ".agentcfg-abcdefg",
            ".agentcfg-a.cdef",
            "agentcfg-abcdef",
            "writer.md",
        ];
        for name in kept.iter().chain(&[".agentcfg-aB3dE6"]) {
            fs::write(path(name), "x").unwrap();
        }
        fs::create_dir(path(".agentcfg-direct")).unwrap();
        let written = new_file(dir.path()).unwrap();
        written.as_file().try_lock().unwrap();
        remove_leftovers(dir.path()).unwrap();
        assert!(!path(".agentcfg-aB3dE6").exists());
        assert!(kept.iter().all(|name| path(name).exists()));
        assert!(path(".agentcfg-direct").exists() && written.path().exists());
        write_file(&path("writer.md"), b"y").unwrap();
        assert_eq!(fs::read(path("writer.md")).unwrap(), b"y");
    }
}
