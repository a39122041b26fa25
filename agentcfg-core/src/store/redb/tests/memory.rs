//! A file in memory that can log the operations on it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

use super::super::error::OpenError;
use super::super::open::{Opener, panic_as_damage};
use super::super::{RedbOptions, RedbStore};
use super::faulty_disk::options;
use super::open_or_create;

/// An operation on a file.
#[derive(Clone)]
pub(in super::super) enum Done {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

/// Handles are clones of each other.
#[derive(Clone, Default)]
pub(in super::super) struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    log: Option<Arc<Mutex<Vec<Done>>>>,
}

impl Memory {
    pub(in super::super) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Arc::new(Mutex::new(bytes)),
            log: None,
        }
    }

    /// An empty file that logs the operations on it.
    pub(in super::super) fn logged() -> Self {
        Self {
            log: Some(Arc::default()),
            ..Self::default()
        }
    }

    pub(in super::super) fn log(&self) -> Vec<Done> {
        self.log.as_ref().unwrap().lock().unwrap().clone()
    }

    pub(in super::super) fn done(&self) -> usize {
        self.log.as_ref().unwrap().lock().unwrap().len()
    }

    pub(in super::super) fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap()
    }

    /// Opens the store in the file, and creates one in an empty file.
    pub(super) fn open(&self) -> Result<RedbStore, OpenError> {
        self.open_with(&options())
    }

    pub(super) fn open_with(&self, options: &RedbOptions) -> Result<RedbStore, OpenError> {
        RedbStore::start(self.opener(options), Arc::default(), options)
    }

    fn opener(&self, options: &RedbOptions) -> Opener {
        let (memory, options) = (self.clone(), options.clone());
        Box::new(move || {
            panic_as_damage(|| {
                let is_empty = memory.bytes().is_empty();
                open_or_create(memory.clone(), is_empty, &options)
            })
        })
    }

    fn note(&self, done: impl FnOnce() -> Done) {
        if let Some(log) = &self.log {
            log.lock().unwrap().push(done());
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        let found = bytes.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(|| Done::SetLen(len));
        self.bytes().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(|| Done::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(|| Done::Write(offset, data.to_vec()));
        self.bytes()[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        Ok(())
    }
}
