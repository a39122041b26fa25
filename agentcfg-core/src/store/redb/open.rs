//! Opening and creating store files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError};

use super::blocks::{Blocks, damage_of};
use super::draft::Draft;
use super::error::{Fault, OpenError, catch_panic, require_unwinding};
use super::health::Health;
use super::opened_file::OpenedFile;
use super::options::RedbOptions;
use super::overlay::Overlay;
use super::schema::{begin_write, initialise, verify_tables};
use super::shared_state::Opened;

/// Opens the storage: at the start, and after each failure.
pub(super) type Opener = Box<dyn Fn() -> Result<Opened, OpenError> + Send>;

/// Makes an opener of the file at `path`. The file is created here if it is missing, and not by the opener itself: a
/// file that vanished later is an error.
pub(super) fn file_opener(path: &Path, options: &RedbOptions, health: Arc<Health>) -> Result<Opener, OpenError> {
    require_unwinding(cfg!(panic = "abort"))?;
    if !path.try_exists()? {
        create(path, options)?;
    }
    refuse_empty(path)?;
    let (path, options) = (path.to_owned(), options.clone());
    Ok(Box::new(move || {
        // Another file at the path is another store, whose records do not fit what this process has cached.
        if let Some(why) = health.lost() {
            return Err(io::Error::other(why).into());
        }
        refuse_empty(&path)?;
        panic_as_damage(|| {
            verify_untouched(&options, Blocks::new(FileBackend::new(File::open(&path)?)?))?;
            let mut opened = None;
            let (database, blocks) = open_verified(&options, &health, || {
                let file = OpenOptions::new().read(true).write(true).open(&path)?;
                opened = Some(OpenedFile::of(&path, &file)?);
                Ok(FileBackend::new(file)?)
            })?;
            verify_tables(&database)?;
            if let Some(file) = opened {
                health.watch(&blocks, file);
            }
            Ok(Opened {
                database,
                freeze: Some(Arc::new(blocks)),
            })
        })
    }))
}

/// Makes an opener of the file at `path` that changes no byte of it: what the engine writes, such as the recovery of a
/// file that was not closed in order, stays in memory.
pub(super) fn reading_opener(path: &Path, options: &RedbOptions) -> Result<Opener, OpenError> {
    require_unwinding(cfg!(panic = "abort"))?;
    refuse_empty(path)?;
    let (path, options) = (path.to_owned(), options.clone());
    Ok(Box::new(move || {
        refuse_empty(&path)?;
        panic_as_damage(|| {
            let file = || Ok::<_, OpenError>(Blocks::new(FileBackend::new(File::open(&path)?)?));
            // With a handle of its own, because the engine locks the file before it reads.
            let found = file()?;
            let is_trusted = found.is_closed().unwrap_or(true) || found.is_sealed().unwrap_or(false);
            drop(found);
            let blocks = file()?;
            let database = builder(&options)
                .set_check_integrity_on_open(!is_trusted)
                .create_with_backend(Overlay::shared(blocks))?;
            verify_tables(&database)?;
            Ok(Opened { database, freeze: None })
        })
    }))
}

/// The engine with the settings of this store.
pub(super) fn builder(options: &RedbOptions) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder
}

/// Opens a file for commits. Unless its seal is right, the engine verifies all of its pages, not only after a crash.
///
/// A block whose content does not belong to the file, although its checksum is right, would otherwise be trusted: a
/// record of another moment would be a wrong answer, and a broken page can make the engine abort the process within a
/// commit. After either verification the checksums of all blocks are in memory, so blocks that are replaced later are
/// found as well.
///
/// A block that does not match its checksum does not prevent the start of a file that was closed in order: calls that
/// need it are refused, all others are served.
pub(super) fn open_verified<B: StorageBackend>(
    options: &RedbOptions,
    health: &Health,
    mut file: impl FnMut() -> Result<B, OpenError>,
) -> Result<(Database, Blocks<B>), OpenError> {
    // With a handle of its own, because the engine locks the file before it reads. A head that cannot be read is its
    // error.
    let found = Blocks::new(file()?);
    let is_sealed = found.is_sealed().unwrap_or(false);
    let is_closed = found.is_closed().unwrap_or(false);
    drop(found);
    let blocks = Blocks::new(file()?);
    if is_sealed {
        blocks.set_verified();
    }
    let outcome = builder(options)
        .set_check_integrity_on_open(!is_sealed)
        .create_with_backend(blocks.clone());
    let damage = match outcome {
        Ok(database) => {
            blocks.load_sums()?;
            blocks.set_verified();
            return Ok((database, blocks));
        }
        Err(DatabaseError::Storage(StorageError::Io(error))) => match damage_of(&error) {
            Some(damage) if is_closed => damage,
            // The recovery of a file that was not closed needs all of it.
            _ => return Err(StorageError::Io(error).into()),
        },
        Err(error) => return Err(error.into()),
    };
    health.report(damage, || "found at the start".into());
    // Closes the file, whose lock the next one takes.
    drop(blocks);
    let blocks = Blocks::new(file()?);
    if is_sealed {
        blocks.set_verified();
    }
    let database = builder(options).create_with_backend(blocks.clone())?;
    Ok((database, blocks))
}

/// Runs code that opens a file, and reports a panic of the engine as damage of the file.
pub(super) fn panic_as_damage<T>(work: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    catch_panic(work).unwrap_or_else(|panic| Err(OpenError::Damaged(panic)))
}

/// Refuses an empty file. It is a store that lost its content, and the engine would silently
/// initialise it as a new database.
pub(super) fn refuse_empty(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path)?.len() {
        0 => Err(OpenError::Damaged("the file is empty".into())),
        _ => Ok(()),
    }
}

/// Creates an empty store, unless another process has created it meanwhile.
fn create(path: &Path, options: &RedbOptions) -> Result<(), OpenError> {
    let (draft, file) = Draft::create(path)?;
    let database = builder(options).create_with_backend(Blocks::new(FileBackend::new(file)?))?;
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

/// Reports a fault during creation as an I/O error: a new file has no old data that could be damaged.
pub(super) fn fault_while_creating(fault: Fault) -> OpenError {
    OpenError::Io(io::Error::other(fault.text()))
}

/// Verifies the file before it is opened for writing, because that changes bytes of it.
fn verify_untouched(options: &RedbOptions, file: impl StorageBackend) -> Result<(), OpenError> {
    match builder(options).open_read_only_with_backend(file) {
        Ok(database) => verify_tables(&database),
        // The file was not closed cleanly. It can only be read after recovery.
        Err(DatabaseError::RepairAborted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
