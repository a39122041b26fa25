//! Opening and creating store files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{Builder, Database, DatabaseError};

use super::RedbOptions;
use super::error::{Fault, OpenError, shielded};
use super::schema::{begin_write, initialise, verify_format};

/// Opens the same storage again and again: at the start, and after each failure.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, OpenError> + Send>;

/// An opener of the file at `path`, which it creates the first time only.
pub(super) fn file_opener(path: &Path, options: &RedbOptions) -> Result<Opener, OpenError> {
    if !path.try_exists()? {
        create(path, options)?;
    }
    let (path, options) = (path.to_owned(), options.clone());
    Ok(Box::new(move || {
        refuse_empty(&path)?;
        guarded(|| {
            verify_format_untouched(&path, &options)?;
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            let database = builder(&options).create_file(file)?;
            verify_format(&database)?;
            Ok(database)
        })
    }))
}

/// The engine's settings.
pub(super) fn builder(options: &RedbOptions) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Runs an opening in which a damaged file may make the engine panic.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    shielded(work).unwrap_or_else(|panic| Err(OpenError::Damaged(panic)))
}

/// A store without bytes is one that lost them: the engine would start it anew without a word.
pub(super) fn refuse_empty(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path)?.len() {
        0 => Err(OpenError::Damaged("the file is empty".into())),
        _ => Ok(()),
    }
}

/// A file that is being made beside its place. It appears there whole or not at all.
pub(super) struct Draft {
    draft: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Creates the file, readable to its owner only.
    pub(super) fn create(place: &Path) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = place.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
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
            let draft = place.with_file_name(draft);
            match options.open(&draft) {
                Ok(file) => {
                    return Ok((
                        Self {
                            draft,
                            place: place.to_owned(),
                        },
                        file,
                    ));
                }
                // A process of the same number crashed over this one, as in containers where all are number 1.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the file in its place for good, or fails with `AlreadyExists` when something is there.
    pub(super) fn publish(self) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.draft)?.sync_all()?;
        // A link never replaces a file, a rename does: that one is only for file systems without links.
        match std::fs::hard_link(&self.draft, &self.place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if self.place.try_exists()? => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => std::fs::rename(&self.draft, &self.place)?,
            Ok(()) => std::fs::remove_file(&self.draft)?,
        }
        sync_directory(&self.place)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` there is nothing left to remove, and a leftover harms nobody.
        let _ = std::fs::remove_file(&self.draft);
    }
}

/// Makes an empty store. That another process was faster is fine.
fn create(path: &Path, options: &RedbOptions) -> Result<(), OpenError> {
    let (draft, file) = Draft::create(path)?;
    let database = builder(options).create_file(file)?;
    let made = begin_write(&database).and_then(|transaction| {
        initialise(&transaction, 0)?;
        Ok(transaction.commit()?)
    });
    made.map_err(fault_while_creating)?;
    drop(database);
    match draft.publish() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        published => Ok(published?),
    }
}

/// A fault of a file that is just being made is the operating system's.
pub(super) fn fault_while_creating(fault: Fault) -> OpenError {
    OpenError::Io(io::Error::other(fault.text().to_owned()))
}

/// Looks at the format before the file is opened for writing, which changes bytes of it.
fn verify_format_untouched(path: &Path, options: &RedbOptions) -> Result<(), OpenError> {
    match builder(options).open_read_only(path) {
        Ok(database) => verify_format(&database),
        // The file was not closed. It must be recovered before anything in it can be read.
        Err(DatabaseError::RepairAborted) => Ok(()),
        Err(error) => Err(error.into()),
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
