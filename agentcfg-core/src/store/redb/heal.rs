//! Recovery from engine failures: after an I/O error the engine refuses to write until its file is
//! reopened.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::StoreError;
use super::error::OpenError;
use super::open::Opener;
use super::state::{Shared, Status};
use super::writer::Task;

/// Reopens the storage with exponential back-off between the shortest and the longest pause.
pub(super) struct Healer {
    pub(super) opener: Opener,
    pub(super) min_backoff: Duration,
    pub(super) max_backoff: Duration,
}

impl Healer {
    /// Retries until the file is open again or all senders of the queue are dropped. Batches that
    /// arrive meanwhile are refused.
    pub(super) fn heal(&mut self, shared: &Shared, queue: &Receiver<Task>) {
        shared.stop_serving(Status::Recovering);
        let mut pause = self.min_backoff;
        loop {
            match (self.opener)() {
                Ok(database) => {
                    shared.resume_serving(database);
                    tracing::info!("the store file was reopened");
                    return;
                }
                Err(error) => {
                    match error {
                        // Only an operator can repair this. The file may be replaced by an undamaged one, so the retries go on at
                        // the longest pause.
                        OpenError::Damaged(_) => {
                            pause = self.max_backoff;
                            tracing::error!(cause = %error, ?pause, "the store file is damaged and cannot be opened: restore a backup into a new directory");
                        }
                        _ => {
                            tracing::warn!(cause = %error, ?pause, "the store file could not be reopened, retrying after the pause");
                        }
                    }
                    if !refuse_for(queue, pause) {
                        return;
                    }
                    pause = (pause * 2).min(self.max_backoff);
                }
            }
        }
    }
}

/// Refuses arriving batches during the pause; returns `false` once all senders are dropped.
fn refuse_for(queue: &Receiver<Task>, pause: Duration) -> bool {
    #[allow(
        clippy::disallowed_methods,
        reason = "a back-off pause, not a time that a rule depends on"
    )]
    let start = Instant::now();
    loop {
        match queue.recv_timeout(pause.saturating_sub(start.elapsed())) {
            Ok(Task::Commit(_, answer)) => {
                let refusal = StoreError::Unavailable("the store file is being reopened after a failure".into());
                let _ = answer.send(Err(refusal.into()));
            }
            Ok(Task::ReadFailed(_)) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}
