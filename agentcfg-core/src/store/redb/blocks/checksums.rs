//! The checksums of the blocks. A group's checksums stay in memory after their first use.
//!
//! They take a thousandth of the file's size. A checksum of zero means that its block was never written.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use redb::StorageBackend;
use sha2::{Digest, Sha256};

use super::head::Seal;
use super::layout::{BLOCK, GROUP, sums_offset};
use crate::sync::{lock, read_lock, write_lock};

const WORD: u64 = u64::BITS as u64;

/// The checksums of a file.
#[derive(Debug, Default)]
pub(super) struct Sums {
    groups: RwLock<Vec<Option<Arc<ChecksumGroup>>>>,
    /// The groups whose checksums differ from those on disk.
    changed: Mutex<BTreeSet<u64>>,
}

/// The checksums of a group.
#[derive(Debug)]
pub(super) struct ChecksumGroup {
    sums: Vec<AtomicU32>,
    /// One bit for each block: whether this process has written it, or has read it undamaged.
    known: Vec<AtomicU64>,
}

impl ChecksumGroup {
    fn from_bytes(bytes: &[u8; BLOCK]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        Self {
            sums: words.iter().map(|word| u32::from_be_bytes(*word).into()).collect(),
            known: (0..GROUP / WORD).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        let (words, _) = bytes.as_chunks_mut::<4>();
        for (word, sum) in words.iter_mut().zip(&self.sums) {
            *word = sum.load(Ordering::Acquire).to_be_bytes();
        }
        bytes
    }

    fn know(&self, place: u64, known: bool) {
        let (word, bit) = (&self.known[(place / WORD) as usize], 1 << (place % WORD));
        match known {
            true => word.fetch_or(bit, Ordering::AcqRel),
            false => word.fetch_and(!bit, Ordering::AcqRel),
        };
    }

    fn is_known(&self, place: u64) -> bool {
        self.known[(place / WORD) as usize].load(Ordering::Acquire) & (1 << (place % WORD)) != 0
    }

    /// Whether the bytes are those that this block must have.
    pub(super) fn matches(&self, block: u64, bytes: &[u8]) -> bool {
        self.sums[(block % GROUP) as usize].load(Ordering::Acquire) == checksum(block, bytes)
    }
}

impl Sums {
    /// Whether a block that was read matches its checksum.
    pub(super) fn verify(&self, file: &dyn StorageBackend, block: u64, bytes: &[u8]) -> io::Result<bool> {
        let group = self.group(file, block / GROUP)?;
        let matches = group.matches(block, bytes);
        if matches && !group.is_known(block % GROUP) {
            group.know(block % GROUP, true);
        }
        Ok(matches)
    }

    /// Sets the checksum of a block before it is written.
    pub(super) fn change(&self, file: &dyn StorageBackend, block: u64, bytes: &[u8]) -> io::Result<()> {
        let group = self.group(file, block / GROUP)?;
        group.sums[(block % GROUP) as usize].store(checksum(block, bytes), Ordering::Release);
        group.know(block % GROUP, true);
        lock(&self.changed).insert(block / GROUP);
        Ok(())
    }

    /// The changed checksums that must be written, with their offsets. Call [`Self::synced`] after the sync.
    pub(super) fn unwritten(&self, file: &dyn StorageBackend) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let changed: Vec<u64> = lock(&self.changed).iter().copied().collect();
        let part = |number| Ok((sums_offset(number), self.group(file, number)?.to_bytes()));
        changed.into_iter().map(part).collect()
    }

    /// Notes that [`Self::unwritten`] is on disk.
    pub(super) fn synced(&self) {
        lock(&self.changed).clear();
    }

    /// Removes the checksums of all blocks from this one on, before the file is truncated.
    pub(super) fn cut(&self, file: &dyn StorageBackend, first: u64) -> io::Result<()> {
        let (last, rest) = (first / GROUP, first % GROUP);
        if rest > 0 {
            let group = self.group(file, last)?;
            for place in rest..GROUP {
                group.sums[place as usize].store(0, Ordering::Release);
                group.know(place, false);
            }
            lock(&self.changed).insert(last);
        }
        let kept = first.div_ceil(GROUP);
        lock(&self.changed).split_off(&kept);
        let mut groups = write_lock(&self.groups);
        groups.truncate(kept as usize);
        Ok(())
    }

    /// Loads the checksums of so many blocks.
    pub(super) fn load(&self, file: &dyn StorageBackend, blocks: u64) -> io::Result<()> {
        (0..blocks.div_ceil(GROUP)).try_for_each(|group| self.group(file, group).map(drop))
    }

    /// A digest of the checksums of so many blocks.
    pub(super) fn digest(&self, file: &dyn StorageBackend, blocks: u64) -> io::Result<Seal> {
        let mut digest = Sha256::new();
        for group in 0..blocks.div_ceil(GROUP) {
            digest.update(self.group(file, group)?.to_bytes());
        }
        let mut seal = Seal::default();
        seal.copy_from_slice(&digest.finalize()[..size_of::<Seal>()]);
        Ok(seal)
    }

    /// The checksums of a block that this process has written, or has read undamaged; `None` for another one.
    pub(super) fn known(&self, block: u64) -> Option<Arc<ChecksumGroup>> {
        let groups = read_lock(&self.groups);
        let group = groups.get((block / GROUP) as usize)?.as_ref()?;
        group.is_known(block % GROUP).then(|| Arc::clone(group))
    }

    fn group(&self, file: &dyn StorageBackend, number: u64) -> io::Result<Arc<ChecksumGroup>> {
        let index = number as usize;
        let groups = read_lock(&self.groups);
        if let Some(Some(group)) = groups.get(index) {
            return Ok(Arc::clone(group));
        }
        drop(groups);
        let mut bytes = [0; BLOCK];
        file.read(sums_offset(number), &mut bytes)?;
        let mut groups = write_lock(&self.groups);
        if groups.len() <= index {
            groups.resize(index + 1, None);
        }
        // Another thread may have loaded the group meanwhile, and changed a checksum in it.
        Ok(Arc::clone(
            groups[index].get_or_insert_with(|| Arc::new(ChecksumGroup::from_bytes(&bytes))),
        ))
    }
}

/// The checksum of a block at its place. The number of the block is part of it, so a block at a wrong place does not
/// match.
fn checksum(block: u64, bytes: &[u8]) -> u32 {
    let place = (block as u32).wrapping_mul(0x9e37_79b1) ^ (block >> 32) as u32;
    match crc32fast::hash(bytes) ^ place {
        0 => 1,
        sum => sum,
    }
}
