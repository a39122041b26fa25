//! The head: the engine's header in two slots of several copies each.
//!
//! The engine changes its header in place, and a flag in it selects the last of two commits. So a flipped bit in the
//! header must be detected and must not lose the store. The head has two slots. A change goes to the slot that the last
//! sync did not write, so a power loss that tears this write leaves the other slot complete. Each slot holds [`COPIES`]
//! copies of the same sector, each with a checksum, so damage to single sectors is tolerated.
//!
//! | bytes of a sector | content |
//! | --- | --- |
//! | 8 | [`MAGIC`] |
//! | 4 | the [`FORMAT`] of the store, big-endian |
//! | 32 | the build that made the file, then zeros |
//! | 8 | the generation of the head, big-endian: the greatest one is current |
//! | 448 | the engine's header, then zeros |
//! | 8 | the seal, big-endian: the digest of all block checksums as of the last sync of a verified file |
//! | 4 | CRC-32 (IEEE) of all bytes before, big-endian |
//!
//! Every later format keeps the first three fields and the last one where they are.

use std::io;

use redb::StorageBackend;

use super::layout::{SLOT, slot_offset};
use crate::store::stream::{BUILD_FIELD, BuildField, other_format};
use crate::store::{FORMAT, OtherFormat};

/// The first bytes of each sector of the head.
pub(super) const MAGIC: [u8; 8] = *b"AGCFGBLK";

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

/// The copies of the sector in a slot.
const COPIES: usize = SLOT / SECTOR;

const BUILD: std::ops::Range<usize> = 12..44;

const GENERATION: std::ops::Range<usize> = 44..52;

const CONTENT: std::ops::Range<usize> = 52..500;

const SEAL: std::ops::Range<usize> = 500..508;

/// The room for the engine's header in bytes. The engine uses 320.
pub(super) const ROOM: usize = CONTENT.end - CONTENT.start;

/// The place of the flags in the engine's header, after its magic number.
const FLAGS: usize = 9;

/// The flag of a file that was not closed.
const RECOVERY_REQUIRED: u8 = 2;

/// The head in memory.
#[derive(Debug)]
pub(super) struct Head {
    /// The build that made the file.
    build: BuildField,
    content: [u8; ROOM],
    /// The digest of all block checksums.
    seal: u64,
    /// The content since the last sync.
    synced: [u8; ROOM],
    generation: u64,
    /// The slot that is complete on disk since the last sync.
    stable: usize,
    /// Whether the content differs from the stable slot.
    changed: bool,
}

/// Why a head could not be read.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum HeadFault {
    /// The file has another format.
    #[error("the file was {0}")]
    Other(OtherFormat),
    /// The file was truncated or extended.
    #[error("the file has {0} bytes, which is not a valid length of a store file")]
    Length(u64),
    /// One of the slots has no undamaged copy, so it is unknown which state was the last one.
    #[error("the head of the file does not match its checksums")]
    Damaged,
    /// The file cannot be read.
    #[error(transparent)]
    Io(io::Error),
}

impl From<HeadFault> for io::Error {
    fn from(fault: HeadFault) -> Self {
        match fault {
            HeadFault::Io(error) => error,
            fault => Self::new(io::ErrorKind::InvalidData, fault),
        }
    }
}

impl Head {
    /// The head of an empty file. The first two syncs write the two slots.
    pub(super) fn new() -> Self {
        Self {
            build: BUILD_FIELD,
            content: [0; ROOM],
            seal: 0,
            synced: [0; ROOM],
            generation: 0,
            stable: 1,
            changed: false,
        }
    }

    /// Reads the head of a file.
    pub(super) fn read(file: &dyn StorageBackend) -> Result<Self, HeadFault> {
        let mut bytes = [0; SLOT];
        let mut newest: Option<(Sector, usize)> = None;
        for slot in 0..2 {
            file.read(slot_offset(slot), &mut bytes).map_err(HeadFault::Io)?;
            let mut intact = 0;
            for sector in bytes.chunks_exact(SECTOR) {
                let Some(sector) = open(sector) else {
                    continue;
                };
                intact += 1;
                if newest
                    .as_ref()
                    .is_none_or(|(newest, _)| sector.generation > newest.generation)
                {
                    newest = Some((sector, slot));
                }
            }
            // After its first sync a new file has one slot. A power loss never tears all copies of the stable slot.
            let unwritten = slot == 1 && newest.as_ref().is_some_and(|(newest, _)| newest.generation == 1);
            if intact == 0 && !(unwritten && bytes.iter().all(|byte| *byte == 0)) {
                return Err(HeadFault::Damaged);
            }
        }
        let (sector, stable) = newest.ok_or(HeadFault::Damaged)?;
        Ok(Self {
            build: sector.build,
            content: sector.content,
            seal: sector.seal,
            synced: sector.content,
            generation: sector.generation,
            stable,
            changed: false,
        })
    }

