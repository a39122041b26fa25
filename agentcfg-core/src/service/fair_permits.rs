//! Permits that holders of different keys share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, ErrorKind};
use crate::sync::lock;

/// A number of permits, granted in the order of the requests for them. Each key may have only a part of them at once,
/// so that the permits go round between the keys.
#[derive(Debug)]
pub(super) struct FairPermits<K: Hash + Eq> {
    pub(super) all: Arc<Semaphore>,
    /// How many one key may have at once.
    of_key: usize,
    /// The semaphores of the keys that have permits or wait for some.
    known: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// One permit, as long as it is held.
#[derive(Debug)]
#[must_use]
pub(super) struct Permit<K: Hash + Eq> {
    permits: Arc<FairPermits<K>>,
    key: K,
    held: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl<K: Hash + Eq + Clone> FairPermits<K> {
    /// Creates `all` permits, of which one key gets at most half.
    pub(super) fn of(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::new(Semaphore::new(all)),
            of_key: all.div_ceil(2),
            known: Mutex::default(),
        })
    }

    /// Waits for a permit.
    pub(super) async fn permit(self: Arc<Self>, key: K) -> Result<Permit<K>, Error> {
        let of_key = {
            let mut known = self.known();
            let of_key = known
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(self.of_key)));
            Arc::clone(of_key)
        };
        let of_all = Arc::clone(&self.all);
        let mut permit = Permit {
            permits: self,
            key,
            held: None,
        };
        let closed = |error| Error::new(ErrorKind::Internal, "the permits are closed").because(error);
        let of_key = of_key.acquire_owned().await.map_err(closed)?;
        permit.held = Some((of_key, of_all.acquire_owned().await.map_err(closed)?));
        Ok(permit)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        lock(&self.known)
    }
}

impl<K: Hash + Eq> Drop for Permit<K> {
    fn drop(&mut self) {
        self.held = None;
        let mut known = lock(&self.permits.known);
        // Each permit and each waiting one holds the semaphore of its key.
        if known
            .get(&self.key)
            .is_some_and(|of_key| Arc::strong_count(of_key) == 1)
        {
            known.remove(&self.key);
        }
    }
}
