//! The signals of the process: SIGTERM and Ctrl-C shut down, SIGHUP reads the settings again, others are logged.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal as Raw;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a process which does not handle them, and that mean nothing to the server. After SIGXFSZ the
/// write fails with an error, as on a full disk. Those of faults of the program itself, such as SIGSEGV, are not here:
/// the process cannot go on after them.
const IGNORED: &[(i32, &str)] = &[
    (Raw::QUIT.as_raw(), "SIGQUIT"),
    (Raw::ALARM.as_raw(), "SIGALRM"),
    (Raw::USR1.as_raw(), "SIGUSR1"),
    (Raw::USR2.as_raw(), "SIGUSR2"),
    (Raw::VTALARM.as_raw(), "SIGVTALRM"),
    (Raw::PROF.as_raw(), "SIGPROF"),
    (Raw::IO.as_raw(), "SIGIO"),
    (Raw::XFSZ.as_raw(), "SIGXFSZ"),
    (Raw::XCPU.as_raw(), "SIGXCPU"),
    (Raw::SYS.as_raw(), "SIGSYS"),
    (Raw::TRAP.as_raw(), "SIGTRAP"),
    #[cfg(target_os = "linux")]
    (Raw::POWER.as_raw(), "SIGPWR"),
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    (Raw::STKFLT.as_raw(), "SIGSTKFLT"),
];

/// The real-time signals, which the C library leaves to programs.
#[cfg(target_os = "linux")]
const REAL_TIME: std::ops::RangeInclusive<i32> = if cfg!(target_env = "musl") { 35..=64 } else { 34..=64 };
#[cfg(not(target_os = "linux"))]
const REAL_TIME: std::ops::RangeInclusive<i32> = 1..=0;

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
    let named = IGNORED.iter().map(|(number, name)| (*number, (*name).to_owned()));
    for (number, name) in named.chain(REAL_TIME.map(|number| (number, format!("SIG{number}")))) {
        ignored.push((signal(SignalKind::from_raw(number))?, name));
    }
    Ok(async move {
        loop {
            let next = poll_fn(|cx| {
                let mut found = ignored.iter_mut().map(|(signal, name)| (signal.poll_recv(cx), &*name));
                match found.find_map(|(polled, name)| polled.is_ready().then_some((polled, name))) {
                    Some((Poll::Ready(Some(())), name)) => Poll::Ready(Some(name.clone())),
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
