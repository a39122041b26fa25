//! What SIGINT and SIGTERM do to a command that has something to tidy up.

use std::io;
use std::process::exit;

use crate::failure::{CommandFailure, Result};
use crate::file;

/// The exit code that shells give to SIGINT.
pub const INTERRUPTED: i32 = 130;

/// From now on SIGINT and SIGTERM end the process after this, and not while there is a temporary file.
pub fn end_after(tidy_up: impl FnOnce() + Send + 'static) -> Result<()> {
    let mut signals = Signals::catch().map_err(|error| CommandFailure::io("the signals of the process", &error))?;
    tokio::spawn(async move {
        let code = signals.next().await;
        let _no_file = file::pause_writing();
        tidy_up();
        exit(code);
    });
    Ok(())
}

/// The signals that ask a process to end. Once caught they do nothing by themselves.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The exit code for the next signal.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => 143,
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn catch() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> i32 {
        self.0.recv().await;
        INTERRUPTED
    }
}
