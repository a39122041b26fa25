//! Transactions whose outcome is always found out, as long as a majority of the cluster answers.
//!
//! An answer to a transaction can get lost: the member crashes, the leader changes, the connection breaks. To repeat it
//! then could write twice. So each transaction writes a **marker** too: a key that this process alone writes, with a
//! text that no other transaction has, under the condition that the marker has not changed since the last one. After a
//! lost answer the process writes another text into the marker under the same condition. Either that succeeds: the lost
//! transaction was not executed, and never will be, because its condition cannot hold any more (a fence). Or the marker
//! has the text of the lost transaction, which was executed then, in the revision of the marker.
//!
//! The markers of a process belong to a lease, so that they disappear with it. A marker that has disappeared tells
//! nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use agentcfg_core::store::StoreError;
use agentcfg_core::sync::lock;
use tokio::time::{Instant, sleep};

use super::client::{Client, answer_timeout};
use super::error::{CallFailure, Refusal, is_out_of_space};
use super::layout::Layout;
use super::protocol::{
    Compare, KeyValue, LeaseGrantRequest, LeaseGrantResponse, LeaseRequest, LeaseRevokeResponse, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse, path,
};

/// The operations that a marker adds to a transaction.
pub(super) const MARKER_OPS: usize = 1;

/// The lease of a process that has none. A key under it would stay for ever.
const NO_LEASE: i64 = 0;
/// How long the markers of a process that has ended exist.
const LEASE_SECONDS: i64 = 30;
/// The pause between two attempts to find an outcome out.
const PAUSE: Duration = Duration::from_millis(40);

/// What this process is to the cluster: its lease, and its markers.
pub(super) struct Identity {
    process: String,
    lease: AtomicI64,
    /// The markers that no transaction in flight uses.
    free: Mutex<Vec<Marker>>,
    numbers: AtomicU64,
}

/// A key that shows whether a transaction was executed.
#[derive(Debug)]
struct Marker {
    key: Vec<u8>,
    /// The revision of its last change.
    revision: i64,
    lease: i64,
}

/// How a transaction ended.
#[derive(Debug)]
pub(super) enum TransactionOutcome {
    /// Its conditions held, and it was executed in this revision.
    Executed(i64),
    /// A condition did not hold: the answers of the reads.
    Refused(Vec<RangeResponse>),
    /// It was not executed, and never will be. It may be sent again.
    Nothing(String),
}

impl Identity {
    pub(super) fn new(process: String) -> Self {
        Self {
            process,
            lease: AtomicI64::new(NO_LEASE),
            free: Mutex::default(),
            numbers: AtomicU64::new(0),
        }
    }

    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// The lease of this process, under which its keys disappear with it.
    pub(super) fn lease(&self) -> i64 {
        self.lease.load(Ordering::Relaxed)
    }

    /// Gets a lease, and shows under it that the process is connected.
    pub(super) async fn register(
        &self,
        client: &Client,
        layout: &Layout,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let request = LeaseGrantRequest { ttl: LEASE_SECONDS };
        let granted: LeaseGrantResponse = client.repeat(path::LEASE_GRANT, &request, deadline).await?;
        let txn = TxnRequest {
            success: vec![RequestOp::put(layout.server(&self.process), Vec::new(), granted.id)],
            ..TxnRequest::default()
        };
        let _: TxnResponse = client.repeat(path::TXN, &txn, deadline).await?;
        self.lease.store(granted.id, Ordering::Relaxed);
        Ok(())
    }

    /// Extends the lease, or gets another one when it has expired.
    pub(super) async fn keep_alive(&self, client: &Client, layout: &Layout) {
        let lease = self.lease.load(Ordering::Relaxed);
        let is_gone = match lease {
            NO_LEASE => true,
            lease => matches!(client.keep_alive(lease).await, Ok(ttl) if ttl <= 0),
        };
        if is_gone {
            let deadline = Instant::now() + Duration::from_secs(5);
            match self.register(client, layout, deadline).await {
                Ok(()) => {}
                // The health of the cluster tells this already.
                Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => {}
                Err(failure) => tracing::warn!(?failure, "cannot get a lease of the etcd cluster, trying again"),
            }
        }
    }

