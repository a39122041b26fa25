//! The signals of the process: SIGTERM and Ctrl-C shut down, SIGHUP reads the settings again, others are logged.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal as Raw;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a process which does not handle them, and that mean nothing to the server. After SIGXFSZ the
/// write fails with an error, as on a full disk.
const IGNORED: &[(i32, &str)] = &[
    (Raw::QUIT.as_raw(), "SIGQUIT"),
    (Raw::ALARM.as_raw(), "SIGALRM"),
    (Raw::USR1.as_raw(), "SIGUSR1"),
    (Raw::USR2.as_raw(), "SIGUSR2"),
    (Raw::VTALARM.as_raw(), "SIGVTALRM"),
    (Raw::PROF.as_raw(), "SIGPROF"),
    (Raw::IO.as_raw(), "SIGIO"),
    (Raw::XFSZ.as_raw(), "SIGXFSZ"),
    #[cfg(target_os = "linux")]
    (Raw::POWER.as_raw(), "SIGPWR"),
];

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

/// Answers SIGHUP with `reload`, and logs signals that would otherwise end the process without a word. Returns when the
/// signals can no longer be received, which does not happen while the runtime lives.
///
/// # Errors
///
/// When the handlers cannot be installed.
pub fn others(reload: impl Fn() + Send + 'static) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut ignored = Vec::new();
    for (number, name) in IGNORED {
        ignored.push((signal(SignalKind::from_raw(*number))?, *name));
    }
    Ok(async move {
        loop {
            let next = poll_fn(|cx| {
                let mut found = ignored.iter_mut().map(|(signal, name)| (signal.poll_recv(cx), *name));
                match found.find_map(|(polled, name)| polled.is_ready().then_some((polled, name))) {
                    Some((Poll::Ready(Some(())), name)) => Poll::Ready(Some(name)),
                    Some(_) => Poll::Ready(None),
                    None => Poll::Pending,
                }
            });
            let name = tokio::select! {
                Some(()) = hangup.recv() => {
                    reload();
                    continue;
                }
                Some(name) = next => name,
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
