//! Signing in and out.

use std::path::Path;

use agentcfg_client::model::WhoAmI;

use super::context::Context;
use super::hint;
use crate::credentials::{self, Contexts, Credentials};
use crate::failure::{Code, CommandFailure, Result};
use crate::output::{BOLD, or_dash, printable};
use crate::session::{self, API_KEY, DEFAULT_URL, Origin, Origins, URL};
use crate::terminal::{self, Progress};

pub async fn login(context: &mut Context, url: Option<String>) -> Result<Code> {
    let path = credentials::path()?;
    // A file that cannot be read is about to be replaced.
    let mut contexts = credentials::read(&path).unwrap_or_default();
    let name = context.named_context().unwrap_or(contexts.current()).to_owned();
    if name != credentials::DEFAULT {
        contexts.get(Some(&name))?;
    }
    // The variable is for another server than the context that is named.
    let variable = session::variable(URL).filter(|_| context.named_context().is_none());
    let (url, of_url) = server(&contexts, &name, url, variable)?;
    let workspace = context.workspace().map(str::to_owned);
    let (stored, caller) = sign_in(context, url, of_url.clone(), workspace.as_deref()).await?;
    let done = signed_in(&stored, &caller, &path);
    // Another command may have changed the file while this one asked for the credential.
    contexts = credentials::read(&path).unwrap_or_default();
    contexts.set(&name, stored);
    credentials::write(&path, &contexts).map_err(not_kept)?;
    context.output.note(done);
    note_variables(context, &of_url);
    Ok(Code::Done)
}

/// The failure to write the file of a credential that is good.
pub(super) fn not_kept(failure: CommandFailure) -> CommandFailure {
    failure.hint(format_args!(
        "The credential is good and was not saved. Without the file, {URL} and {API_KEY} name server and credential."
    ))
}

/// Reads a credential from standard input, and checks it with the server.
pub(super) async fn sign_in(
    context: &mut Context,
    url: String,
    of_url: Origin,
    workspace: Option<&str>,
) -> Result<(Credentials, WhoAmI)> {
    // A wrong URL is reported before the key is asked for.
    agentcfg_client::Client::builder(&url).build()?;
    let secret = terminal::read_secret("API key or session token: ")?;
    if secret.is_empty() {
        let message = "standard input has no API key and no session token";
        let hint = "Pipe it in, such as `agentcfg login < key.txt`, or type it on a terminal.";
        return Err(CommandFailure::with_code(Code::Refused, message).hint(hint));
    }
    context.called(Origins {
        url: url.clone(),
        of_url,
        of_secret: Origin::Default,
    });
    let client = session::client(&url, &secret)?;
    let progress = Progress::spinner("Signing in");
    let caller = client.whoami().await.map_err(|error| {
        let is_not_found = error.is_not_found();
        let failure = CommandFailure::from(error);
        match is_not_found {
            true => CommandFailure::with_code(failure.code(), format_args!("no agentcfg-server answers at {url}"))
                .hint(hint::WITHOUT_API),
            false => failure,
        }
    })?;
    drop(progress);
    let workspace = match workspace {
        Some(workspace) => {
            let workspace = session::parse("workspace", workspace)?;
            if !caller.workspaces.iter().any(|known| known.id == workspace) {
                let message = format!("the credential has no access to the workspace {workspace}");
                let known: Vec<_> = caller.workspaces.iter().map(|known| known.id.to_string()).collect();
                let hint = match known.is_empty() {
                    true => "It belongs to no workspace.".to_owned(),
                    false => format!("It has access to: {}.", known.join(", ")),
                };
                return Err(CommandFailure::with_code(Code::NotFound, message).hint(hint));
            }
            Some(workspace)
        }
        None => match caller.workspaces.as_slice() {
            [only] => Some(only.id),
            _ => None,
        },
    };
    let stored = Credentials { url, secret, workspace };
    Ok((stored, caller))
}

