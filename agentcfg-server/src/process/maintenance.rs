//! The background tasks of a server.

use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::AgentCfg;
use agentcfg_core::service::RewrapProgress;

use crate::process::backend::Keeper;
use crate::process::telemetry::Metrics;

/// The interval of the background tasks.
const EVERY: Duration = Duration::from_secs(10);

/// Browser sessions that have ended are removed once in this many intervals.
const SWEEP_EVERY: u32 = 90;

/// Seals the provider keys that are still under an older master key, because a rotation was killed or the configured keys
/// have a new first one.
pub(super) async fn finish_rotation(service: AgentCfg) {
    let mut report = |progress: RewrapProgress| {
        tracing::info!(
            examined = progress.examined,
            rewrapped = progress.rewrapped,
            "sealing provider keys under the first master key"
        );
    };
    match service.rewrap_provider_keys(&mut report).await {
        Ok(done) => tracing::info!(
            examined = done.examined,
            rewrapped = done.rewrapped,
            unreadable = done.unreadable,
            "every provider key is sealed under the first master key, no other one is needed any more"
        ),
        Err(error) => tracing::warn!(%error, "could not seal every provider key under the first master key"),
    }
}

/// Runs the periodic tasks: writes when keys were last used, and checks whether storage answers.
pub(super) async fn maintain(
    service: AgentCfg,
    keeper: Keeper,
    metrics: Arc<Metrics>,
    stopped: impl Future<Output = ()>,
) {
    let mut stopped = std::pin::pin!(stopped);
    for round in 1_u32.. {
        metrics.storage_ready.set(i64::from(keeper.look_after().await));
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = service.flush().await {
            tracing::warn!(?error, "could not write when API keys were last used, trying again");
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