    /// Ends the lease, and with it everything that it keeps.
    pub(super) async fn unregister(&self, client: &Client) {
        let lease = LeaseRequest {
            id: self.lease.load(Ordering::Relaxed),
        };
        let deadline = Instant::now() + Duration::from_secs(1);
        let ended = client
            .repeat::<_, LeaseRevokeResponse>(path::LEASE_REVOKE, &lease, deadline)
            .await;
        if let Err(failure) = ended {
            tracing::debug!(?failure, "the lease was not ended, so it expires");
        }
    }

    /// Sends a transaction whose failure branch has reads alone, and finds its outcome out.
    ///
    /// # Errors
    ///
    /// [`StoreError::OutcomeUnknown`] when it cannot be found out before the deadline; [`StoreError::Unavailable`] when
    /// the transaction was refused.
    pub(super) async fn send(
        &self,
        client: &Client,
        layout: &Layout,
        mut txn: TxnRequest,
        deadline: Instant,
    ) -> Result<TransactionOutcome, StoreError> {
        let marker = match self.marker(client, layout, deadline).await {
            Ok(marker) => marker,
            Err(CallFailure::NotExecuted(why) | CallFailure::Unknown(why)) => return Err(StoreError::Unavailable(why)),
            Err(CallFailure::Refused(refusal)) => return Err(refusal.into_error()),
        };
        let text = format!("commit {}", self.numbers.fetch_add(1, Ordering::Relaxed)).into_bytes();
        txn.compare
            .push(Compare::changed_in(marker.key.clone(), marker.revision));
        txn.success
            .push(RequestOp::put(marker.key.clone(), text.clone(), marker.lease));
        txn.failure
            .push(RequestOp::range(RangeRequest::key(marker.key.clone())));
        let member = client.member();
        let sent = client
            .call::<_, TxnResponse>(member, path::TXN, &txn, answer_timeout(&txn))
            .await;
        match sent {
            Ok(answer) if answer.succeeded => {
                let revision = answer.revision();
                self.put_back(Marker { revision, ..marker });
                Ok(TransactionOutcome::Executed(revision))
            }
            Ok(answer) => {
                let mut ranges: Vec<_> = answer.ranges().collect();
                match ranges.pop().and_then(|marked| marked.kvs.into_iter().next()) {
                    Some(found) if found.mod_revision == marker.revision => self.put_back(marker),
                    // The lease has expired, and with it the marker: the next attempt takes another one.
                    _ => {
                        return Ok(TransactionOutcome::Nothing(
                            "the marker of the transaction has expired".into(),
                        ));
                    }
                }
                Ok(TransactionOutcome::Refused(ranges))
            }
            Err(CallFailure::NotExecuted(why)) => {
                client.switch_from(member);
                self.put_back(marker);
                Ok(TransactionOutcome::Nothing(why))
            }
            Err(CallFailure::Refused(Refusal::NoLease)) => {
                let expired = Refusal::NoLease.into_error().to_string();
                self.keep_alive(client, layout).await;
                Ok(TransactionOutcome::Nothing(expired))
            }
            // It was executed there, if the marker is in that cluster too.
            Err(CallFailure::Refused(refusal @ Refusal::OtherCluster)) => {
                Err(StoreError::OutcomeUnknown(refusal.into_error().to_string()))
            }
            Err(CallFailure::Refused(refusal)) => {
                self.put_back(marker);
                Err(match refusal {
                    // This member allows less than the one that the start asked.
                    Refusal::TooLarge(why) => StoreError::TooLarge(why),
                    other => other.into_error(),
                })
            }
            Err(CallFailure::Unknown(why)) => {
                if !is_out_of_space(&why) {
                    client.switch_from(member);
                }
                self.settle(client, marker, &text, why, deadline).await
            }
        }
    }

