//! The client of a command: which server, which credential, which workspace, and where each of them comes from.

use std::env;
use std::fmt;
use std::fs;
use std::time::Duration;

use agentcfg_client::model::{Message, WorkspaceId};
use agentcfg_client::{Client, Timeouts};

use crate::args::Reason;
use crate::credentials::{self, Credentials};
use crate::failure::{Code, CommandFailure, Result};
use crate::terminal;

pub const URL: &str = "AGENTCFG_URL";
pub const API_KEY: &str = "AGENTCFG_API_KEY";
pub const WORKSPACE: &str = "AGENTCFG_WORKSPACE";
/// Certificates that are trusted besides those of the Mozilla programme.
pub const CA_FILE: &str = "AGENTCFG_CA_FILE";
/// The prefix of API keys of every environment, which no session token has.
const KEY_MARK: &str = "svc_";

/// The server of `agentcfg-server dev`.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Environment(&'static str),
    Login,
    Context(String),
    CommandLine(&'static str),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "from {name}"),
            Self::Login => f.write_str("from `agentcfg login`"),
            Self::Context(name) => write!(f, "from the context {name}"),
            Self::CommandLine(option) => write!(f, "from {option}"),
            Self::Default => f.write_str("the default"),
        }
    }
}

impl Origin {
    /// The context's session; `agentcfg login` without a name uses the default context.
    pub fn of_context(name: &str) -> Self {
        match name {
            credentials::DEFAULT => Self::Login,
            name => Self::Context(name.to_owned()),
        }
    }
}

/// The server that was called and the origin of the credential, for the messages of failures.
#[derive(Debug, Clone)]
pub struct Origins {
    pub url: String,
    pub of_url: Origin,
    pub of_secret: Origin,
}

/// A client, and the workspace that the user named.
pub struct Session {
    pub client: Client,
    /// The workspace of the command line or the environment, else that of the login.
    pub named: Option<WorkspaceId>,
    pub origins: Origins,
}

