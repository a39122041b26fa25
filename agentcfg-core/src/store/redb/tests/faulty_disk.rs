//! An in-memory disk with fault injection. Its content outlives the database.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use redb::StorageBackend;

use super::super::open::Opener;
use super::super::recovery::Healer;
use super::super::{RedbOptions, RedbStore};
use super::open_or_create;

type Hook = Box<dyn FnMut(Operation) -> io::Result<()> + Send>;

/// A disk operation of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Open,
    Read,
    Write,
    Resize,
    Sync,
}

/// The disk. Clones share its content and its hook.
#[derive(Clone, Default)]
pub(super) struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Disk {
    /// A disk with this content.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Arc::new(Mutex::new(bytes)),
            hook: Arc::default(),
        }
    }

    /// Calls `hook` before each operation from now on.
    pub(super) fn set_hook(&self, hook: impl FnMut(Operation) -> io::Result<()> + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// Makes these operations fail from now on.
    pub(super) fn fail(&self, operations: &'static [Operation]) {
        self.set_hook(move |operation| match operations.contains(&operation) {
            true => Err(io::Error::other("injected disk failure")),
            false => Ok(()),
        });
    }

    pub(super) fn work(&self) {
        *self.hook.lock().unwrap() = None;
    }

    pub(super) fn opener(&self, options: &RedbOptions) -> Opener {
        let (disk, options) = (self.clone(), options.clone());
        Box::new(move || {
            disk.ask(Operation::Open)?;
            let is_empty = disk.bytes().is_empty();
            open_or_create(disk.clone(), is_empty, &options)
        })
    }

    pub(super) fn healer(&self) -> Healer {
        let options = options();
        Healer {
            opener: self.opener(&options),
            min_backoff: options.min_backoff,
            max_backoff: options.max_backoff,
        }
    }

    pub(super) fn store(&self, options: &RedbOptions) -> RedbStore {
        RedbStore::start(self.opener(options), Arc::default(), options).unwrap()
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap()
    }

    fn ask(&self, operation: Operation) -> io::Result<()> {
        self.hook
            .lock()
            .unwrap()
            .as_mut()
            .map_or(Ok(()), |hook| hook(operation))
    }
}

/// Options with very short pauses between attempts to reopen.
pub(super) fn options() -> RedbOptions {
    RedbOptions {
        cache_bytes: 0,
        min_backoff: Duration::from_micros(100),
        max_backoff: Duration::from_millis(1),
        ..RedbOptions::default()
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.ask(Operation::Read)?;
        let bytes = self.bytes();
        let found = bytes
            .get(offset as usize..offset as usize + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.ask(Operation::Resize)?;
        self.bytes().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ask(Operation::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.ask(Operation::Write)?;
        self.bytes()[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        Ok(())
    }
}
