//! Standard error as the stream of the log. It never holds up the server: a line that the stream cannot take is lost,
//! and counted.
//!
//! A full disk or a reader that has gone fails the write. A pipe whose reader does not read would block it, and with it
//! the thread that serves requests: so the stream is asked first whether it has room, with little patience the first
//! time and none after that.

use std::fs::{File, OpenOptions};
use std::io::{self, Write, stderr};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard};

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::process::config::LogFormat;

/// As many bytes as a pipe that has room takes without blocking (`PIPE_BUF` of Linux).
const PIECE: usize = 4096;

/// How long a line waits for room in the stream, unless the line before it found none in that time.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The stream of the log.
pub(super) struct LogStream {
    stream: File,
    format: LogFormat,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Lines that were lost since the last one that was written.
    lost: u64,
    /// Whether the last line found no room, so that the next one does not wait for it.
    is_stalled: bool,
    /// Whether the last line was written in part.
    is_cut: bool,
}

impl LogStream {
    /// Standard error, for lines of this format.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(super) fn of(format: LogFormat) -> io::Result<Self> {
        Ok(Self::new(standard_error()?, format))
    }

    fn new(stream: File, format: LogFormat) -> Self {
        Self {
            stream,
            format,
            state: Mutex::default(),
        }
    }
}

/// Standard error. A pipe or a terminal is opened once more where that can be, so that a write to it never blocks and
/// other processes keep theirs as it is.
fn standard_error() -> io::Result<File> {
    let inherited = File::from(stderr().as_fd().try_clone_to_owned()?);
    let kind = inherited.metadata()?.file_type();
    if kind.is_fifo() || kind.is_char_device() {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(flags.bits().cast_signed());
        if let Ok(own) = options.open("/proc/self/fd/2") {
            return Ok(own);
        }
    }
    Ok(inherited)
}

/// One line of the log.
pub(super) struct Line<'a>(&'a LogStream);

impl<'a> MakeWriter<'a> for LogStream {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

impl Write for Line<'_> {
    /// The subscriber writes each line at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogStream {
    /// Writes a line, or counts it as lost.
    fn line(&self, line: &[u8]) {
        let mut state = lock(&self.state);
        if state.lost > 0 {
            let notice = self.notice(&state);
            if self.write(&mut state, notice.as_bytes()).is_err() {
                state.lost += 1;
                return;
            }
            state.lost = 0;
        }
        if self.write(&mut state, line).is_err() {
            state.lost += 1;
        }
    }

    fn write(&self, state: &mut MutexGuard<'_, State>, line: &[u8]) -> io::Result<()> {
        for piece in line.chunks(PIECE) {
            let mut rest = piece;
            while !rest.is_empty() {
                let patience = if state.is_stalled {
                    Timespec::default()
                } else {
                    PATIENCE
                };
                state.is_stalled = !self.has_room(&patience);
                if state.is_stalled {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                match (&self.stream).write(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        state.is_cut = true;
                        rest = &rest[written..];
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        state.is_stalled = error.kind() == io::ErrorKind::WouldBlock;
                        return Err(error);
                    }
                }
            }
        }
        state.is_cut = false;
        Ok(())
    }

    fn has_room(&self, patience: &Timespec) -> bool {
        let mut stream = [PollFd::new(&self.stream, PollFlags::OUT)];
        match poll(&mut stream, Some(patience)) {
            Ok(ready) => ready > 0,
            // A signal has cut the wait short.
            Err(Errno::INTR) => false,
            // A stream that cannot be asked is written to: the write says what is wrong.
            Err(_) => true,
        }
    }

    /// What stands in place of lines that were lost.
    fn notice(&self, state: &State) -> String {
        let end_of_cut = if state.is_cut { "\n" } else { "" };
        let message = "lines of the log were lost, because nothing took them from standard error";
        let (now, lost) = (SystemClock.now(), state.lost);
        match self.format {
            LogFormat::Json => {
                let line = json!({"timestamp": now, "level": "WARN", "message": message, "lost": lost});
                format!("{end_of_cut}{line}\n")
            }
            LogFormat::Text => format!("{end_of_cut}{now}  WARN {message} lost={lost}\n"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_no_time() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let (reader, writer) = pipe().unwrap();
            let log = LogStream::new(OwnedFd::from(writer).into(), format);
            // A pipe holds 64 KiB.
            let line = |number: usize| format!("{number} {}\n", "x".repeat(9000));
            for number in 0..1000 {
                log.line(line(number).as_bytes());
            }
            let lost = log.state.lock().unwrap().lost;
            assert!((900..1000).contains(&lost), "{lost}");
            let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
            for number in 0..3 {
                assert_eq!(lines.next().unwrap(), line(number).trim_end(), "{number}");
            }
            // Then the pipe has room again.
            log.line(b"the next line\n");
            drop(log);
            let rest: Vec<String> = lines.collect();
            let [.., notice, last] = &rest[..] else {
                panic!("{rest:?}")
            };
            assert_eq!(last, "the next line");
            assert!(
                notice.contains("lines of the log were lost") && notice.contains(&lost.to_string()),
                "{notice}"
            );
            if let LogFormat::Json = format {
                serde_json::from_str::<serde_json::Value>(notice).unwrap();
            }
        }
    }

    #[test]
    fn a_full_disk_and_a_closed_pipe_are_no_failure() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = LogStream::new(full, LogFormat::Text);
        log.line(b"a line\n");
        log.line(b"another line\n");
        assert_eq!(log.state.lock().unwrap().lost, 2);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let log = LogStream::new(OwnedFd::from(writer).into(), LogFormat::Text);
        log.line(b"a line\n");
        assert_eq!(log.state.lock().unwrap().lost, 1);
    }
}
