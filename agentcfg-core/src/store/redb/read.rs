//! Reads: one snapshot for each call. They run on the caller's thread, because reading a cached page
//! takes about a microsecond; only long scans are moved to the blocking pool.

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};

use super::super::plan::{decode_key, scan_range};
use super::super::{Direction, Key, Record, Scan, Scanned, StoreError, envelope};
use super::error::Fault;
use super::schema::RECORDS;

/// Why a read failed.
#[derive(Debug)]
pub(super) enum ReadFault {
    /// The engine failed.
    Engine(Fault),
    /// The envelope of one record could not be opened.
    Record(StoreError),
}

impl<E: Into<Fault>> From<E> for ReadFault {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

/// Reads records by their encoded keys.
pub(super) fn get(transaction: &ReadTransaction, keys: &[Vec<u8>]) -> Result<Vec<Option<Record>>, ReadFault> {
    get_from(&transaction.open_table(RECORDS)?, keys)
}

/// Runs a scan.
pub(super) fn scan(transaction: &ReadTransaction, scan: &Scan) -> Result<Scanned, ReadFault> {
    let table = transaction.open_table(RECORDS)?;
    let (start, end) = scan_range(scan);
    let mut range = table.range::<&[u8]>((
        start.as_ref().map(|bytes| bytes.as_slice()),
        end.as_ref().map(|bytes| bytes.as_slice()),
    ))?;
    let next = || {
        let next = match scan.direction {
            Direction::Ascending => range.next(),
            Direction::Descending => range.next_back(),
        };
        next.map(|next| {
            let (key, sealed) = next?;
            let record = envelope::open(key.value(), sealed.value()).map_err(ReadFault::Record)?;
            Ok((decode_key(key.value()).map_err(ReadFault::Record)?, record))
        })
    };
    Ok(Scanned {
        entries: scan.take::<ReadFault>(std::iter::from_fn(next))?,
        with: get_from(&table, &scan.with.iter().map(Key::encode).collect::<Vec<_>>())?,
    })
}

/// Reads one record by its encoded key, also within a write transaction.
pub(super) fn record(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Record>, ReadFault> {
    match table.get(key)? {
        Some(sealed) => envelope::open(key, sealed.value()).map(Some).map_err(ReadFault::Record),
        None => Ok(None),
    }
}

fn get_from(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    keys: &[Vec<u8>],
) -> Result<Vec<Option<Record>>, ReadFault> {
    keys.iter().map(|key| record(table, key)).collect()
}
