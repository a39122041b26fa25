//! Why a command failed: the message, the way out, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use agentcfg_core::error::causes;

use crate::agent_file::Problem;

pub type Result<T> = std::result::Result<T, CommandFailure>;

/// The exit codes. The commands with files use [`CommandFailure::code_of_directory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Done, or nothing to do.
    Done = 0,
    Error = 1,
    /// `plan` found differences.
    Differences = 2,
    /// Not signed in, or the credential may not do it.
    Refused = 3,
    NotFound = 4,
    /// Something has changed meanwhile, or exists already.
    Conflict = 5,
    /// The command line itself is wrong, as in `sysexits.h`.
    Usage = 64,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum CommandFailure {
    /// A call of the API failed.
    Call(agentcfg_client::Error),
    /// Files of agents have problems.
    Files(Vec<Problem>),
    /// The reader of standard output has gone, as in `agentcfg audit | head`.
    OutputClosed,
    Other {
        code: Code,
        message: String,
        hint: Option<String>,
    },
}

impl CommandFailure {
    pub fn error(message: impl fmt::Display) -> Self {
        Self::with_code(Code::Error, message)
    }

    pub fn with_code(code: Code, message: impl fmt::Display) -> Self {
        Self::Other {
            code,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl fmt::Display) -> Self {
        match self {
            Self::Other { code, message, .. } => Self::Other {
                code,
                message,
                hint: Some(hint.to_string()),
            },
            other => other,
        }
    }

    /// A failure with a file or a directory.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                Self::error(format_args!("{what} must be a directory, and is or lies below a file"))
            }
            _ => Self::error(format_args!("{what}: {error}")),
        }
    }

    /// Whether an answer came from a program that is no agentcfg-server, such as a proxy: the server numbers its
    /// answers.
    pub fn is_of_another_server(&self) -> bool {
        let Self::Call(error) = self else { return false };
        // A missing agent has the status of the list that lacks it, which is none of an error.
        let is_answer = error.status().is_some() || error.is_not_found();
        error.is_foreign() || is_answer && error.request_id().is_none()
    }

    pub fn code(&self) -> Code {
        match self {
            Self::OutputClosed => Code::Done,
            Self::Files(_) => Code::Error,
            Self::Other { code, .. } => *code,
            Self::Call(error) if error.is_unauthorized() || error.is_forbidden() => Code::Refused,
            Self::Call(error) if error.is_not_found() && self.is_of_another_server() => Code::Error,
            Self::Call(error) if error.is_not_found() => Code::NotFound,
            Self::Call(error) if error.is_conflict() || error.is_precondition_failed() => Code::Conflict,
            Self::Call(_) => Code::Error,
        }
    }

    /// The exit code of a command with files: 1, or 5 where agents have changed meanwhile.
    pub fn code_of_directory(&self) -> Code {
        match self {
            Self::Call(error) if error.is_conflict() => Code::Error,
            _ => match self.code() {
                code @ (Code::Done | Code::Conflict) => code,
                _ => Code::Error,
            },
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => {
                f.write_str(error.message())?;
                // The last cause is what the operating system said. One without a cause of its own is the message.
                let last = causes(error).skip(1).last().map(ToString::to_string);
                if let Some(cause) = last.filter(|cause| cause != error.message()) {
                    write!(f, ": {cause}")?;
                }
                // A page of a proxy has its status in the message.
                if let Some(status) = error
                    .status()
                    .filter(|_| self.is_of_another_server() && !error.is_foreign())
                {
                    write!(f, " (status {status})")?;
                }
                // What the caller cannot mend is in the server's log.
                match error.request_id().filter(|_| error.status() >= Some(500)) {
                    Some(id) => write!(f, " (request {id} in the log of the server)"),
                    None => Ok(()),
                }
            }
            // Each of them has a line of its own, which editors look for.
            Self::Files(problems) => {
                let files = problems.iter().map(|problem| &problem.file);
                let files: std::collections::BTreeSet<_> = files.collect();
                let (problems, files) = (count(problems.len(), "problem"), count(files.len(), "file"));
                write!(f, "{problems} in {files}; nothing was sent")
            }
            Self::OutputClosed => f.write_str("standard output is closed"),
            Self::Other { message, .. } => f.write_str(message),
        }
    }
}

/// `1 file`, `2 files`.
pub fn count(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

impl From<agentcfg_client::Error> for CommandFailure {
    fn from(error: agentcfg_client::Error) -> Self {
        Self::Call(error)
    }
}

/// An error of writing to standard output; files have [`CommandFailure::io`].
impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::io("standard output", &error),
        }
    }
}

impl From<serde_json::Error> for CommandFailure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => Self::OutputClosed,
            _ => Self::error(format_args!("an answer cannot be written as JSON: {error}")),
        }
    }
}
