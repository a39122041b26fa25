//! The background tasks of a server.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::FollowingClock;
use agentcfg_core::service::{RemovedHistory, RewrapProgress, WebhookSender};
use tokio::time::MissedTickBehavior;

use crate::process::backend::StoreMaintenance;
use crate::process::master_keys::{Resealed, reseal};
use crate::process::telemetry::Metrics;

/// The interval of the background tasks.
const EVERY: Duration = Duration::from_secs(10);

/// In how many intervals ended browser sessions are removed once.
const SWEEP_EVERY: u32 = 90;

/// Finishes a rotation of the master key: seals the provider keys that are still under an older one, because a rotation
/// was killed or the configured keys have a new first one.
pub(super) async fn finish_rotation(service: AgentCfg) {
    let mut report = |progress: RewrapProgress| {
        tracing::info!(
            examined = progress.examined,
            rewrapped = progress.rewrapped,
            "sealing provider keys and secrets of webhooks under the first master key"
        );
    };
    match reseal(&service, &mut report).await {
        Ok(Resealed::Everything(done)) => tracing::info!(
            examined = done.examined,
            rewrapped = done.rewrapped,
            "every provider key and secret of a webhook is sealed under the first master key, no other one is needed any more"
        ),
        Ok(Resealed::AllButUnreadable(done)) => tracing::warn!(
            examined = done.examined,
            rewrapped = done.rewrapped,
            unreadable = done.unreadable,
            "some provider keys or secrets of webhooks open under no master key and were left as they are: the workspaces that the \
             lines above name must save their keys again and rotate the secrets of their webhooks. All else is sealed under the first \
             master key, no other one is needed any more"
        ),
        Ok(Resealed::Superseded) => tracing::warn!(
            "another master key has become the first one meanwhile: keep all of them, and give all servers the same ones in the \
             same order"
        ),
        Err(error) => {
            tracing::warn!(%error, "could not seal every provider key and secret of a webhook under the first master key, or check that it is so")
        }
    }
}

/// Finishes the removal of deleted workspaces, now and periodically: a crash or an outage, of this server or another
/// one, may have interrupted one.
pub(super) async fn remove_deleted_workspaces(service: AgentCfg, stopped: impl Future<Output = ()>) {
    let work = async {
        loop {
            if let Err(error) = service.remove_deleted_workspaces().await {
                tracing::warn!(
                    ?error,
                    "could not remove all records of deleted workspaces, trying again"
                );
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    tokio::select! {
        () = stopped => {}
        () = work => {}
    }
}

/// The pause before the clock is asked again whether it follows that of the database.
const AGAIN: Duration = Duration::from_secs(1);

/// The interval between two removals of old history.
const HISTORY_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Removes audit entries and versions that are older than the settings keep them, now and periodically.
///
/// On a database whose clock this server follows it waits for the first reading: by the clock of a machine that is
/// ahead, it would remove what the database keeps.
pub(super) async fn remove_old_history(
    service: AgentCfg,
    clock: Option<Arc<FollowingClock>>,
    stopped: impl Future<Output = ()>,
) {
    let work = async {
        while clock.as_ref().is_some_and(|clock| !clock.is_following()) {
            tokio::time::sleep(AGAIN).await;
        }
        loop {
            match service.remove_old_history().await {
                Ok(RemovedHistory {
                    entries: 0,
                    versions: 0,
                    ..
                }) => {}
                Ok(RemovedHistory { entries, versions, .. }) => {
                    tracing::info!(
                        entries,
                        versions,
                        "removed audit entries and versions that are not kept any more"
                    );
                }
                Err(error) => tracing::warn!(
                    ?error,
                    "could not remove all history that is not kept any more, trying again"
                ),
            }
            tokio::time::sleep(HISTORY_INTERVAL).await;
        }
    };
    tokio::select! {
        () = stopped => {}
        () = work => {}
    }
}

/// The interval of the webhook sender's ticks: other servers write to a shared store without a notice, and attempts
/// become due.
const WEBHOOK_TICK: Duration = Duration::from_secs(1);

/// The pause after each send, so that a stream of commits does not become a busy loop.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a stopping server waits for the webhooks that are being sent. What is aborted then is sent again later.
const GRACE: Duration = Duration::from_secs(5);

/// Sends webhooks until the server stops.
pub(super) async fn send_webhooks(sender: WebhookSender, stopped: impl Future<Output = ()>) {
    let mut stopped = std::pin::pin!(stopped);
    let mut is_failing = false;
    let mut look = tokio::time::interval(WEBHOOK_TICK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let looked = tokio::select! {
            biased;
            () = &mut stopped => break,
            _ = look.tick() => sender.tick().await,
            () = sender.changed() => sender.send_changed().await,
        };
        match looked {
            Ok(()) => is_failing = false,
            Err(error) => {
                // Logged once, since each failure would be a line a second.
                if !is_failing {
                    tracing::warn!(?error, "could not look for webhooks to send, trying again");
                }
                is_failing = true;
            }
        }
        tokio::select! {
            () = &mut stopped => break,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    if tokio::time::timeout(GRACE, sender.stop()).await.is_err() {
        tracing::info!("webhooks that are being sent are aborted, and sent again after the start");
    }
}

/// Runs the periodic tasks, such as the check whether storage answers.
pub(super) async fn maintain(
    service: AgentCfg,
    store_maintenance: StoreMaintenance,
    metrics: Arc<Metrics>,
    stopped: impl Future<Output = ()>,
) {
    let mut stopped = std::pin::pin!(stopped);
    for round in 1_u32.. {
        metrics.storage_ready.set(i64::from(store_maintenance.is_ready().await));
        store_maintenance.sweep().await;
        return_freed_memory();
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        if round.is_multiple_of(SWEEP_EVERY)
            && let Err(error) = service.sweep_browser_sessions().await
        {
            tracing::warn!(
                ?error,
                "could not remove browser sessions that have ended, trying again"
            );
        }
    }
}

/// For how long what is in memory alone is written at the end of the process, and the pause between two attempts.
const WRITE_FOR: Duration = Duration::from_secs(10);
const BETWEEN: Duration = Duration::from_millis(250);

/// Writes the usage of model calls, what budgets have spent and when keys were last used, before the process ends.
pub(super) async fn flush(service: &AgentCfg) {
    let write = async {
        while let Err(error) = service.flush().await {
            tracing::warn!(
                ?error,
                "could not write usage, budgets and last uses of API keys, trying again"
            );
            tokio::time::sleep(BETWEEN).await;
        }
    };
    if tokio::time::timeout(WRITE_FOR, write).await.is_err() {
        let seconds = WRITE_FOR.as_secs();
        tracing::error!(
            seconds,
            "could not write usage, budgets and last uses of API keys before the end: budgets show what this server held as unsettled"
        );
    }
}

/// mimalloc purges freed pages only during later frees: one large block is freed, so that an idle server returns memory
/// too.
fn return_freed_memory() {
    // Larger than any page that the allocator keeps for the next allocation.
    const LARGE: usize = 8 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}
