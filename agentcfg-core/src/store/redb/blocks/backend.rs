//! The backend between the engine and the file.

use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use redb::{BackendError, StorageBackend};

use super::checksums::Sums;
use super::contain::{Damage, is_contained, raise};
use super::head::{self, Head, HeadFault, ROOM};
use super::layout::{BLOCK, GROUP, block_offset, disk_len, logical_len};
use crate::sync::lock;

/// A file with block checksums; see the [module's text](super). A clone is a handle to the same file.
#[derive(Debug)]
pub(in super::super) struct Blocks<B>(Arc<Inner<B>>);

#[derive(Debug)]
struct Inner<B> {
    file: B,
    /// Whether the checksums are known to belong together, so that a sync seals them.
    is_verified: AtomicBool,
    /// Loaded at the first use: the engine locks the file before it uses it.
    state: OnceLock<State>,
}

#[derive(Debug)]
pub(super) struct State {
    /// The logical length.
    len: AtomicU64,
    /// The logical length as of the last sync.
    synced_len: AtomicU64,
    sums: Sums,
    /// The head. Each write, resize and sync holds the lock.
    head: Mutex<Head>,
}

impl<B> Clone for Blocks<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A handle that does not keep the file open.
#[derive(Debug)]
pub(in super::super) struct WeakBlocks<B>(Weak<Inner<B>>);

impl<B> WeakBlocks<B> {
    pub(in super::super) fn upgrade(&self) -> Option<Blocks<B>> {
        self.0.upgrade().map(Blocks)
    }
}