/// The value of an environment variable, without the white space around it; `None` if that is all.
pub fn variable(name: &str) -> Option<String> {
    let value = env::var(name).ok()?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

impl Session {
    /// Opens a session by the context that is named, else by the environment and the context in use.
    pub fn open(context: Option<&str>, workspace: Option<&str>) -> Result<Self> {
        // The variables are for another server than the context that is named.
        let (url, secret) = match context {
            Some(_) => (None, None),
            None => (variable(URL), variable(API_KEY)),
        };
        if context.is_none() && secret.is_none() && env::var(API_KEY).is_ok_and(|secret| !secret.is_empty()) {
            let message = format!("{API_KEY} has white space alone");
            return Err(
                CommandFailure::with_code(Code::Refused, message).hint("Set it to an API key or a session token.")
            );
        }
        let (origins, secret, stored_workspace) = choose(url, secret, || stored(context))?;
        let named = match workspace {
            Some(workspace) => Some(parse("workspace", workspace)?),
            None => stored_workspace,
        };
        Ok(Self {
            client: client(&origins.url, &secret)?,
            named,
            origins,
        })
    }

    /// The client, which gives this reason for its changes.
    pub fn because(&self, reason: &Reason) -> Result<Client> {
        match &reason.message {
            None => Ok(self.client.clone()),
            Some(message) => {
                let message: Message = message.as_str().parse().map_err(CommandFailure::error)?;
                Ok(self.client.with_message(message))
            }
        }
    }

    /// The workspace to work in: the one that was named, else the only one of the credential.
    pub async fn workspace(&self) -> Result<WorkspaceId> {
        if let Some(workspace) = self.named {
            return Ok(workspace);
        }
        let workspaces = self.client.list_workspaces().await?;
        match workspaces.as_slice() {
            [only] => Ok(only.workspace.id),
            [] => {
                let message = "the credential belongs to no workspace";
                Err(CommandFailure::with_code(Code::Refused, message)
                    .hint("An owner of a workspace can add you to it."))
            }
            several => {
                let list: Vec<_> = several
                    .iter()
                    .map(|view| {
                        format!(
                            "  {}  {}",
                            view.workspace.id,
                            crate::output::printable(&view.workspace.name)
                        )
                    })
                    .collect();
                let message = format!("you have several workspaces:\n{}", list.join("\n"));
                Err(CommandFailure::error(message).hint("Name one of them with --workspace ID or AGENTCFG_WORKSPACE."))
            }
        }
    }
}

/// Chooses the server, the credential and, with the stored credential, its workspace. The stored context is read only
/// where the environment is not complete.
fn choose(
    url: Option<String>,
    secret: Option<String>,
    stored: impl FnOnce() -> Result<Option<(Origin, Credentials)>>,
) -> Result<(Origins, String, Option<WorkspaceId>)> {
    let origins = |(url, of_url), of_secret| Origins { url, of_url, of_secret };
    let in_environment = |url| (url, Origin::Environment(URL));
    match (url, secret) {
        (Some(url), Some(secret)) => {
            let origins = origins(in_environment(url), Origin::Environment(API_KEY));
            Ok((origins, secret, None))
        }
        (None, Some(secret)) => {
            let url = match stored()? {
                Some((origin, stored)) => (stored.url, origin),
                None => (DEFAULT_URL.to_owned(), Origin::Default),
            };
            Ok((origins(url, Origin::Environment(API_KEY)), secret, None))
        }
        (url, None) => {
            let (origin, stored) = stored()?.ok_or_else(not_signed_in)?;
            let same = |url: &String| url.trim_end_matches('/') == stored.url.trim_end_matches('/');
            if !url.as_ref().is_none_or(same) {
                // The key of one server must not be sent to another. The URL in the variable may have a password.
                let message = format!(
                    "{URL} names another server than {}, where you are signed in",
                    stored.url
                );
                let hint = format!("Set {API_KEY} too, or sign in to the other server with `agentcfg login`.");
                return Err(CommandFailure::with_code(Code::Refused, message).hint(hint));
            }
            let url = url.map_or((stored.url, origin.clone()), in_environment);
            Ok((origins(url, origin), stored.secret, stored.workspace))
        }
    }
}

/// A client for a server with an API key or a session token.
pub fn client(url: &str, secret: &str) -> Result<Client> {
    // An apply may change a thousand agents.
    let timeouts = Timeouts::default()
        .attempt(Duration::from_secs(60))
        .total(Duration::from_secs(120));
    if secret.to_ascii_lowercase().starts_with("bearer ") {
        let hint = "Give the key or the token alone, without `Bearer`.";
        return Err(CommandFailure::error("the credential begins with the word Bearer").hint(hint));
    }
    if secret.contains(char::is_whitespace) {
        let hint = "An API key and a session token have none: give one of them alone.";
        return Err(CommandFailure::error("the credential has white space within").hint(hint));
    }
    let builder = Client::builder(url)
        .timeouts(timeouts)
        .proxy_from_env()
        .on_retry(note_wait);
    let builder = match secret.starts_with(KEY_MARK) {
        true => builder.api_key(secret),
        false => builder.session_token(secret),
    };
    let builder = match env::var_os(CA_FILE).filter(|path| !path.is_empty()) {
        None => builder,
        Some(path) => {
            let pem = fs::read(&path)
                .map_err(|error| CommandFailure::io(format_args!("{CA_FILE} {}", path.display()), &error))?;
            builder.root_certificates(pem)
        }
    };
    builder.build().map_err(|error| match env::var_os(CA_FILE) {
        Some(path) if error.message().contains("root certificates") => {
            CommandFailure::error(format_args!("{CA_FILE} {}: {}", path.display(), error.message()))
        }
        _ => error.into(),
    })
}

/// Tells the user that a rate limit holds a call. Other attempts follow each other within seconds.
fn note_wait(error: &agentcfg_client::Error, pause: Duration) {
    if error.is_rate_limited() {
        let seconds = pause.as_secs_f64().ceil();
        terminal::note(&format!(
            "The rate limit of the credential is reached; waiting {seconds} s."
        ));
    }
}

/// The context of this name, or the one in use.
fn stored(context: Option<&str>) -> Result<Option<(Origin, Credentials)>> {
    let path = credentials::path()?;
    if let Some(warning) = credentials::exposure(&path) {
        eprintln!("{warning}");
    }
    let contexts = credentials::read(&path)?;
    let found = contexts.get(context)?;
    Ok(found.map(|(name, credentials)| (Origin::of_context(name), credentials.clone())))
}

fn not_signed_in() -> CommandFailure {
    let hint = format!("Sign in with `agentcfg login`, or set {URL} and {API_KEY}.");
    CommandFailure::with_code(Code::Refused, "you are not signed in").hint(hint)
}

/// Parses a value of the command line; the error names its option or argument.
pub fn parse<T: std::str::FromStr<Err: fmt::Display>>(name: &str, text: &str) -> Result<T> {
    text.parse().map_err(|error: T::Err| {
        let rule = error.to_string();
        // Some rules name their field.
        match rule.starts_with(name) {
            true => CommandFailure::error(rule),
            false => CommandFailure::error(format_args!("{name} {rule}")),
        }
    })
}
