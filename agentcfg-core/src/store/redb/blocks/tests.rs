//! The backend alone: what was written is read or refused, and each sync is one write of the head and the checksums
//! beside it.

use std::io;
use std::sync::Mutex;

use redb::StorageBackend;

use super::super::tests::memory::{Done, Memory};
use super::layout::block_offset;
use super::*;

const LEN: u64 = 40 * BLOCK as u64;

/// A file of 40 blocks, of which this many are written and synced.
fn written(count: u64) -> (Memory, Blocks<Memory>) {
    let memory = Memory::logged();
    let blocks = Blocks::new(memory.clone());
    blocks.set_len(LEN).unwrap();
    blocks.write(0, &[7; 64]).unwrap();
    for block in 1..=count {
        blocks.write(block * BLOCK as u64, &[block as u8; BLOCK]).unwrap();
    }
    blocks.sync_data().unwrap();
    (memory, blocks)
}

fn read(blocks: &Blocks<Memory>, block: u64) -> io::Result<Vec<u8>> {
    let mut out = vec![0; BLOCK];
    blocks.read(block * BLOCK as u64, &mut out)?;
    Ok(out)
}

/// Opens a copy of the bytes of a file.
fn reopened(memory: &Memory) -> Blocks<Memory> {
    Blocks::new(Memory::new(memory.bytes().clone()))
}

#[test]
fn every_block_and_the_header_are_read_as_they_were_written() {
    let (memory, _) = written(20);
    let blocks = reopened(&memory);
    assert_eq!(blocks.len().unwrap(), LEN);
    let mut header = [0; 64];
    blocks.read(0, &mut header).unwrap();
    assert_eq!(header, [7; 64]);
    for block in 1..=20 {
        assert_eq!(read(&blocks, block).unwrap(), vec![block as u8; BLOCK]);
    }
}

#[test]
fn a_changed_a_moved_and_an_outdated_block_are_refused() {
    let (memory, blocks) = written(3);
    let offset = |block: u64| block_offset(block) as usize;
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = memory.bytes().clone();
        change(&mut bytes);
        read(&Blocks::new(Memory::new(bytes)), 2).unwrap_err().to_string()
    };
    let flipped = damaged(&|bytes| bytes[offset(2) + 99] ^= 4);
    assert!(flipped.contains("block 2 does not match its checksum"), "{flipped}");
    let moved = damaged(&|bytes| bytes.copy_within(offset(3)..offset(3) + BLOCK, offset(2)));
    assert!(moved.contains("block 2"), "{moved}");
    let zeroed = damaged(&|bytes| bytes[offset(2)..offset(2) + BLOCK].fill(0));
    assert!(zeroed.contains("block 2"), "{zeroed}");

    // A write that the disk acknowledged and never made.
    let before = memory.bytes()[offset(2)..offset(2) + BLOCK].to_vec();
    blocks.write(2 * BLOCK as u64, &[9; BLOCK]).unwrap();
    blocks.sync_data().unwrap();
    let outdated = damaged(&|bytes| bytes[offset(2)..offset(2) + BLOCK].copy_from_slice(&before));
    assert!(outdated.contains("block 2"), "{outdated}");
}

#[test]
fn damage_to_single_sectors_of_the_head_is_tolerated() {
    let (memory, blocks) = written(1);
    blocks.write(0, &[8; 64]).unwrap();
    blocks.sync_data().unwrap();
    for slot in [layout::slot_offset(0), layout::slot_offset(1)] {
        let mut bytes = memory.bytes().clone();
        // All copies but the last one.
        for at in (slot as usize..slot as usize + layout::SLOT - 512).step_by(512) {
            bytes[at + 30] ^= 1;
        }
        let mut header = [0; 64];
        Blocks::new(Memory::new(bytes.clone())).read(0, &mut header).unwrap();
        assert_eq!(header, [8; 64]);
        bytes[slot as usize + layout::SLOT - 1] ^= 1;
        let refused = Blocks::new(Memory::new(bytes)).read(0, &mut header).unwrap_err();
        assert!(refused.to_string().contains("head"), "{refused}");
    }
}

#[test]
fn a_sync_of_a_small_file_writes_the_head_and_the_checksums_at_once() {
    let (memory, blocks) = written(1);
    for round in 0..4 {
        let done = memory.done();
        blocks.write(5 * BLOCK as u64, &[round; BLOCK]).unwrap();
        blocks.write(0, &[round; 64]).unwrap();
        blocks.sync_data().unwrap();
        let log = memory.log();
        let sizes: Vec<usize> = log[done..]
            .iter()
            .filter_map(|done| match done {
                Done::Write(_, data) => Some(data.len()),
                _ => None,
            })
            .collect();
        assert_eq!(
            sizes,
            [BLOCK, 2 * BLOCK],
            "the block, then its checksum and a slot of the head"
        );
        // The second sync of a two-phase commit changes the header only.
        let done = memory.done();
        blocks.write(0, &[round + 100; 64]).unwrap();
        blocks.sync_data().unwrap();
        assert_eq!(memory.done() - done, 2, "one write and one sync");
    }
}

#[test]
fn blocks_that_were_cut_off_are_not_there_again_when_the_file_grows() {
    let (memory, blocks) = written(30);
    blocks.set_len(10 * BLOCK as u64).unwrap();
    assert!(read(&blocks, 20).is_err());
    blocks.set_len(LEN).unwrap();
    blocks.sync_data().unwrap();
    let again = reopened(&memory);
    assert_eq!(read(&again, 9).unwrap(), vec![9; BLOCK]);
    // It was not written since, so nothing says what it should be.
    assert!(read(&again, 20).is_err());
}

/// A file that is truncated at a moment of the test: after a read was begun, and before it reads.
#[derive(Debug, Default)]
struct Shrinking {
    file: Memory,
    /// The handle that truncates, before the next read.
    truncating: Mutex<Option<WeakBlocks<Self>>>,
}

impl StorageBackend for Shrinking {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let truncating = self.truncating.lock().unwrap().take();
        if let Some(blocks) = truncating.and_then(|blocks| blocks.upgrade()) {
            blocks.set_len(10 * BLOCK as u64)?;
        }
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

#[test]
fn a_scrub_takes_a_block_that_is_cut_off_meanwhile_for_no_damage() {
    let blocks = Blocks::new(Shrinking::default());
    blocks.set_len(LEN).unwrap();
    for block in 1..=30 {
        blocks.write(block * BLOCK as u64, &[block as u8; BLOCK]).unwrap();
    }
    blocks.sync_data().unwrap();
    let mut damaged = Vec::new();
    assert_eq!(blocks.scrub(1..40, &mut |damage| damaged.push(damage)).unwrap(), 30);
    *blocks.file().truncating.lock().unwrap() = Some(blocks.downgrade());
    blocks.scrub(20..40, &mut |damage| damaged.push(damage)).unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    assert_eq!(blocks.len().unwrap(), 10 * BLOCK as u64);
}