    /// The engine's header.
    pub(super) fn content(&self) -> &[u8; ROOM] {
        &self.content
    }

    /// The engine's header as of the last sync.
    pub(super) fn synced_content(&self) -> &[u8; ROOM] {
        &self.synced
    }

    /// Applies a write of the engine at an offset of its header.
    pub(super) fn change(&mut self, offset: usize, data: &[u8]) -> io::Result<()> {
        let kept = data.len().min(ROOM.saturating_sub(offset));
        if data[kept..].iter().any(|byte| *byte != 0) {
            let message = format!("the engine's header has at most {ROOM} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if kept > 0 {
            self.content[offset..offset + kept].copy_from_slice(&data[..kept]);
            self.changed = true;
        }
        Ok(())
    }

    /// Whether the engine has closed the file in order.
    pub(super) fn is_closed(&self) -> bool {
        self.content[FLAGS] & RECOVERY_REQUIRED == 0
    }

    /// The digest of all block checksums as of the last sync of a verified file.
    pub(super) fn seal(&self) -> u64 {
        self.seal
    }

    /// Sets the digest of all block checksums that the next sync writes.
    pub(super) fn set_seal(&mut self, seal: u64) {
        self.changed |= self.seal != seal;
        self.seal = seal;
    }

    /// The part of a changed head that must be written, with its offset: the slot that is not stable. Call
    /// [`Self::synced`] after the sync.
    pub(super) fn unwritten(&self) -> Option<(u64, Vec<u8>)> {
        self.changed
            .then(|| (slot_offset(1 - self.stable), self.next_sector().repeat(COPIES)))
    }

    fn next_sector(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..12].copy_from_slice(&FORMAT.to_be_bytes());
        sector[BUILD].copy_from_slice(&self.build);
        sector[GENERATION].copy_from_slice(&(self.generation + 1).to_be_bytes());
        sector[CONTENT].copy_from_slice(&self.content);
        sector[SEAL].copy_from_slice(&self.seal.to_be_bytes());
        let checksum = crc32fast::hash(&sector[..SEAL.end]);
        sector[SEAL.end..].copy_from_slice(&checksum.to_be_bytes());
        sector
    }

    /// Notes that [`Self::unwritten`] is on disk.
    pub(super) fn synced(&mut self) {
        if self.changed {
            self.generation += 1;
            self.stable = 1 - self.stable;
            self.synced = self.content;
            self.changed = false;
        }
    }
}

/// Refuses a file of another format, which may have another layout after the first slot.
pub(super) fn verify_format(file: &dyn StorageBackend, len: u64) -> Result<(), HeadFault> {
    let mut bytes = vec![0; len.min(SLOT as u64) as usize];
    file.read(0, &mut bytes).map_err(HeadFault::Io)?;
    match bytes.chunks_exact(SECTOR).find_map(open) {
        Some(sector) if sector.format != FORMAT => Err(HeadFault::Other(other_format(sector.format, &sector.build))),
        _ => Ok(()),
    }
}

/// An engine's header that says that its file was closed. With two-phase commits the state that it selects is complete,
/// so it needs no repair.
pub(super) fn as_closed(mut header: [u8; ROOM]) -> [u8; ROOM] {
    header[FLAGS] &= !RECOVERY_REQUIRED;
    header
}

/// An undamaged sector.
struct Sector {
    format: u32,
    build: BuildField,
    generation: u64,
    content: [u8; ROOM],
    seal: u64,
}

fn open(sector: &[u8]) -> Option<Sector> {
    let (body, checksum) = sector.split_last_chunk::<4>()?;
    if !body.starts_with(&MAGIC) || u32::from_be_bytes(*checksum) != crc32fast::hash(body) {
        return None;
    }
    Some(Sector {
        format: u32::from_be_bytes(body[8..12].try_into().ok()?),
        build: body[BUILD].try_into().ok()?,
        generation: u64::from_be_bytes(body[GENERATION].try_into().ok()?),
        content: body[CONTENT].try_into().ok()?,
        seal: u64::from_be_bytes(body[SEAL].try_into().ok()?),
    })
}
