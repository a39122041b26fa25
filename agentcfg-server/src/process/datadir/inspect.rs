//! Inspects a data directory without a change: what would refuse a start on it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::secret_file::GroupRights;
use super::{DataDir, DataDirError, is_staged, lock, master_key, session_key};
use crate::process::files::directory_of;

/// The keys that a start takes from the directory, since no setting has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Whether the secret of session tokens is there.
    pub session_key: bool,
    /// Whether the master keys are there.
    pub master_key: bool,
}

/// What would refuse a start on the directory at `path`. The store itself is not opened here.
pub fn faults(path: &Path, expected: Expected) -> Vec<DataDirError> {
    let dir = match DataDir::open(path) {
        Ok(dir) => dir,
        Err(DataDirError::Missing { path }) => return can_be_made(&path).err().into_iter().collect(),
        Err(error) => return vec![error],
    };
    let store = match dir.has_store() {
        Ok(true) => allows(&dir.store_path(), "open", Access::READ_OK | Access::WRITE_OK),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    let master_key = match expected.master_key {
        true => master_key::load(path, GroupRights::Kept).map(drop),
        false => Ok(()),
    };
    let mut faults = faults_of_content(&dir, expected);
    faults.extend(store.err().into_iter().chain(master_key.err()));
    faults
}

/// What in a directory would refuse a start late, when the store has been written.
pub fn faults_of_content(dir: &DataDir, expected: Expected) -> Vec<DataDirError> {
    let session_key = match session_key::load(dir.path(), GroupRights::Kept) {
        Err(DataDirError::Missing { .. }) => Ok(()),
        _ if !expected.session_key => Ok(()),
        read => read.map(drop),
    };
    let checks = [
        // The control socket is made in it.
        allows(dir.path(), "write to", Access::WRITE_OK | Access::EXEC_OK),
        dir.refuse_lost_store(),
        lock_file(&dir.path().join(lock::NAME)),
        session_key,
        socket(&dir.socket_path()),
        interrupted(dir),
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

/// Whether the lock file can be taken.
fn lock_file(path: &Path) -> Result<(), DataDirError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(DataDirError::from_io("write to", path, Errno::ISDIR.into())),
        Ok(_) => allows(path, "write to", Access::READ_OK | Access::WRITE_OK),
        // A start makes it, or cannot, which is found with the directory.
        Err(_) => Ok(()),
    }
}

/// Whether the control socket can be made: only a socket that a killed process has left is replaced.
fn socket(path: &Path) -> Result<(), DataDirError> {
    let what = match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => return Ok(()),
        Ok(found) if found.is_dir() => "a directory",
        Ok(_) => "a file",
        Err(_) => return Ok(()),
    };
    Err(DataDirError::NoSocket {
        path: path.to_owned(),
        what,
    })
}

/// Whether a process was killed that had begun to make a store here, and has not ended.
fn interrupted(dir: &DataDir) -> Result<(), DataDirError> {
    if dir.has_store()? || dir.lock_to_read().is_err() {
        return Ok(());
    }
    let failed = |source| DataDirError::from_io("look into", dir.path(), source);
    for entry in fs::read_dir(dir.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(is_staged) {
            return Err(DataDirError::Interrupted { path: entry.path() });
        }
    }
    Ok(())
}

/// Whether the directory can be created.
fn can_be_made(path: &Path) -> Result<(), DataDirError> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(DataDirError::Io {
            doing: "create",
            path: path.to_owned(),
            source: io::Error::other("it is a symbolic link that leads nowhere"),
        });
    }
    let mut above: PathBuf = directory_of(path).to_owned();
    while fs::metadata(&above).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        above = directory_of(&above).to_owned();
    }
    match fs::metadata(&above) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(DataDirError::NotADirectory { path: above }),
        Err(source) => return Err(DataDirError::from_io("create", path, source)),
    }
    allows(&above, "create a directory in", Access::WRITE_OK | Access::EXEC_OK)
}

fn allows(path: &Path, doing: &'static str, access: Access) -> Result<(), DataDirError> {
    accessat(CWD, path, access, AtFlags::EACCESS).map_err(|error| DataDirError::from_io(doing, path, error.into()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const BOTH: Expected = Expected {
        session_key: true,
        master_key: true,
    };

    fn said(path: &Path, expected: Expected) -> Vec<String> {
        faults(path, expected).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_directory_that_is_missing_or_good_has_no_fault_and_is_not_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/data");
        assert_eq!(said(&path, BOTH), [""; 0]);
        assert!(!place.path().join("deep").exists());
        let dir = DataDir::open_or_create(&path).unwrap();
        dir.session_secret().unwrap();
        assert_eq!(said(&path, BOTH), [""; 0]);
    }

    #[test]
    fn each_fault_is_named_and_nothing_is_repaired() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(said(&file, BOTH)[0].contains("is a file"));
        assert!(said(&file.join("data"), BOTH)[0].contains("is a file"));
        let link = place.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(said(&link, BOTH)[0].contains("leads nowhere"));

        let dir = DataDir::open_or_create(place.path().join("data")).unwrap();
        let key = dir.path().join(session_key::NAME);
        fs::write(&key, "short").unwrap();
        fs::write(dir.master_key_path(), "none\n").unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(dir.master_key_path(), Permissions::from_mode(0o600)).unwrap();
        let all = said(dir.path(), BOTH);
        assert_eq!(all.len(), 3, "{all:?}");
        for (fault, part) in all.iter().zip(["no store", "chmod 600", "master.key:1"]) {
            assert!(fault.contains(part), "{fault}");
        }
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o644);
        let settings = Expected {
            session_key: false,
            master_key: false,
        };
        assert_eq!(said(dir.path(), settings).len(), 1);
    }

    #[test]
    fn a_lock_file_that_cannot_be_taken_is_a_fault() {
        let place = tempfile::tempdir().unwrap();
        let dir = DataDir::open_or_create(place.path().join("data")).unwrap();
        fs::create_dir(dir.path().join(lock::NAME)).unwrap();
        let said = said(dir.path(), BOTH);
        assert_eq!(said, [dir.lock().unwrap_err().to_string()], "as a start says it");
    }

    #[test]
    fn a_socket_that_is_none_and_a_part_of_a_store_are_faults() {
        let place = tempfile::tempdir().unwrap();
        let dir = DataDir::open_or_create(place.path().join("data")).unwrap();
        fs::create_dir(dir.socket_path()).unwrap();
        assert!(said(dir.path(), BOTH)[0].contains("control.sock is a directory, and no socket"));
        fs::remove_dir(dir.socket_path()).unwrap();
        let staged = dir.path().join(".store.redb.staged.7.tmp");
        fs::write(&staged, "").unwrap();
        assert!(said(dir.path(), BOTH)[0].contains("was interrupted"));
        // It may go on.
        let lock = dir.lock().unwrap();
        assert_eq!(said(dir.path(), BOTH), [""; 0]);
        drop(lock);
        // The store is complete.
        fs::write(dir.store_path(), "").unwrap();
        assert_eq!(said(dir.path(), BOTH), [""; 0]);
    }
}
