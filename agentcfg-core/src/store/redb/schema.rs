//! The tables of a store file.

use redb::{Database, ReadTransaction, ReadableDatabase, StorageError, TableDefinition, WriteTransaction};

use super::error::{Fault, OpenError};

/// Maps encoded keys to sealed records; see [`envelope`](super::super::envelope).
pub(super) const RECORDS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

/// Numbers about the whole file, by [`SEQUENCE_NAME`].
pub(super) const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");

/// The last version that the store assigned. It only grows, so a version is never reused.
pub(super) const SEQUENCE_NAME: &str = "sequence";

/// Creates the tables of an empty file in a transaction that the caller commits.
pub(super) fn initialise(transaction: &WriteTransaction, sequence: u64) -> Result<(), Fault> {
    transaction.open_table(RECORDS)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(SEQUENCE_NAME, sequence)?;
    Ok(())
}

/// Begins a write transaction with the durability that the store guarantees.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction, Fault> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

/// Refuses a file without the tables of a store.
pub(super) fn verify_tables(database: &impl ReadableDatabase) -> Result<(), OpenError> {
    let transaction = database.begin_read().map_err(into_open_error)?;
    read_sequence(&transaction)?;
    transaction.open_table(RECORDS).map_err(into_open_error)?;
    Ok(())
}

/// The version sequence in a snapshot.
pub(super) fn read_sequence(transaction: &ReadTransaction) -> Result<u64, OpenError> {
    let meta = transaction.open_table(META).map_err(into_open_error)?;
    let sequence = meta.get(SEQUENCE_NAME)?.map(|found| found.value());
    sequence.ok_or_else(|| OpenError::Damaged("the version sequence is missing".into()))
}

fn into_open_error(error: impl Into<redb::Error>) -> OpenError {
    match error.into() {
        redb::Error::Io(error) => StorageError::Io(error).into(),
        other => OpenError::Damaged(other.to_string()),
    }
}
