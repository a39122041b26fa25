//! The tables of a store file, and their format version.

use redb::{Database, ReadTransaction, ReadableDatabase, StorageError, TableDefinition, TableError, WriteTransaction};

use super::error::{Fault, OpenError};

/// The format of the tables that this release writes, and the newest that it reads.
pub(super) const FORMAT: u64 = 1;

/// Maps encoded keys to sealed records; see [`envelope`](super::super::envelope).
pub(super) const RECORDS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

/// Numbers about the whole file, by [`FORMAT_NAME`] and [`SEQUENCE_NAME`].
pub(super) const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

const FORMAT_NAME: &str = "format";

/// The last version that the store assigned. It only grows, so a version is never reused.
pub(super) const SEQUENCE_NAME: &str = "sequence";

/// Creates the tables of an empty file in a transaction that the caller commits.
pub(super) fn initialise(transaction: &WriteTransaction, sequence: u64) -> Result<(), Fault> {
    transaction.open_table(RECORDS)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(FORMAT_NAME, FORMAT)?;
    meta.insert(SEQUENCE_NAME, sequence)?;
    Ok(())
}

/// Begins a write transaction with the durability that the store guarantees.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    transaction.set_quick_repair(false);
    Ok(transaction)
}

/// Refuses a file of a format that this release does not know.
pub(super) fn verify_format(database: &impl ReadableDatabase) -> Result<(), OpenError> {
    let transaction = database.begin_read().map_err(into_open_error)?;
    match read_meta(&transaction, FORMAT_NAME)? {
        Some(FORMAT) => {}
        Some(found) if found > FORMAT => {
            return Err(OpenError::TooNew {
                found,
                supported: FORMAT,
            });
        }
        Some(found) => return Err(OpenError::Damaged(format!("format {found} does not exist"))),
        None => {
            return Err(OpenError::Damaged(
                "the file is a database, but not a store of agentcfg".into(),
            ));
        }
    }
    transaction.open_table(RECORDS).map_err(into_open_error)?;
    Ok(())
}

/// The version sequence in a snapshot.
pub(super) fn read_sequence(transaction: &ReadTransaction) -> Result<u64, OpenError> {
    read_meta(transaction, SEQUENCE_NAME)?.ok_or_else(|| OpenError::Damaged("the version sequence is missing".into()))
}

fn read_meta(transaction: &ReadTransaction, name: &str) -> Result<Option<u64>, OpenError> {
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(into_open_error(error)),
    };
    Ok(meta.get(name)?.map(|found| found.value()))
}

pub(super) fn into_open_error(error: impl Into<redb::Error>) -> OpenError {
    match error.into() {
        redb::Error::Io(error) => StorageError::Io(error).into(),
        other => OpenError::Damaged(other.to_string()),
    }
}
