//! The commands, one file for each noun.

mod account;
mod agents;
mod audit;
mod directory;
mod edit;
mod keys;
mod labels;
mod pages;
mod plan;
mod status;
mod versions;
mod watch;

use crate::args::{Command, Global};
use crate::failure::{Code, Failure, Result};
use crate::output::{BOLD, Output, REMOVED};
use crate::session::{Origin, Origins, Session};

/// What each command has.
pub struct Context {
    pub output: Output,
    workspace: Option<String>,
    /// Which server was called, once it is known.
    origins: Option<Origins>,
}

/// Runs a command.
pub async fn run(command: Command, context: &mut Context) -> Result<Code> {
    match command {
        Command::Login { url } => account::login(context, url).await,
        Command::Logout => account::logout(context),
        Command::Whoami => account::whoami(context).await,
        Command::Agents(command) => agents::run(context, command).await,
        Command::Versions { agent, limit, before } => versions::list(context, &agent.agent, limit, before).await,
        Command::Diff { agent, from, to } => versions::diff(context, &agent.agent, &from, &to).await,
        Command::Rollback { agent, to, reason } => versions::roll_back(context, &agent.agent, &to, &reason).await,
        Command::Label(command) => labels::run(context, command).await,
        Command::Status => status::list(context).await,
        Command::Keys(command) => keys::run(context, command).await,
        Command::Audit(filter) => audit::list(context, filter).await,
        Command::Watch(watch) => watch::run(context, watch).await,
        Command::Export { dir, set, prune } => directory::export(context, &dir, set.as_deref(), prune).await,
        Command::Plan(directory) => directory::plan(context, &directory, None).await,
        Command::Apply {
            directory,
            base,
            reason,
            yes,
            dry_run,
        } => match dry_run {
            true => directory::plan(context, &directory, base.as_deref())
                .await
                .map(|_| Code::Done),
            false => directory::apply(context, &directory, base.as_deref(), &reason, yes).await,
        },
        Command::Completions { shell } => pages::completions(context, shell),
        Command::Man { out } => pages::manual(&out),
    }
}

impl Command {
    /// Whether the command works on a directory of files, with the exit codes 0, 1 and 2 alone.
    pub fn is_of_directory(&self) -> bool {
        matches!(self, Self::Export { .. } | Self::Plan(_) | Self::Apply { .. })
    }
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
    pub fn report(&mut self, failure: &Failure) {
        let message = match (failure, &self.origins) {
            (Failure::Call(error), Some(Origins { url, of_url, .. })) if error.is_connect() => {
                format!("{failure}\n       The server is {url} ({of_url}).")
            }
            _ => failure.to_string(),
        };
        let message = crate::output::printable_lines(&message);
        self.output.note(format_args!("{REMOVED}error{REMOVED:#}: {message}"));
        if let Some(hint) = hint(failure, self.origins.as_ref()) {
            self.output.note(format_args!("{BOLD}hint{BOLD:#}:  {hint}"));
        }
    }
}

/// Whether a server answered the beginning of TLS with something else.
fn speaks_no_tls(error: &agentcfg_client::Error) -> bool {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes
        .last()
        .is_some_and(|cause| cause.to_string().contains("corrupt message"))
}

/// What to do about a failure.
fn hint(failure: &Failure, origins: Option<&Origins>) -> Option<String> {
    let error = match failure {
        Failure::Call(error) => error,
        Failure::Other { hint, .. } => return hint.clone(),
        Failure::Files(_) | Failure::OutputClosed => return None,
    };
    let hint = if error.is_connect() && speaks_no_tls(error) {
        "The server speaks no TLS on this port: its URL begins with http://".to_owned()
    } else if error.is_connect() {
        match origins.map(|origins| origins.of_url) {
            Some(Origin::Environment(name)) => {
                format!("Start a server there, such as `agentcfg-server dev`, or set {name} to another one.")
            }
            _ => "Start a server there, such as `agentcfg-server dev`, or sign in to another: agentcfg login --url URL"
                .to_owned(),
        }
    } else if error.is_unauthorized() {
        match origins.map(|origins| origins.of_secret) {
            Some(Origin::Environment(name)) => {
                format!("The credential is from {name}, which is wrong, revoked or expired.")
            }
            Some(Origin::CommandLine(_) | Origin::Default) => {
                "The credential is wrong, revoked, expired, or one of another server.".to_owned()
            }
            _ => "The credential of `agentcfg login` was revoked or has expired. Sign in again.".to_owned(),
        }
    } else if error.is_forbidden() && error.message().contains("session token") {
        "Sign in as a user: `agentcfg login`, with a token of your identity provider or of `agentcfg-server token`."
            .to_owned()
    } else if error.is_forbidden() {
        "`agentcfg whoami` shows the workspaces and permissions of the credential.".to_owned()
    } else if error.may_have_been_applied() {
        "The server may have made the change. Check before you try again.".to_owned()
    } else if error.is_rate_limited() {
        let seconds = error.retry_after()?.as_secs();
        format!("Try again in {} s.", seconds.max(1))
    } else {
        return None;
    };
    Some(hint)
}