    /// Finds out whether a transaction was executed whose answer is lost, and prevents that it still is.
    async fn settle(
        &self,
        client: &Client,
        marker: Marker,
        text: &[u8],
        why: String,
        deadline: Instant,
    ) -> Result<TransactionOutcome, StoreError> {
        let fence = [b"fence after ", text].concat();
        let mut is_full = is_out_of_space(&why);
        loop {
            // A database without space accepts no put, but it does accept a deletion.
            let change = match is_full {
                true => RequestOp::delete(marker.key.clone()),
                false => RequestOp::put(marker.key.clone(), fence.clone(), marker.lease),
            };
            let txn = TxnRequest {
                compare: vec![Compare::changed_in(marker.key.clone(), marker.revision)],
                success: vec![change],
                failure: vec![RequestOp::range(RangeRequest::key(marker.key.clone()))],
            };
            let member = client.member();
            let settled = client
                .call::<_, TxnResponse>(member, path::TXN, &txn, answer_timeout(&txn))
                .await;
            match settled {
                Ok(answer) if answer.succeeded => {
                    let revision = answer.revision();
                    if !is_full {
                        self.put_back(Marker { revision, ..marker });
                    }
                    return Ok(TransactionOutcome::Nothing(why));
                }
                Ok(answer) => {
                    let found = answer.ranges().next().and_then(|range| range.kvs.into_iter().next());
                    return self.read_marker(marker, found, text, &fence, why);
                }
                Err(CallFailure::Unknown(text) | CallFailure::NotExecuted(text)) if is_out_of_space(&text) => {
                    is_full = true
                }
                Err(CallFailure::Refused(Refusal::NoLease)) => return Err(StoreError::OutcomeUnknown(why)),
                Err(failure) => {
                    tracing::debug!(?failure, "the outcome of a transaction is not known yet");
                    client.switch_from(member);
                }
            }
            if Instant::now() >= deadline {
                return Err(StoreError::OutcomeUnknown(why));
            }
            sleep(PAUSE).await;
        }
    }

    fn read_marker(
        &self,
        marker: Marker,
        found: Option<KeyValue>,
        text: &[u8],
        fence: &[u8],
        why: String,
    ) -> Result<TransactionOutcome, StoreError> {
        let Some(found) = found else {
            return Err(StoreError::OutcomeUnknown(why));
        };
        let revision = found.mod_revision;
        let outcome = match found.value {
            value if value == text => TransactionOutcome::Executed(revision),
            // An earlier attempt, whose answer is lost too.
            value if value == fence => TransactionOutcome::Nothing(why),
            _ => return Err(StoreError::OutcomeUnknown(why)),
        };
        self.put_back(Marker { revision, ..marker });
        Ok(outcome)
    }

    /// A marker that no other transaction uses.
    async fn marker(&self, client: &Client, layout: &Layout, deadline: Instant) -> Result<Marker, CallFailure> {
        if self.lease.load(Ordering::Relaxed) == NO_LEASE {
            self.register(client, layout, deadline).await?;
        }
        let lease = self.lease.load(Ordering::Relaxed);
        loop {
            let free = lock(&self.free).pop();
            match free {
                Some(marker) if marker.lease == lease => return Ok(marker),
                // It belonged to a lease that has expired.
                Some(_) => {}
                None => break,
            }
        }
        // Each marker has a name of its own. If the answer to its first put is lost, the name is not used.
        let key = layout.marker(&self.process, self.numbers.fetch_add(1, Ordering::Relaxed));
        let txn = TxnRequest {
            success: vec![RequestOp::put(key.clone(), Vec::new(), lease)],
            ..TxnRequest::default()
        };
        let made = client.repeat::<_, TxnResponse>(path::TXN, &txn, deadline).await;
        match made {
            Ok(answer) => Ok(Marker {
                key,
                revision: answer.revision(),
                lease,
            }),
            Err(CallFailure::Refused(Refusal::NoLease)) => {
                self.keep_alive(client, layout).await;
                Err(CallFailure::NotExecuted("the lease of this process has expired".into()))
            }
            Err(failure) => Err(failure),
        }
    }

    fn put_back(&self, marker: Marker) {
        lock(&self.free).push(marker);
    }
}
