//! The last committed state of a file whose writer failed, for reads until the file is open again.
//!
//! After an I/O error the engine fails every call until its file is reopened, which reads the whole file. The committed
//! state is undamaged meanwhile: the engine never overwrites a block that it refers to before the next commit is
//! synced, and the [head](super::head) keeps the engine's header of the last sync. So this backend shows the file with
//! that header, read-only.
//!
//! When the file is open again, the engine reuses blocks of older states. [`End::end`] makes all further reads fail
//! before that.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, RwLock};

use redb::{BackendError, Builder, ConcurrencyMode, DatabaseError, ReadOnlyDatabase, StorageBackend};

use super::backend::{Blocks, split};
use super::head::{ROOM, as_closed};
use super::layout::BLOCK;
use crate::sync::{read_lock, write_lock};

/// A file whose last committed state can be opened beside a failed engine.
pub(in super::super) trait Freeze: std::fmt::Debug + Send + Sync {
    /// Opens the state of the last sync for reads, in a time that does not depend on the size of the file.
    fn freeze(&self, cache_bytes: usize) -> Result<Frozen, DatabaseError>;
}

/// The last committed state of a file; see the [module's text](self).
pub(in super::super) struct Frozen {
    /// The engine, which reads that state.
    pub(in super::super) database: ReadOnlyDatabase,
    /// Ends the reads.
    pub(in super::super) end: End,
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Frozen")
    }
}

/// Whether a [`Frozen`] state may no longer be read. Clones are handles of the same flag.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct End(Arc<RwLock<bool>>);

impl End {
    /// Waits for the reads of blocks in progress and makes all later ones fail.
    pub(in super::super) fn end(&self) {
        *write_lock(&self.0) = true;
    }
}

/// The backend; see the [module's text](self).
#[derive(Debug)]
struct View<B> {
    blocks: Blocks<B>,
    header: [u8; ROOM],
    len: u64,
    end: End,
}

impl<B: StorageBackend> Freeze for Blocks<B> {
    fn freeze(&self, cache_bytes: usize) -> Result<Frozen, DatabaseError> {
        let (header, len) = self.synced().map_err(redb::StorageError::Io)?;
        let end = End::default();
        let view = View {
            blocks: self.clone(),
            header: as_closed(header),
            len,
            end: end.clone(),
        };
        // In this mode a reader needs no record of the free pages, which the last commit may not have saved.
        let database = Builder::new()
            .set_cache_size(cache_bytes)
            .set_concurrency_mode(ConcurrencyMode::SingleWriter)
            .open_read_only_with_backend(view)?;
        Ok(Frozen { database, end })
    }
}

impl<B: StorageBackend> StorageBackend for View<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let ended = read_lock(&self.end.0);
        if *ended {
            return Err(io::Error::other("the file was opened again"));
        }
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (header, blocks) = out.split_at_mut(split(offset, out.len())?);
        let content = self.header.iter().chain(std::iter::repeat(&0));
        for (out, byte) in header.iter_mut().zip(content.skip(offset as usize)) {
            *out = *byte;
        }
        let first = (offset + header.len() as u64) / BLOCK as u64;
        self.blocks.read_blocks(self.blocks.state()?, first, blocks)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    // The state never changes, so its readers need no locks.

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(false)
    }
}
