//! SIGTERM and Ctrl-C.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit status of a process that a second signal cut short.
const CUT_SHORT: i32 = 130;

/// Starts listening for SIGTERM and SIGINT and returns a future that resolves on the first of them.
///
/// From that moment a second signal ends the process at once, without a wait for requests in flight. Only the binary
/// calls this.
///
/// # Errors
///
/// When the handlers cannot be installed.
pub fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let name = next(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "shutting down; a second signal exits at once");
        tokio::spawn(async move {
            let name = next(&mut terminate, &mut interrupt).await;
            tracing::warn!(signal = name, "second signal, exiting without waiting");
            std::process::exit(CUT_SHORT);
        });
    })
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_signal_resolves_the_future() {
        let waiting = shutdown().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        waiting.await;
    }
}
