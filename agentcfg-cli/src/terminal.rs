//! What a command asks and shows on a terminal.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use agentcfg_core::sync::lock;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::{Code, CommandFailure, Result};
use crate::signals;

/// The greatest length of a credential that is read from standard input.
const MAX_SECRET: u64 = 64 * 1024;

/// Whether there is a person to ask: questions go to standard error, answers come from standard input.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a line; an empty one means the default.
pub fn ask(question: &str, default: &str) -> Result<String> {
    let failed = |error: io::Error| CommandFailure::io("standard input", &error);
    let mut stderr = io::stderr();
    write!(stderr, "{question} [{default}]: ")
        .and_then(|()| stderr.flush())
        .map_err(failed)?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(failed)?;
    let answer = line.trim();
    Ok(if answer.is_empty() {
        default.to_owned()
    } else {
        answer.to_owned()
    })
}

/// Asks a question that `y` answers with yes.
///
/// # Errors
///
/// Any other answer ends the command, without a change.
pub fn confirm(question: &str) -> Result<()> {
    let answer = ask(question, "y/N")?;
    match answer.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandFailure::with_code(Code::Error, "nothing was changed")),
    }
}

/// Reads a secret from standard input: without an echo on a terminal, else the first line.
pub fn read_secret(prompt: &str) -> Result<String> {
    let failed = |error: io::Error| CommandFailure::io("standard input", &error);
    let secret = if io::stdin().is_terminal() {
        signals::end_after(restoration())?;
        rpassword::prompt_password(prompt).map_err(|error| match error.kind() {
            // Ctrl-C: the prompt has restored the terminal, and raised a signal that ends the process too.
            io::ErrorKind::Interrupted => std::process::exit(signals::INTERRUPTED),
            _ => failed(error),
        })?
    } else {
        let mut line = String::new();
        io::stdin()
            .lock()
            .take(MAX_SECRET)
            .read_line(&mut line)
            .map_err(failed)?;
        line
    };
    Ok(secret.trim().to_owned())
}

/// Gives the terminal the settings again that it has now: a prompt that is ended by a signal leaves it without an echo.
#[cfg(unix)]
fn restoration() -> impl FnOnce() + Send + 'static {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

    let settings = tcgetattr(io::stdin());
    move || {
        if let Ok(settings) = settings {
            // There is nothing else to do about it at the end of the process.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
        }
    }
}

#[cfg(not(unix))]
fn restoration() -> impl FnOnce() + Send + 'static {
    || {}
}

/// The progress that is shown now.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    // The value is replaced as a whole.
    lock(&SHOWN)
}

/// Prints a line to standard error while a call is made, above its progress.
pub fn note(text: &str) {
    match &*shown() {
        Some(bar) => bar.suspend(|| eprintln!("{text}")),
        None => eprintln!("{text}"),
    }
}

/// Progress of long work, on standard error, and on a terminal alone.
pub struct Progress(ProgressBar);

impl Progress {
    /// Work whose length is not known.
    pub fn spinner(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::shown(bar)
    }

    /// Work of so many steps.
    pub fn steps(what: &str, steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self::shown(bar)
    }

    fn shown(bar: ProgressBar) -> Self {
        *shown() = Some(bar.clone());
        Self(bar)
    }

    pub fn step(&self) {
        self.0.inc(1);
    }
}

/// Removes the line.
impl Drop for Progress {
    fn drop(&mut self) {
        *shown() = None;
        self.0.finish_and_clear();
    }
}
