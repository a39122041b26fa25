//! The signals of the process: SIGTERM and Ctrl-C shut down, SIGHUP reads the settings again, others are logged.

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

/// Answers SIGHUP with `reload`, and logs signals that would otherwise end the process without a word. Returns when the signals can no
/// longer be received, which does not happen while the runtime lives.
///
/// # Errors
///
/// When the handlers cannot be installed.
pub fn others(reload: impl Fn() + Send + 'static) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut alarm = signal(SignalKind::alarm())?;
    let mut first = signal(SignalKind::user_defined1())?;
    let mut second = signal(SignalKind::user_defined2())?;
    Ok(async move {
        loop {
            let name = tokio::select! {
                Some(()) = hangup.recv() => {
                    reload();
                    continue;
                }
                Some(()) = quit.recv() => "SIGQUIT",
                Some(()) = alarm.recv() => "SIGALRM",
                Some(()) = first.recv() => "SIGUSR1",
                Some(()) = second.recv() => "SIGUSR2",
                else => return,
            };
            tracing::warn!(
                signal = name,
                "the signal is ignored: SIGTERM stops the server, SIGHUP reads the settings again"
            );
        }
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