impl State {
    /// Loads the state of an empty file, or of one with block checksums.
    fn read(file: &dyn StorageBackend) -> Result<Self, HeadFault> {
        let disk = file.len().map_err(HeadFault::Io)?;
        head::verify_format(file, disk)?;
        let len = logical_len(disk).ok_or(HeadFault::Length(disk))?;
        let head = match len {
            0 => Head::new(),
            _ => Head::read(file)?,
        };
        Ok(Self {
            len: len.into(),
            synced_len: len.into(),
            sums: Sums::default(),
            head: Mutex::new(head),
        })
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Refuses a range that exceeds the file.
    fn verify_range(&self, offset: u64, len: usize) -> io::Result<()> {
        match offset.checked_add(len as u64).is_some_and(|end| end <= self.len()) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<B: StorageBackend> Blocks<B> {
    /// Wraps an empty file, or one with block checksums. Nothing is read yet.
    pub(in super::super) fn new(file: B) -> Self {
        Self(Arc::new(Inner {
            file,
            is_verified: AtomicBool::new(false),
            state: OnceLock::new(),
        }))
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &B {
        &self.0.file
    }

    /// Replaces a block on disk together with its checksum, as no write of the engine does.
    #[cfg(test)]
    pub(in super::super) fn plant(&self, block: u64, content: &[u8]) -> io::Result<()> {
        self.0.file.write(block_offset(block), content)?;
        Sums::plant(&self.0.file, block, content)
    }

    /// A handle that does not keep the file open.
    pub(in super::super) fn downgrade(&self) -> WeakBlocks<B> {
        WeakBlocks(Arc::downgrade(&self.0))
    }

    pub(super) fn state(&self) -> io::Result<&State> {
        if let Some(state) = self.0.state.get() {
            return Ok(state);
        }
        let state = State::read(&self.0.file)?;
        if state.len() == 0 {
            self.set_verified();
        }
        // The engine opens a file on one thread.
        Ok(self.0.state.get_or_init(|| state))
    }

    /// The engine's header and the logical length, as of the last sync.
    pub(super) fn synced(&self) -> io::Result<([u8; ROOM], u64)> {
        let state = self.state()?;
        let head = lock(&state.head);
        Ok((*head.synced_content(), state.synced_len.load(Ordering::Acquire)))
    }

    /// Reads blocks and verifies them. `out` is whole blocks.
    pub(super) fn read_blocks(&self, state: &State, first: u64, out: &mut [u8]) -> io::Result<()> {
        let mut block = first;
        let mut rest = out;
        while !rest.is_empty() {
            let run = ((GROUP - block % GROUP) as usize * BLOCK).min(rest.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(run);
            if let Err(error) = self.0.file.read(block_offset(block), now) {
                return Err(self.unreadable(block, now, error));
            }
            for (bytes, block) in now.chunks_exact_mut(BLOCK).zip(block..) {
                self.verify(state, block, bytes)?;
            }
            block += (run / BLOCK) as u64;
            rest = later;
        }
        Ok(())
    }

    fn verify(&self, state: &State, block: u64, bytes: &mut [u8]) -> io::Result<()> {
        if state.sums.verify(&self.0.file, block, bytes)? {
            return Ok(());
        }
        // The transfer may have failed and not the disk, so the block is read once more.
        self.0.file.read(block_offset(block), bytes)?;
        match state.sums.verify(&self.0.file, block, bytes)? {
            true => Ok(()),
            false => Err(raise(Damage {
                block,
                unreadable: None,
            })),
        }
    }

    /// Fails a read of blocks that the operating system could not read. A read transaction loses only this read, like
    /// one of a damaged block; to a write transaction it is an I/O error.
    fn unreadable(&self, first: u64, out: &mut [u8], error: io::Error) -> io::Error {
        if !is_contained() {
            return error;
        }
        for (bytes, block) in out.chunks_exact_mut(BLOCK).zip(first..) {
            if let Err(error) = self.0.file.read(block_offset(block), bytes) {
                return raise(Damage {
                    block,
                    unreadable: Some(error.kind()),
                });
            }
        }
        // Each block alone can be read. The caller tries again.
        error
    }

    /// Verifies the blocks of a range that this process has written or read before, and calls `damaged` for each that
    /// changed on disk since. Returns the number of verified blocks.
    ///
    /// Other blocks are left out: after a power loss, a block that no committed state refers to may differ from its
    /// checksum.
    pub(in super::super) fn scrub(
        &self,
        range: std::ops::Range<u64>,
        damaged: &mut dyn FnMut(Damage),
    ) -> io::Result<u64> {
        let state = self.state()?;
        let mut count = 0;
        for block in range.start..range.end.min(state.len() / BLOCK as u64) {
            let Some(first) = self.examine(state, block) else {
                continue;
            };
            if first.is_err() {
                // A write or a truncation may be in progress. The lock of the head waits for its end.
                let _head = lock(&state.head);
                if let Some(Err(damage)) = self.examine(state, block) {
                    damaged(damage);
                }
            }
            count += 1;
        }
        Ok(count)
    }

    /// Reads a block that this process knows, and compares it with its checksum; `None` for another one.
    fn examine(&self, state: &State, block: u64) -> Option<Result<(), Damage>> {
        let sums = state.sums.known(block)?;
        let mut bytes = [0; BLOCK];
        let damage = |unreadable| Err(Damage { block, unreadable });
        Some(match self.0.file.read(block_offset(block), &mut bytes) {
            Err(error) => damage(Some(error.kind())),
            Ok(()) if sums.matches(block, &bytes) => Ok(()),
            Ok(()) => damage(None),
        })
    }

    /// Whether the engine has closed the file in order.
    pub(in super::super) fn is_closed(&self) -> io::Result<bool> {
        Ok(lock(&self.state()?.head).is_closed())
    }

    /// Makes each later sync seal the file. Without this call a file keeps its seal, which does not match after a change.
    /// Nothing is read, so it can be called before the engine locks the file.
    pub(in super::super) fn set_verified(&self) {
        self.0.is_verified.store(true, Ordering::Release);
    }

    /// Whether the block checksums are those of the last sync. Then each block that matches its checksum has the content
    /// that it had at that sync, or is in no committed state.
    pub(in super::super) fn is_sealed(&self) -> io::Result<bool> {
        let state = self.state()?;
        let seal = lock(&state.head).seal();
        Ok(self.digest(state)? == seal)
    }

    fn digest(&self, state: &State) -> io::Result<u64> {
        state.sums.digest(&self.0.file, state.len() / BLOCK as u64)
    }

    /// Loads all block checksums, so that a block that is replaced later does not match them.
    pub(in super::super) fn load_sums(&self) -> io::Result<()> {
        let state = self.state()?;
        state.sums.load(&self.0.file, state.len() / BLOCK as u64)
    }

    /// The length that the file on disk has at least; `None` before its first use.
    pub(in super::super) fn disk_len(&self) -> Option<u64> {
        disk_len(self.0.state.get()?.len())
    }

    /// The number of blocks of the logical file.
    pub(in super::super) fn count(&self) -> io::Result<u64> {
        Ok(self.state()?.len() / BLOCK as u64)
    }
}

/// Joins parts of the file that follow each other, so that each run is one write.
fn joined(mut parts: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    parts.sort_unstable_by_key(|(offset, _)| *offset);
    let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
    for (offset, bytes) in parts {
        match runs.last_mut() {
            Some((start, run)) if *start + run.len() as u64 == offset => run.extend(bytes),
            _ => runs.push((offset, bytes)),
        }
    }
    runs
}

/// The number of bytes of a range that lie in the header's block. The rest must be whole blocks.
pub(super) fn split(offset: u64, len: usize) -> io::Result<usize> {
    let in_header = (BLOCK as u64).saturating_sub(offset).min(len as u64) as usize;
    let (start, rest) = (offset + in_header as u64, len - in_header);
    match start.is_multiple_of(BLOCK as u64) && rest.is_multiple_of(BLOCK) || rest == 0 {
        true => Ok(in_header),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{len} bytes at {offset} are not whole blocks"),
        )),
    }
}

impl<B: StorageBackend> StorageBackend for Blocks<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state()?;
        state.verify_range(offset, out.len())?;
        let (header, blocks) = out.split_at_mut(split(offset, out.len())?);
        if !header.is_empty() {
            let head = lock(&state.head);
            let content = head.content().iter().chain(std::iter::repeat(&0));
            for (out, byte) in header.iter_mut().zip(content.skip(offset as usize)) {
                *out = *byte;
            }
        }
        let first = (offset + header.len() as u64) / BLOCK as u64;
        self.read_blocks(state, first, blocks)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let disk = disk_len(len).ok_or(io::ErrorKind::InvalidInput)?;
        let state = self.state()?;
        let _head = lock(&state.head);
        if len < state.len() {
            state.sums.cut(&self.0.file, len / BLOCK as u64)?;
            // Before the file is shorter, so that nothing expects the part that is cut off.
            state.len.store(len, Ordering::Release);
        }
        self.0.file.set_len(disk)?;
        state.len.store(len, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let state = self.state()?;
        let mut head = lock(&state.head);
        if self.0.is_verified.load(Ordering::Acquire) {
            head.set_seal(self.digest(state)?);
        }
        let mut parts = state.sums.unwritten(&self.0.file)?;
        parts.extend(head.unwritten());
        for (offset, bytes) in joined(parts) {
            self.0.file.write(offset, &bytes)?;
        }
        self.0.file.sync_data()?;
        state.sums.synced();
        head.synced();
        state.synced_len.store(state.len(), Ordering::Release);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let state = self.state()?;
        state.verify_range(offset, data.len())?;
        let (header, blocks) = data.split_at(split(offset, data.len())?);
        let mut head = lock(&state.head);
        if !header.is_empty() {
            head.change(offset as usize, header)?;
        }
        let mut block = (offset + header.len() as u64) / BLOCK as u64;
        let mut rest = blocks;
        while !rest.is_empty() {
            let run = ((GROUP - block % GROUP) as usize * BLOCK).min(rest.len());
            let (now, later) = rest.split_at(run);
            for (bytes, block) in now.chunks_exact(BLOCK).zip(block..) {
                state.sums.change(&self.0.file, block, bytes)?;
            }
            self.0.file.write(block_offset(block), now)?;
            block += (run / BLOCK) as u64;
            rest = later;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.0.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.file.query_lock_range(start, end)
    }
}
