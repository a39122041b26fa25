//! The secret that signs local session tokens.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use agentcfg_core::clock::{Entropy, SystemEntropy};

use super::DataDirError;

const NAME: &str = "session.key";
const LENGTH: usize = 32;

/// 32 bytes that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret([u8; LENGTH]);

impl SessionSecret {
    /// The bytes themselves.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

pub(super) fn load_or_create(dir: &Path) -> Result<SessionSecret, DataDirError> {
    match load(dir) {
        Err(DataDirError::Missing { .. }) => {}
        other => return other,
    }
    create(dir)?;
    // Read back rather than returned, because the key of another process may have been first.
    load(dir)
}

fn load(dir: &Path) -> Result<SessionSecret, DataDirError> {
    let path = dir.join(NAME);
    let failed = |source| DataDirError::from_io("read", &path, source);
    let mut file = File::open(&path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(DataDirError::KeyExposed { path, mode });
    }
    if found.len() != LENGTH as u64 {
        return Err(DataDirError::KeyLength {
            path,
            length: found.len(),
        });
    }
    let mut secret = [0; LENGTH];
    file.read_exact(&mut secret).map_err(failed)?;
    Ok(SessionSecret(secret))
}

/// Makes a key under a name of its own and then gives it the final one, which fails when that is taken. So nobody ever
/// sees half a key, and the first one stays.
fn create(dir: &Path) -> Result<(), DataDirError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut secret = [0; LENGTH];
    SystemEntropy
        .fill(&mut secret)
        .map_err(|error| DataDirError::Randomness(error.to_string()))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let draft = dir.join(format!("{NAME}.{}.{number}.new", std::process::id()));
    let path = dir.join(NAME);
    let made = write(&draft, &secret).and_then(|()| publish(&draft, &path));
    let removed = fs::remove_file(&draft);
    made.map_err(|source| DataDirError::from_io("create", &path, source))?;
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(draft = %draft.display(), %error, "cannot remove the draft of a key, please do");
    }
    // The name must outlive a power cut, or the tokens made from now on would not.
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| DataDirError::from_io("sync", dir, source))
}

fn write(draft: &Path, secret: &[u8]) -> io::Result<()> {
    // Left behind by a process that had the same number and died here.
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    file.write_all(secret)?;
    file.sync_all()
}

/// Gives `draft` the name `path` unless that is taken, which is fine too.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    let named = fs::hard_link(draft, path).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems know no links. Those that know neither of the two ways have no atomic way at all.
        _ => renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE).map_err(|_| error),
    });
    match named {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
