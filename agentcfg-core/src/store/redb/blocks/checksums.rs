//! The checksums of the blocks. A group's checksums stay in memory after their first use.
//!
//! They take a thousandth of the file's size. A checksum of zero means that its block was never written.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use redb::StorageBackend;

use super::layout::{BLOCK, GROUP, sums_offset};
use crate::sync::{lock, read_lock, write_lock};

const WORD: u64 = u64::BITS as u64;

/// The checksums of a file.
#[derive(Debug, Default)]
pub(super) struct Sums {
    groups: RwLock<Vec<Option<Arc<ChecksumGroup>>>>,
    /// The groups whose checksums differ from those on disk.
    changed: Mutex<BTreeSet<u64>>,
    /// The digest of all checksums, from its first use on.
    digest: Mutex<Option<u64>>,
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
        let sum = checksum(block, bytes);
        let before = group.sums[(block % GROUP) as usize].swap(sum, Ordering::AcqRel);
        self.replace_in_digest(block, before, sum);
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
                let before = group.sums[place as usize].swap(0, Ordering::AcqRel);
                self.replace_in_digest(last * GROUP + place, before, 0);
                group.know(place, false);
            }
            lock(&self.changed).insert(last);
        }
        let kept = first.div_ceil(GROUP);
        lock(&self.changed).split_off(&kept);
        let mut groups = write_lock(&self.groups);
        let end = groups.len().min(kept as usize);
        let cut = groups.split_off(end);
        for (number, group) in (kept..).zip(cut) {
            let sums = group.iter().flat_map(|group| &group.sums);
            for (block, sum) in (number * GROUP..).zip(sums) {
                self.replace_in_digest(block, sum.load(Ordering::Acquire), 0);
            }
        }
        Ok(())
    }

    /// Loads the checksums of so many blocks.
    pub(super) fn load(&self, file: &dyn StorageBackend, blocks: u64) -> io::Result<()> {
        (0..blocks.div_ceil(GROUP)).try_for_each(|group| self.group(file, group).map(drop))
    }

    /// The digest of the checksums of so many blocks, which are all blocks of the file. The first call reads the
    /// checksums; from then on each change of one changes the digest.
    pub(super) fn digest(&self, file: &dyn StorageBackend, blocks: u64) -> io::Result<u64> {
        if let Some(digest) = *lock(&self.digest) {
            return Ok(digest);
        }
        let mut digest = 0;
        for number in 0..blocks.div_ceil(GROUP) {
            let group = self.group(file, number)?;
            for (block, sum) in (number * GROUP..).zip(&group.sums) {
                digest ^= digest_part(block, sum.load(Ordering::Acquire));
            }
        }
        *lock(&self.digest) = Some(digest);
        Ok(digest)
    }

    fn replace_in_digest(&self, block: u64, before: u32, sum: u32) {
        if let Some(digest) = &mut *lock(&self.digest) {
            *digest ^= digest_part(block, before) ^ digest_part(block, sum);
        }
    }

    /// Replaces the checksum of a block on disk.
    #[cfg(test)]
    pub(super) fn plant(file: &dyn StorageBackend, block: u64, bytes: &[u8]) -> io::Result<()> {
        let mut group = [0; BLOCK];
        file.read(sums_offset(block / GROUP), &mut group)?;
        group.as_chunks_mut::<4>().0[(block % GROUP) as usize] = checksum(block, bytes).to_be_bytes();
        file.write(sums_offset(block / GROUP), &group)
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

/// The part that the checksum of a block has in the digest of all checksums: a Zobrist hash, so the digest is the
/// exclusive or of all parts and a change needs no other checksum. A block that was never written has no part.
fn digest_part(block: u64, sum: u32) -> u64 {
    if sum == 0 {
        return 0;
    }
    // The finaliser of SplitMix64.
    let mut mixed = (block << 32 ^ u64::from(sum)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
