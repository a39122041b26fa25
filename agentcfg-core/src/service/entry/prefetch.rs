//! Entry where each call of the store is a round trip over a network: the records that a request is likely to need are
//! read together with its key's record, and the request is counted at the same time.
//!
//! Both are safe only for a credential that this process has verified before. Its plaintext is known then, so only a
//! revocation or its expiry can make it bad, and both are final. A request that was counted and is then refused takes
//! nothing from any other, because that key is never accepted again. Any other credential is verified before its
//! request is counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::clock::Moment;
use crate::service::records::{Encoded, WorkspacePlan};
use crate::sync::lock;

/// How long after the entry of its request a snapshot is used, in milliseconds of the steady clock.
const MAX_AGE: i64 = 1000;

/// The records that were read on entry, in the snapshot of the key's record. One service method uses them; the next one
/// must see later changes and reads again.
pub(in crate::service) struct Prefetch {
    read_at: i64,
    is_claimed: AtomicBool,
    records: Mutex<WorkspaceRecords>,
}

/// Records of the key's workspace, each until a method takes it.
#[derive(Default)]
pub(super) struct WorkspaceRecords {
    pub(super) revision: Option<u64>,
    pub(super) plan: Option<Encoded<WorkspacePlan>>,
}

impl Prefetch {
    pub(super) fn new(at: Moment, records: WorkspaceRecords) -> Arc<Self> {
        Arc::new(Self {
            read_at: at.steady_millis,
            is_claimed: AtomicBool::new(false),
            records: Mutex::new(records),
        })
    }

    /// Claims the snapshot for a method. Only the first method gets it, and only while it is fresh.
    pub(in crate::service) fn claim(&self, steady_millis: i64) -> bool {
        steady_millis - self.read_at <= MAX_AGE && !self.is_claimed.swap(true, Ordering::Relaxed)
    }

    /// Takes the workspace's revision.
    pub(in crate::service) fn take_revision(&self) -> Option<u64> {
        lock(&self.records).revision.take()
    }

    /// Takes the workspace's plan.
    pub(in crate::service) fn take_plan(&self) -> Option<Encoded<WorkspacePlan>> {
        lock(&self.records).plan.take()
    }
}
