//! Reading many records in pieces of bounded size.

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
