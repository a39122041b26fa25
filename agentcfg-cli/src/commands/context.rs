//! What the commands share: the output, the workspace, and the server that was called.

use super::hint::hint;
use crate::args::Global;
use crate::failure::{CommandFailure, Result};
use crate::output::{BOLD, Output, REMOVED, printable_lines};
use crate::session::{Origins, Session, WORKSPACE, variable};

/// What each command has.
pub struct Context {
    pub output: Output,
    workspace: Option<String>,
    /// The workspace that the command line names.
    named_workspace: Option<String>,
    /// The context that the command line names.
    named_context: Option<String>,
    /// Which server was called, once it is known.
    origins: Option<Origins>,
}

impl Context {
    pub fn new(global: &Global) -> Self {
        let named_workspace = global.workspace.as_deref().map(str::trim);
        let named_workspace = named_workspace
            .filter(|workspace| !workspace.is_empty())
            .map(str::to_owned);
        // A variable is for the server of the variables or of the context in use.
        let of_environment = || variable(WORKSPACE).filter(|_| global.context.is_none());
        Self {
            output: Output::new(global.output, global.color),
            workspace: named_workspace.clone().or_else(of_environment),
            named_workspace,
            named_context: global.context.clone(),
            origins: None,
        }
    }

    /// Opens the session of the command.
    pub fn session(&mut self) -> Result<Session> {
        let session = Session::open(self.named_context.as_deref(), self.workspace.as_deref())?;
        self.origins = Some(session.origins.clone());
        Ok(session)
    }

    /// The workspace that the command line names.
    pub fn named_workspace(&self) -> Option<&str> {
        self.named_workspace.as_deref()
    }

    /// The context that the command line names.
    pub fn named_context(&self) -> Option<&str> {
        self.named_context.as_deref()
    }

    /// The workspace that the command line or the environment names.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    pub fn called(&mut self, origins: Origins) {
        self.origins = Some(origins);
    }

    /// Prints why a later command would fail, and the way out.
    pub fn warn(&mut self, failure: &CommandFailure) {
        let message = printable_lines(&failure.to_string());
        self.output.note(format_args!("{BOLD}warning{BOLD:#}: {message}"));
        if let Some(hint) = hint(failure, self.origins.as_ref()) {
            self.output.note(format_args!("{BOLD}hint{BOLD:#}:  {hint}"));
        }
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
