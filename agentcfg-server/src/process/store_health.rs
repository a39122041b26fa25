//! The health checks of the embedded store, which run in the background: whether its file is still at its path, whether
//! its disk has room, and whether its blocks match their checksums (the scrub).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::process::backend::{FileStore, Scrub};
use crate::process::telemetry::StoreNumbers;

/// The interval of the rounds: without writers, the removal of the store file or a full disk is logged after this time.
const EVERY: Duration = Duration::from_millis(500);

/// The number of scrub steps in a round, of about a megabyte each.
const STEPS: usize = 4;

/// The pause of the scrub after a pass, in rounds for each round of the pass.
const PAUSE_FACTOR: u32 = 50;

/// The shortest and the longest pause in rounds: ten seconds and an hour.
const PAUSES: (u32, u32) = (20, 2 * 3600);

/// The current numbers of a store, for the metrics.
pub(super) fn numbers(store: &FileStore, last_backup: &AtomicI64) -> StoreNumbers {
    let condition = store.condition();
    StoreNumbers {
        is_ready: store.is_ready(),
        damaged_blocks: condition.damaged_blocks,
        scrubbed_bytes: condition.scrubbed_bytes,
        failures: condition.failures,
        refused_commits: condition.refused_commits,
        file_bytes: condition.file_bytes,
        free_bytes: condition.free_bytes,
        last_backup: last_backup.load(Ordering::Relaxed),
    }
}

/// Checks a store until `stopped` resolves.
pub(super) async fn check_store(store: Arc<FileStore>, stopped: impl Future<Output = ()>) {
    let mut stopped = std::pin::pin!(stopped);
    let mut checks = HealthChecks::default();
    loop {
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let round = {
            let store = Arc::clone(&store);
            tokio::task::spawn_blocking(move || {
                checks.round(&store);
                checks
            })
        };
        match round.await {
            Ok(after) => checks = after,
            // A round panics only for a defect of the store. The server goes on without the checks.
            Err(error) => {
                tracing::error!(%error, "the background checks of the store file have stopped");
                return;
            }
        }
    }
}

#[derive(Debug, Default)]
struct HealthChecks {
    scrub: Scrub,
    /// The rest of the scrub's pause, in rounds.
    pause: u32,
    /// The rounds that this pass of the scrub has taken.
    rounds: u32,
    /// Whether the last round found the file removed or replaced.
    is_lost: bool,
}

impl HealthChecks {
    fn round(&mut self, store: &FileStore) {
        match store.file_in_place() {
            Err(error) if !self.is_lost => {
                self.is_lost = true;
                tracing::error!(
                    %error,
                    "mutations are refused because they would be lost, reads are served; before you stop the server, save its \
                     store with `agentcfg-server backup`, then restore that backup"
                );
            }
            Ok(()) if self.is_lost => {
                self.is_lost = false;
                tracing::info!("the store file is at its path again, mutations are accepted");
            }
            Ok(()) | Err(_) => {}
        }
        // The store logs a full disk when it notices it, even without a commit.
        let _ = store.is_ready();
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        for _ in 0..STEPS {
            match store.scrub(&mut self.scrub) {
                Ok(false) => {}
                Ok(true) => {
                    self.pause = self.rounds.saturating_mul(PAUSE_FACTOR).clamp(PAUSES.0, PAUSES.1);
                    self.rounds = 0;
                    return;
                }
                // The store logs the reason, and the next round tries the same step.
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentcfg_core::store::redb::RedbOptions;

    use super::*;

    #[test]
    fn a_round_scrubs_the_file_and_detects_its_removal() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("store.redb");
        let store = FileStore::open(&path, RedbOptions::default()).unwrap();
        let mut checks = HealthChecks::default();
        checks.round(&store);
        let found = numbers(&store, &AtomicI64::new(0));
        assert!(found.is_ready && found.damaged_blocks == 0 && found.failures == 0);
        assert_eq!(found.file_bytes, std::fs::metadata(&path).unwrap().len());
        assert!(found.free_bytes.is_some_and(|free| free > 0));
        assert!(found.scrubbed_bytes > 0 && checks.pause > 0);
        std::fs::remove_file(&path).unwrap();
        checks.round(&store);
        assert!(checks.is_lost && !numbers(&store, &AtomicI64::new(0)).is_ready);
    }
}
