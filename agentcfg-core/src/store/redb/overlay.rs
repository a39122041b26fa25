//! A copy-on-write backend: it reads from a file and keeps all writes in memory, so that a check can
//! recover a store without changing the file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::sync::lock;

use redb::{BackendError, StorageBackend};

const BLOCK: u64 = 4096;

/// See the module's text. Locks are taken on the file itself, so a check and a running server exclude
/// each other.
#[derive(Debug)]
pub(super) struct Overlay<B> {
    base: B,
    /// Whether other readers of the file are let in.
    is_shared: bool,
    /// Made at the first use: the engine locks the file before it uses it.
    state: OnceLock<Mutex<OverlayState>>,
}

#[derive(Debug)]
struct OverlayState {
    len: u64,
    /// How many bytes of the file are still visible. A truncation lowers it for good, so that bytes
    /// which were cut off do not reappear when the length grows again.
    shown: u64,
    /// The written blocks by their number.
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl<B: StorageBackend> Overlay<B> {
    pub(super) fn new(base: B) -> Self {
        Self {
            base,
            is_shared: false,
            state: OnceLock::new(),
        }
    }

    /// An overlay of a file that was opened for reading. It takes shared locks, for which that is enough.
    pub(super) fn shared(base: B) -> Self {
        Self {
            is_shared: true,
            ..Self::new(base)
        }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, OverlayState>> {
        let state = match self.state.get() {
            Some(state) => state,
            None => {
                let len = self.base.len()?;
                self.state.get_or_init(|| {
                    Mutex::new(OverlayState {
                        len,
                        shown: len,
                        blocks: BTreeMap::new(),
                    })
                })
            }
        };
        Ok(lock(state))
    }

    /// Fills `out` from the file, and with zeros beyond its visible part.
    fn read_base(&self, shown: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = shown.saturating_sub(offset).min(out.len() as u64) as usize;
        let (file, beyond) = out.split_at_mut(there);
        beyond.fill(0);
        if file.is_empty() {
            Ok(())
        } else {
            self.base.read(offset, file)
        }
    }
}

/// Splits a range at block boundaries and calls `visit` with each block's number, the offset within
/// the block, and the part of the range that lies in it.
fn each_block(
    offset: u64,
    len: usize,
    mut visit: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let position = offset + done as u64;
        let within = (position % BLOCK) as usize;
        let part = (BLOCK as usize - within).min(len - done);
        visit(position / BLOCK, within, done..done + part)?;
        done += part;
    }
    Ok(())
}

impl<B: StorageBackend> StorageBackend for Overlay<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state()?;
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        each_block(offset, out.len(), |number, within, part| {
            match state.blocks.get(&number) {
                Some(block) => {
                    let len = part.len();
                    out[part].copy_from_slice(&block[within..within + len]);
                    Ok(())
                }
                None => self.read_base(state.shown, number * BLOCK + within as u64, &mut out[part]),
            }
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.shown = state.shown.min(len);
        state.len = len;
        state.blocks.split_off(&len.div_ceil(BLOCK));
        if let Some(block) = state.blocks.get_mut(&(len / BLOCK)) {
            block[(len % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or(io::ErrorKind::InvalidInput)?;
        state.len = state.len.max(end);
        let shown = state.shown;
        each_block(offset, data.len(), |number, within, part| {
            let block = match state.blocks.entry(number) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(place) => {
                    let mut block = vec![0; BLOCK as usize];
                    self.read_base(shown, number * BLOCK, &mut block)?;
                    place.insert(block)
                }
            };
            block[within..within + part.len()].copy_from_slice(&data[part]);
            Ok(())
        })
    }

    fn close(&self) -> io::Result<()> {
        self.base.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        match self.is_shared {
            true => self.base.try_lock_shared_range(start, end),
            false => self.base.try_lock_range(start, end),
        }
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.base.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        match self.is_shared {
            true => self.base.lock_shared_range(start, end),
            false => self.base.lock_range(start, end),
        }
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.base.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.base.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.base.query_lock_range(start, end)
    }
}
