//! Where the parts of a file with block checksums are.
//!
//! The engine sees a contiguous sequence of blocks, the *logical* file. The file on disk has these parts in this order:
//!
//! | part | bytes |
//! | --- | --- |
//! | head, first slot | [`SLOT`]; see [`head`](super::head) |
//! | checksums of the first group | a block of 1,024 checksums, CRC-32 and big-endian |
//! | head, second slot | [`SLOT`] |
//! | first group | up to 1,024 blocks |
//! | each further group | a block of 1,024 checksums, then up to 1,024 blocks |
//!
//! The last group may be shorter. Block 0 is the engine's header. It is kept in the head, and its place in the first
//! group is never written. The checksums of the first group are between the slots, so that a commit in a small file
//! writes them and either slot at once.

/// The bytes of a block, which has one checksum. The engine's pages have the same size.
pub(in super::super) const BLOCK: usize = 4096;

/// The blocks of a group, whose checksums share one block.
pub(super) const GROUP: u64 = 1024;

/// The bytes of one slot of the head.
pub(super) const SLOT: usize = BLOCK;

/// The bytes of the two slots, which every file has.
const SLOTS: u64 = 2 * SLOT as u64;

/// The offset of a slot of the head.
pub(super) fn slot_offset(slot: usize) -> u64 {
    (slot * (SLOT + BLOCK)) as u64
}

/// The offset of the checksums of a group.
pub(super) fn sums_offset(group: u64) -> u64 {
    match group {
        0 => SLOT as u64,
        _ => SLOTS + group * (GROUP + 1) * BLOCK as u64,
    }
}

/// The offset of a block.
pub(super) fn block_offset(block: u64) -> u64 {
    SLOTS + (1 + block + block / GROUP) * BLOCK as u64
}

/// The length on disk for a logical length; `None` if that is not a whole number of blocks.
pub(super) fn disk_len(len: u64) -> Option<u64> {
    let blocks = len / BLOCK as u64;
    let groups = blocks.div_ceil(GROUP);
    let disk = blocks.checked_add(groups)?.checked_mul(BLOCK as u64)?;
    len.is_multiple_of(BLOCK as u64)
        .then(|| if blocks == 0 { 0 } else { SLOTS + disk })
}

/// The logical length for a length on disk; `None` if no logical length gives it.
pub(super) fn logical_len(disk: u64) -> Option<u64> {
    if disk == 0 {
        return Some(0);
    }
    let blocks = disk.checked_sub(SLOTS)? / BLOCK as u64;
    let len = (blocks - blocks.div_ceil(GROUP + 1)) * BLOCK as u64;
    (disk_len(len) == Some(disk)).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_go_both_ways() {
        for blocks in [0, 1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 1 << 20] {
            let len = blocks * BLOCK as u64;
            let disk = disk_len(len).unwrap_or_default();
            assert_eq!(logical_len(disk), Some(len), "{blocks} blocks");
            if blocks > 0 {
                assert_eq!(disk, block_offset(blocks - 1) + BLOCK as u64);
                assert_eq!(logical_len(disk - 1), None);
            }
        }
        assert_eq!(disk_len(1), None);
        // A block of checksums without any block after it.
        assert_eq!(logical_len(sums_offset(1) + BLOCK as u64), None);
        assert_eq!(logical_len(SLOTS), None);
        assert_eq!(logical_len(100), None);
    }

    #[test]
    fn no_two_parts_overlap() {
        let slots = [slot_offset(0), slot_offset(1)];
        let sums = (0..4).map(sums_offset);
        let blocks = (0..4 * GROUP).map(block_offset);
        let mut offsets: Vec<u64> = slots.into_iter().chain(sums).chain(blocks).collect();
        offsets.sort_unstable();
        let expected: Vec<u64> = (0..offsets.len() as u64).map(|number| number * BLOCK as u64).collect();
        assert_eq!(offsets, expected);
    }
}
