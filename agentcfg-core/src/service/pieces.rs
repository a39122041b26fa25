//! Reading many records in pieces of bounded size.

use super::AgentCfg;
use super::records::{self, Entity, Entries};
use crate::error::{Error, ErrorKind};
use crate::model::WorkspaceId;

/// The bytes that a piece is meant to have at most.
const BYTES: usize = 512 << 10;
/// The greatest number of records in a piece.
const RECORDS: usize = 256;

/// The size of the next piece, by that of the last one.
///
/// A scan is bounded by a number of records, and these differ in size by a factor of ten thousand. So the first piece is one
/// record, and a piece is at most twice as long as the last one, and so long that records like those of the last one fit.
pub(super) struct Pieces {
    records: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { records: 1 }
    }
}

impl Pieces {
    /// The first piece has so many records.
    pub(super) fn of(records: usize) -> Self {
        Self { records }
    }

    /// How many records the next piece may have.
    pub(super) fn limit(&self) -> usize {
        self.records
    }

    /// Notes the size of a piece that was read.
    pub(super) fn note(&mut self, records: usize, bytes: usize) {
        let each = bytes.div_ceil(records.max(1)).max(1);
        self.records = (self.records * 2).min(BYTES / each).clamp(1, RECORDS);
    }
}

impl AgentCfg {
    /// Reads the entries of a log after a revision, up to another one at least, and returns the last that was read.
    pub(super) async fn log_between<T: Entity>(
        &self,
        workspace: WorkspaceId,
        mut read: u64,
        last: u64,
        mut visit: impl FnMut(T),
    ) -> Result<u64, Error> {
        let mut pieces = Pieces::default();
        while read < last {
            let after = records::audit_entry::<T>(workspace, read);
            let entries = Entries::in_workspace(workspace).after(&after).limit(pieces.limit());
            let found = self.scan::<T>(entries).await?;
            if found.is_empty() {
                return Err(Error::new(ErrorKind::Internal, "the log ends before its last entry"));
            }
            pieces.note(found.len(), found.bytes());
            for entry in found {
                read += 1;
                visit(entry.value()?);
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_while_records_are_small_and_shrink_at_once() {
        let mut pieces = Pieces::default();
        let mut limits = Vec::new();
        for _ in 0..10 {
            limits.push(pieces.limit());
            pieces.note(pieces.limit(), pieces.limit() * 100);
        }
        assert_eq!(limits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256]);
        pieces.note(256, 256 * 8192);
        assert_eq!(pieces.limit(), 64);
        pieces.note(64, 20 << 20);
        assert_eq!(pieces.limit(), 1);
        pieces.note(1, 5 << 20);
        assert_eq!(pieces.limit(), 1);
        pieces.note(0, 0);
        assert_eq!(pieces.limit(), 2);
    }
}
