//! What the cluster allows, and whether it accepts commits now.

use std::sync::Mutex;
use std::time::Duration;

use agentcfg_core::sync::lock;
use agentcfg_core::validate::MAX_APPLIED;
use tokio::time::Instant;

use super::client::Client;
use super::error::{CallFailure, ConnectError, Refusal, is_out_of_space};
use super::layout::Layout;
use super::protocol::{RangeRequest, RequestOp, StatusRequest, StatusResponse, TxnRequest, TxnResponse, path};

/// The operations of the largest change: an apply of [`MAX_APPLIED`] agents that prunes as many others. Each agent has
/// its record, its version and its place in the set.
pub(super) const REQUIRED_OPS: usize = 6 * MAX_APPLIED + 64;
/// The bytes of a request that a member must accept. A larger one would have no use, see [`MAX_BYTES`].
pub(super) const REQUIRED_BYTES: usize = 10 << 20;
/// The greatest transaction that is sent, in bytes.
///
/// etcd 3.4 and early releases of 3.5 write a longer entry into the log of each member, and then cannot read it again:
/// no member could be restarted. (etcd issue 14025.) The rest up to 10 MiB is for the marker of the transaction and the
/// frame of the entry.
pub(super) const MAX_BYTES: usize = REQUIRED_BYTES - (64 << 10);

/// Whether the cluster accepts commits.
#[derive(Default)]
pub(super) struct Health {
    read_only: Mutex<Option<String>>,
}

impl Health {
    /// Why commits are refused now.
    pub(super) fn read_only(&self) -> Option<String> {
        lock(&self.read_only).clone()
    }

    /// Notes that a commit was refused because the database is full.
    pub(super) fn note_full(&self, why: &str) {
        self.note(Some(why.to_owned()));
    }

    fn note(&self, why: Option<String>) {
        let mut noted = lock(&self.read_only);
        match (&why, &*noted) {
            (Some(why), None) => tracing::error!(why, "the etcd cluster accepts no changes"),
            (None, Some(_)) => tracing::info!("the etcd cluster accepts changes again"),
            _ => {}
        }
        *noted = why;
    }

    /// Asks the cluster for its alarms. An alarm makes the store read-only; its end makes it writable again.
    pub(super) async fn look(&self, client: &Client, deadline: Instant) -> Result<(), CallFailure> {
        let status: StatusResponse = client.repeat(path::STATUS, &StatusRequest::default(), deadline).await?;
        let alarm = status.errors.iter().find(|error| error.contains("alarm:"));
        self.note(alarm.map(|alarm| match is_out_of_space(alarm) {
            true => format!(
                "the database of the etcd cluster is full ({} MiB): compact and defragment it, then disarm the alarm",
                status.db_size >> 20
            ),
            false => format!("the etcd cluster has raised an alarm: {alarm}"),
        }));
        Ok(())
    }
}

/// Checks that a member which answers allows the largest change. It sends requests of that size which change nothing.
pub(super) async fn check_limits(client: &Client, layout: &Layout) -> Result<(), ConnectError> {
    /// How often a member is asked, one after another, until one answers.
    const ATTEMPTS: u32 = 6;
    let mut attempt = 1;
    loop {
        let member = client.member();
        match check_member(client, layout, member).await {
            Err(ConnectError::Unreachable(why)) if attempt < ATTEMPTS => {
                tracing::info!(
                    why,
                    "a member of the etcd cluster does not show its limits, asking the next one"
                );
                client.switch_from(member);
                attempt += 1;
            }
            checked => return checked,
        }
    }
}

async fn check_member(client: &Client, layout: &Layout, member: usize) -> Result<(), ConnectError> {
    const LIMIT: Duration = Duration::from_secs(4);
    // A member accepts this much more than its limit for the frame of a request.
    const OVERHEAD: usize = 512 << 10;
    let nothing = RequestOp::range(RangeRequest {
        serializable: true,
        ..RangeRequest::key(layout.window("/"))
    });
    let many = TxnRequest {
        success: vec![nothing; REQUIRED_OPS],
        ..TxnRequest::default()
    };
    let ops = client.call::<_, TxnResponse>(member, path::TXN, &many, LIMIT).await;
    refusal(ops.map(drop), || {
        format!("--max-txn-ops must be at least {REQUIRED_OPS}")
    })?;
    let long = StatusRequest {
        padding: vec![0; REQUIRED_BYTES + OVERHEAD - 1024],
    };
    let bytes = client
        .call::<_, StatusResponse>(member, path::STATUS, &long, LIMIT)
        .await;
    refusal(bytes.map(drop), || {
        format!("--max-request-bytes must be at least {REQUIRED_BYTES}")
    })
}

fn refusal(outcome: Result<(), CallFailure>, rule: impl Fn() -> String) -> Result<(), ConnectError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(CallFailure::Refused(Refusal::TooLarge(why))) => {
            Err(ConnectError::TooSmall(format!("{}, and it answers: {why}", rule())))
        }
        Err(failure) => Err(ConnectError::Unreachable(failure.into_text())),
    }
}
