//! A new file that appears at its path once it is whole.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A temporary file beside its target path. [`Draft::publish`] moves it there atomically.
pub(super) struct Draft {
    draft: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Creates the file with access for its owner only.
    pub(super) fn create(target: &Path) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        loop {
            let mut draft = std::ffi::OsString::from(".");
            draft.push(name);
            draft.push(format!(
                ".{}-{}.tmp",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            ));
            let draft = target.with_file_name(draft);
            match options.open(&draft) {
                Ok(file) => {
                    return Ok((
                        Self {
                            draft,
                            target: target.to_owned(),
                        },
                        file,
                    ));
                }
                // A crashed process with the same process id left this draft, as in containers
                // where every process has id 1.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Syncs the file and moves it to its target path; fails with `AlreadyExists` if a file is there.
    pub(super) fn publish(self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.draft)?.sync_all()?;
        // A hard link never replaces an existing file, a rename does. So the rename is the fallback
        // for file systems without hard links.
        match std::fs::hard_link(&self.draft, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if self.target.try_exists()? => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => std::fs::rename(&self.draft, &self.target)?,
            Ok(()) => std::fs::remove_file(&self.draft)?,
        }
        sync_directory(&self.target)
    }

    /// Syncs the file and puts it in the place of the one at its target path, in one step.
    pub(super) fn replace(self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.draft)?.sync_all()?;
        std::fs::rename(&self.draft, &self.target)?;
        sync_directory(&self.target)
    }
}

/// Removes the drafts of this file that processes have left behind which were killed. The caller holds the lock of the
/// file, so no other process makes one.
pub(super) fn remove_leftovers(target: &Path) {
    let target = &target.canonicalize().unwrap_or_else(|_| target.to_owned());
    let (Some(name), Some(directory)) = (target.file_name().and_then(OsStr::to_str), target.parent()) else {
        return;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_draft = |found: &str| {
        let numbers = found.strip_prefix('.').and_then(|rest| {
            rest.strip_prefix(name)?
                .strip_prefix('.')?
                .strip_suffix(".tmp")?
                .split_once('-')
        });
        numbers.is_some_and(|(process, count)| is_number(process) && is_number(count))
    };
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_draft) {
            // One that cannot be removed is harmless.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` the file no longer exists. A draft that cannot be removed is harmless.
        let _ = std::fs::remove_file(&self.draft);
    }
}

#[cfg(unix)]
fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_file: &Path) -> io::Result<()> {
    Ok(())
}
