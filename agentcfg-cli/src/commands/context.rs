//! What the commands share: the output, the workspace, and the server that was called.

use super::hint::hint;
use crate::args::Global;
use crate::failure::{CommandFailure, Result};
use crate::output::{BOLD, Output, REMOVED, printable_lines};
use crate::session::{Origins, Session};

/// What each command has.
pub struct Context {
    pub output: Output,
    workspace: Option<String>,
    /// Which server was called, once it is known.
    origins: Option<Origins>,
}

impl Context {
    pub fn new(global: &Global) -> Self {
        Self {
            output: Output::new(global.output, global.color),
            // A pipeline may set the variable to nothing.
            workspace: global.workspace.clone().filter(|workspace| !workspace.is_empty()),
            origins: None,
        }
    }

    /// Opens the session of the command.
    pub fn session(&mut self) -> Result<Session> {
        let session = Session::open(self.workspace.as_deref())?;
        self.origins = Some(session.origins.clone());
        Ok(session)
    }

    /// The workspace that the command line or the environment names.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    pub fn called(&mut self, origins: Origins) {
        self.origins = Some(origins);
    }

    /// Prints why a command failed, and the way out.
    pub fn report(&mut self, failure: &CommandFailure) {
        if let CommandFailure::Files(problems) = failure {
            for problem in problems {
                self.output.note(printable_lines(&problem.to_string()));
            }
        }
        let message = match (failure, &self.origins) {
            (CommandFailure::Call(error), Some(Origins { url, of_url, .. }))
                if error.is_connect() || failure.is_of_another_server() =>
            {
                format!("{failure}\n       The server is {url} ({of_url}).")
            }
            _ => failure.to_string(),
        };
        let message = printable_lines(&message);
        self.output.note(format_args!("{REMOVED}error{REMOVED:#}: {message}"));
        if let Some(hint) = hint(failure, self.origins.as_ref()) {
            self.output.note(format_args!("{BOLD}hint{BOLD:#}:  {hint}"));
        }
    }
}
