//! Contexts: several servers, credentials and workspaces by name.

use agentcfg_client::model::WorkspaceId;
use serde::Serialize;

use super::context::Context;
use super::login;
use crate::args::Contexts;
use crate::credentials::{self, Credentials, check_name};
use crate::failure::{Code, CommandFailure, Result};
use crate::output::or_dash;
use crate::session::Origin;

/// A context without its secret.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    url: &'a str,
    workspace: Option<WorkspaceId>,
    is_current: bool,
}

impl<'a> Shown<'a> {
    fn new(name: &'a str, credentials: &'a Credentials, current: &str) -> Self {
        Self {
            name,
            url: &credentials.url,
            workspace: credentials.workspace,
            is_current: name == current,
        }
    }
}

pub async fn run(context: &mut Context, command: Contexts) -> Result<Code> {
    let path = credentials::path()?;
    if let Some(warning) = credentials::exposure(&path) {
        context.output.note(warning);
    }
    let mut contexts = credentials::read(&path)?;
    match command {
        Contexts::List => {
            let shown: Vec<_> = contexts
                .iter()
                .map(|(name, credentials)| Shown::new(name, credentials, contexts.current()))
                .collect();
            context.output.show(&shown, |output| {
                let row = |one: &Shown<'_>| {
                    let mark = if one.is_current { "*" } else { "" };
                    vec![
                        mark.to_owned(),
                        one.name.to_owned(),
                        one.url.to_owned(),
                        or_dash(one.workspace),
                    ]
                };
                output.table(&["", "NAME", "SERVER", "WORKSPACE"], shown.iter().map(row).collect())
            })?;
        }
        Contexts::Show { name } => {
            let name = name.or(context.named_context().map(str::to_owned));
            let (name, found) = contexts.get(name.as_deref())?.ok_or_else(|| {
                CommandFailure::with_code(Code::NotFound, "you are not signed in, and no context is in use")
                    .hint("Sign in with `agentcfg login`, or add a context with `agentcfg context add NAME --url URL`.")
            })?;
            let shown = Shown::new(name, found, contexts.current());
            context.output.show(&shown, |output| {
                let current = if shown.is_current { " (in use)" } else { "" };
                output.line(format_args!("{name}{current}"))?;
                output.line(format_args!("  server     {}", shown.url))?;
                output.line(format_args!("  workspace  {}", or_dash(shown.workspace)))
            })?;
        }
        Contexts::Use { name } => {
            contexts.select(&name)?;
            credentials::write(&path, &contexts)?;
            let server = contexts
                .get(None)?
                .map_or("none yet; sign in with `agentcfg login`", |(_, found)| &*found.url);
            context
                .output
                .note(format_args!("The context {name} is in use. Its server is {server}."));
            login::note_variables(context, &Origin::Default);
        }
        Contexts::Add { name, url } => {
            check_name(&name)?;
            if name == credentials::DEFAULT {
                return Err(
                    CommandFailure::error("the context default is the one of `agentcfg login`")
                        .hint("Sign in with `agentcfg login`, or choose another name."),
                );
            }
            let (stored, caller) = {
                // The variable is for another server.
                let workspace = context.named_workspace().map(str::to_owned);
                login::sign_in(context, url, Origin::CommandLine("--url"), workspace.as_deref()).await?
            };
            let done = login::signed_in(&stored, &caller, &path);
            // Another command may have changed the file while this one asked for the credential.
            contexts = credentials::read(&path)?;
            contexts.set(&name, stored);
            credentials::write(&path, &contexts).map_err(login::not_kept)?;
            context.output.note(done);
            if contexts.current() != name {
                context
                    .output
                    .note(format_args!("`agentcfg context use {name}` uses it from now on."));
            }
        }
        Contexts::Remove { name } => {
            let was_current = contexts.current() == name;
            if !contexts.remove(&name) {
                return Err(contexts.missing(&name));
            }
            credentials::write(&path, &contexts)?;
            let now = match was_current {
                true => format!(" The context in use is {} now.", contexts.current()),
                false => String::new(),
            };
            context.output.note(format_args!(
                "Removed the context {name}.{now} The key itself still works: `agentcfg keys revoke` ends it."
            ));
        }
    }
    Ok(Code::Done)
}
