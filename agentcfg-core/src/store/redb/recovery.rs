//! Recovery from engine failures: after an I/O error the engine refuses to write until its file is
//! reopened.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::StoreError;
use super::error::{OpenError, is_full};
use super::open::Opener;
use super::queue::Task;
use super::shared_state::{Status, StoreState};

/// The pause between two checks whether a full disk has room.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Reopens the storage with exponential back-off between the shortest and the longest pause.
pub(super) struct Healer {
    pub(super) opener: Opener,
    pub(super) min_backoff: Duration,
    pub(super) max_backoff: Duration,
}

impl Healer {
    /// Retries until the file is open again or all senders of the queue are dropped. Batches that
    /// arrive meanwhile are refused.
    pub(super) fn heal(&mut self, shared: &StoreState, queue: &Receiver<Task>) {
        if shared.status() != Status::Recovering {
            shared.freeze();
        }
        let mut pause = self.min_backoff;
        loop {
            // To open the file would read all of it, and the next commit would fail again.
            if shared.health().room().refusal(0).is_some() {
                if !refuse_for(shared, queue, FULL_PAUSE) {
                    return;
                }
                continue;
            }
            let error = match (self.opener)() {
                Ok(opened) => {
                    shared.resume_serving(opened);
                    tracing::info!("the store file was reopened");
                    return;
                }
                Err(error) => error,
            };
            match error {
                // Only an operator can repair this. The file may be replaced by an undamaged one, so the retries go on
                // at the longest pause.
                OpenError::Damaged(_) => {
                    pause = self.max_backoff;
                    tracing::error!(cause = %error, ?pause, "the store file is damaged and cannot be opened: restore a backup into a new directory");
                }
                OpenError::Io(ref io) if is_full(io) => {
                    pause = pause.min(FULL_PAUSE);
                    tracing::warn!(cause = %error, ?pause, "the disk has no room to reopen the store file, retrying after the pause");
                }
                _ => {
                    tracing::warn!(cause = %error, ?pause, "the store file could not be reopened, retrying after the pause");
                }
            }
            if !refuse_for(shared, queue, pause) {
                return;
            }
            pause = (pause * 2).min(self.max_backoff);
        }
    }
}

/// Refuses arriving batches during the pause; returns `false` once all senders are dropped.
fn refuse_for(shared: &StoreState, queue: &Receiver<Task>, pause: Duration) -> bool {
    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    let start = Instant::now();
    loop {
        match queue.recv_timeout(pause.saturating_sub(start.elapsed())) {
            Ok(Task::Commit(_, answer)) => {
                let refusal = StoreError::Unavailable("the store file is being reopened after a failure".into());
                shared.health().refused(1);
                let _ = answer.send(Err(refusal.into()));
            }
            // A read of the last committed state failed. Its engine serves nothing more, another one may.
            Ok(Task::ReadFailed(generation)) if generation == shared.generation() => shared.freeze(),
            Ok(Task::ReadFailed(_)) => {}
            // Its answer is dropped.
            Ok(Task::Compact(_)) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}
