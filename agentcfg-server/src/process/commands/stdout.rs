//! Output of commands.

use std::fmt;
use std::io::{self, Write};

use super::error::CommandError;

/// Prints a line about what was done. A closed output is ignored, because the exit code has the result too.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::process::commands::stdout::line(format_args!($($text)*))
    };
}

/// Prints a line on standard error, about what went on. A closed or full one is ignored.
macro_rules! note {
    ($($text:tt)*) => {
        $crate::process::commands::stdout::side_line(format_args!($($text)*))
    };
}

pub(super) use {note, say};

/// See [`say`].
pub(super) fn line(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// See [`note`].
pub(super) fn side_line(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Standard output as a writer, with the rules of [`say`].
pub(super) struct Said;

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stdout().lock().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = io::stdout().lock().flush();
        Ok(())
    }
}

/// Prints the result of a command.
///
/// # Errors
///
/// When standard output is closed or full.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("cannot write to standard output: {error}").into())
}