pub(super) fn signed_in(stored: &Credentials, caller: &WhoAmI, path: &Path) -> String {
    format!(
        "Signed in to {} as {}. The credential is in {}.",
        stored.url,
        name(caller),
        path.display()
    )
}

/// Notes which variables win over what was stored.
pub(super) fn note_variables(context: &mut Context, of_url: &Origin) {
    for variable in [URL, API_KEY] {
        if session::variable(variable).is_some() && !(variable == URL && *of_url == Origin::Environment(URL)) {
            context
                .output
                .note(format_args!("note: {variable} is set, and wins over what was saved."));
        }
    }
}

/// The server to sign in to: named, or asked for on a terminal.
fn server(
    contexts: &Contexts,
    context: &str,
    named: Option<String>,
    variable: Option<String>,
) -> Result<(String, Origin)> {
    if let Some(url) = named {
        return Ok((url, Origin::CommandLine("--url")));
    }
    if let Some(url) = variable {
        return Ok((url, Origin::Environment(URL)));
    }
    let (known, origin) = match contexts.get(Some(context))? {
        Some((name, known)) => (known.url.clone(), Origin::of_context(name)),
        None => (DEFAULT_URL.to_owned(), Origin::Default),
    };
    match terminal::is_attended() {
        true => Ok((terminal::ask("Server", &known)?, Origin::CommandLine("your answer"))),
        false => Ok((known, origin)),
    }
}

pub fn logout(context: &mut Context) -> Result<Code> {
    let path = credentials::path()?;
    let is_removed = match credentials::read(&path) {
        Ok(mut contexts) => {
            let name = context.named_context().unwrap_or(contexts.current()).to_owned();
            let is_removed = contexts.remove(&name);
            credentials::write(&path, &contexts)?;
            is_removed
        }
        // A broken file may have a secret too.
        Err(_) => {
            credentials::write(&path, &Contexts::default())?;
            true
        }
    };
    let message = match is_removed {
        true => format!(
            "Removed the credential from {}. The key itself still works: `agentcfg keys revoke` ends it.",
            path.display()
        ),
        false => "You were not signed in.".to_owned(),
    };
    context.output.note(message);
    Ok(Code::Done)
}

pub async fn whoami(context: &mut Context) -> Result<Code> {
    let session = context.session()?;
    let caller = session.client.whoami().await?;
    let origins = session.origins;
    context.output.show(&caller, |output| {
        let Origins { url, of_url, of_secret } = origins;
        output.line(format_args!("{BOLD}{}{BOLD:#}", printable(&name(&caller))))?;
        output.line(format_args!("  server      {url} ({of_url})"))?;
        output.line(format_args!("  credential  {of_secret}"))?;
        output.line(format_args!(
            "  expires     {}",
            caller.expires_at.map_or("never".to_owned(), |at| at.to_string())
        ))?;
        for workspace in &caller.workspaces {
            let holds = workspace.role.map(|role| format!("role {role}"));
            let holds = holds.or_else(|| workspace.scope.map(|scope| format!("scope {scope}")));
            output.line("")?;
            output.line(format_args!(
                "{BOLD}{}{BOLD:#}  {}",
                printable(&workspace.name),
                workspace.id
            ))?;
            output.line(format_args!("  {}", or_dash(holds)))?;
            let limit = workspace
                .agent_limit
                .map_or("no limit".to_owned(), |limit| format!("limit {limit}"));
            output.line(format_args!(
                "  plan {}, {} active agents, {limit}",
                workspace.plan, workspace.active_agents
            ))?;
            let permissions: Vec<_> = workspace.permissions.iter().map(ToString::to_string).collect();
            output.line(format_args!("  {}", permissions.join(" ")))?;
        }
        Ok(())
    })?;
    Ok(Code::Done)
}

fn name(caller: &WhoAmI) -> String {
    match caller.kind {
        agentcfg_client::model::CallerType::ApiKey => format!("API key {}", caller.id),
        _ => format!("user {}", caller.id),
    }
}
