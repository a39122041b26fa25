//! Healing: after an I/O error the engine refuses to write until its file is opened anew.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::StoreError;
use super::open::Opener;
use super::state::{Shared, Status};
use super::writer::Task;

/// Opens the storage anew, with pauses that double from the shortest to the longest.
pub(super) struct Healer {
    pub(super) opener: Opener,
    pub(super) shortest_pause: Duration,
    pub(super) longest_pause: Duration,
}

impl Healer {
    /// Returns once the store serves again, or once nobody is left whom it could serve. Batches that
    /// come meanwhile are turned away.
    pub(super) fn heal(&mut self, shared: &Shared, queue: &Receiver<Task>) {
        shared.take_down(Status::Healing);
        let mut pause = self.shortest_pause;
        loop {
            match (self.opener)() {
                Ok(database) => {
                    shared.put_up(database);
                    tracing::info!("the store serves again");
                    return;
                }
                Err(error) => {
                    tracing::warn!(cause = %error, ?pause, "the store file cannot be opened yet");
                    if !turn_away(queue, pause) {
                        return;
                    }
                    pause = (pause * 2).min(self.longest_pause);
                }
            }
        }
    }
}

/// Refuses what comes for this long; `false` when nothing can come any more.
fn turn_away(queue: &Receiver<Task>, pause: Duration) -> bool {
    #[allow(
        clippy::disallowed_methods,
        reason = "a pause between two attempts, no time that a rule depends on"
    )]
    let start = Instant::now();
    loop {
        match queue.recv_timeout(pause.saturating_sub(start.elapsed())) {
            Ok(Task::Commit(_, answer)) => {
                let refusal = StoreError::Unavailable("the store file is being opened anew".into());
                let _ = answer.send(Err(refusal.into()));
            }
            Ok(Task::Suspect(_)) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}
