//! What commands print.

use std::fmt;
use std::io::{self, Write};

use super::error::CommandError;

/// Prints a line about what was done. The exit code has the result too, so a reader that is gone changes nothing.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::process::commands::stdout::line(format_args!($($text)*))
    };
}

pub(super) use say;

/// See [`say`].
pub(super) fn line(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Standard output for what others write about what was done, as [`say`].
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

/// Prints what the command was called for.
///
/// # Errors
///
/// When standard output is closed or full.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| format!("cannot write to standard output: {error}").into())
}
