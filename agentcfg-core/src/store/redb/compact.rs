//! Compaction: a new file with the records alone takes the place of the store file.
//!
//! The engine keeps the pages of what was deleted or replaced in the file, for later records, with their old content.
//! The new file has neither the pages nor the content.

use std::fs::File;
use std::io;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{ReadTransaction, ReadableTable};

use super::super::StoreError;
use super::blocks::Blocks;
use super::check::Walk;
use super::compacted::{CompactError, Compacted};
use super::draft::Draft;
use super::error::{Fault, contain_damage};
use super::open::{builder, fault_while_creating};
use super::options::RedbOptions;
use super::queue::Compaction;
use super::read::ReadFault;
use super::recovery::Healer;
use super::schema::{RECORDS, begin_write, initialise, read_sequence};
use super::shared_state::StoreState;

/// How many records are copied between two reports.
const REPORTED: u64 = 20_000;

/// Carries out a compaction on the thread of the writer.
pub(super) fn run(shared: &StoreState, healer: &Healer, compaction: Compaction) -> Result<(), Fault> {
    let Compaction { mut report, answer } = compaction;
    let outcome = match copy(shared, &mut *report) {
        Err(error) => Err(error),
        Ok((records, draft)) => {
            let bytes_before = shared.health().file_bytes().unwrap_or(0);
            // Reads go on from the old file, until the new one is open.
            shared.freeze();
            let replaced = shared.health().replace_file(draft);
            shared.resume_serving((healer.opener)().map_err(|error| Fault::Engine(error.to_string()))?);
            replaced.map_err(CompactError::Output).map(|()| Compacted {
                records,
                bytes_before,
                bytes_after: shared.health().file_bytes().unwrap_or(0),
            })
        }
    };
    let _ = answer.send(outcome);
    Ok(())
}

/// Copies the last committed state into a new file.
fn copy(shared: &StoreState, report: &mut dyn FnMut(u64)) -> Result<(u64, Draft), CompactError> {
    let health = shared.health();
    if let Some(why) = health.refusal(0) {
        return Err(StoreError::Unavailable(why).into());
    }
    let path = health
        .path()
        .ok_or_else(|| StoreError::Unavailable("the store is in no file".into()))?;
    // A link to the file stays one.
    let path = path.canonicalize().map_err(CompactError::Output)?;
    let snapshot = shared.begin_read().map_err(Fault::into_store_error)?;
    let copied = contain_damage(|| copy_snapshot(&snapshot, &path, report));
    copied.map_err(Fault::into_store_error)?
}

fn copy_snapshot(
    snapshot: &ReadTransaction,
    path: &Path,
    report: &mut dyn FnMut(u64),
) -> Result<(u64, Draft), CompactError> {
    let sequence = read_sequence(snapshot).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let (draft, file) = Draft::create(path).map_err(CompactError::Output)?;
    let records = fill(file, sequence, |insert| {
        let mut walk = Walk::default();
        let mut copied = 0;
        let table = snapshot.open_table(RECORDS).map_err(engine)?;
        for entry in table.iter().map_err(engine)? {
            let (key, sealed) = entry.map_err(engine)?;
            walk.record(key.value(), sealed.value(), sequence);
            insert(key.value(), sealed.value()).map_err(CompactError::Output)?;
            copied += 1;
            if copied % REPORTED == 0 {
                report(copied);
            }
        }
        // The old file is the one that can still be examined.
        match walk.end() {
            Some(problem) => Err(CompactError::Store(StoreError::Corrupt(problem.to_string()))),
            None => Ok(copied),
        }
    })?;
    Ok((records, draft))
}

/// The error of a read of the old file.
fn engine(error: impl Into<ReadFault>) -> CompactError {
    CompactError::Store(match error.into() {
        ReadFault::Engine(fault) => fault.into_store_error(),
        ReadFault::Record(error) => error,
    })
}

/// Writes the tables of a new store file, and the records that `records` inserts.
///
/// # Errors
///
/// Errors of writing to the file, as `E`, and errors of `records`.
pub(super) fn fill<T, E: From<io::Error>>(
    file: File,
    sequence: u64,
    records: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> io::Result<()>) -> Result<T, E>,
) -> Result<T, E> {
    let mut database = builder(&RedbOptions::default())
        .create_with_backend(Blocks::new(FileBackend::new(file).map_err(written)?))
        .map_err(written)?;
    let transaction = begin_write(&database).map_err(|fault| written(fault_while_creating(fault)))?;
    initialise(&transaction, sequence).map_err(|fault| written(fault_while_creating(fault)))?;
    let filled = {
        let mut table = transaction.open_table(RECORDS).map_err(written)?;
        records(&mut |key, sealed| table.insert(key, sealed).map(drop).map_err(written))?
    };
    transaction.commit().map_err(written)?;
    // The engine makes a growing file twice as long each time.
    database.compact().map_err(written)?;
    drop(database);
    Ok(filled)
}

/// Reports an error of the engine while it creates a file as one of the file: it has no old data that could be damaged.
fn written(error: impl std::error::Error) -> io::Error {
    io::Error::other(error.to_string())
}
