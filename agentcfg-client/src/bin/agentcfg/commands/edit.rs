//! Changing an agent in the user's editor.

use std::cell::Cell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use agentcfg_client::Client;
use agentcfg_client::model::{AgentSpec, Precondition, VersionedAgent, WorkspaceId};

use super::Context;
use crate::args::Reason;
use crate::failure::{Code, Failure, Result};
use crate::file::{self, EXTENSION, Fields};
use crate::merge::{self, Merged};
use crate::terminal;

/// How often a change is merged with another one before the user is asked to try again.
const MAX_MERGES: usize = 20;

pub async fn run(context: &mut Context, agent_id: &str, reason: &Reason) -> Result<Code> {
    let session = context.session()?;
    let workspace = session.workspace().await?;
    let client = session.because(reason)?;
    let agent = client.get_agent(workspace, agent_id).await?;
    let edit = Edit {
        client,
        workspace,
        editor: editor()?,
        path: new_file(&agent.value.agent_id)?,
        is_open: Cell::new(false),
    };
    let outcome = edit.until_interrupted(context, agent).await;
    let after = match outcome {
        Ok(after) => after,
        Err(failure) => {
            context
                .output
                .note(format_args!("Your text is kept in {}", edit.path.display()));
            return Err(failure);
        }
    };
    edit.remove_file();
    match after {
        None => context.output.note("Nothing was changed."),
        Some(agent) => context.output.show(&agent.value, |output| {
            output.line(format_args!(
                "changed {}, version {}",
                agent.value.agent_id, agent.version
            ))
        })?,
    }
    Ok(Code::Done)
}

/// An agent in the editor.
struct Edit {
    client: Client,
    workspace: WorkspaceId,
    /// The program and its arguments.
    editor: Vec<String>,
    path: PathBuf,
    is_open: Cell<bool>,
}

impl Edit {
    /// Edits until the user presses Ctrl-C. While the editor is open, the key is the editor's.
    async fn until_interrupted(&self, context: &mut Context, agent: VersionedAgent) -> Result<Option<VersionedAgent>> {
        let mut edit = std::pin::pin!(self.until_saved(context, agent));
        loop {
            tokio::select! {
                outcome = &mut edit => return outcome,
                _ = tokio::signal::ctrl_c() => {
                    if !self.is_open.get() {
                        return Err(Failure::error("interrupted"));
                    }
                }
            }
        }
    }

    /// Edits until the change is made, or there is none; `None` if there is none.
    async fn until_saved(&self, context: &mut Context, mut base: VersionedAgent) -> Result<Option<VersionedAgent>> {
        let agent_id = base.value.agent_id.clone();
        let mut before = Fields::of(&base.value.config())?;
        let mut text = file::write(&agent_id, &before);
        let mut label = None;
        loop {
            file::write_file(&self.path, text.as_bytes())?;
            let spec = self.edited(context, label.as_deref()).await?;
            let mut mine = Fields::of_spec(&spec)?;
            let mut merges = 0;
            text = loop {
                let Some(patch) = mine.patch_from(&before)? else {
                    return Ok(None);
                };
                let condition = Precondition::matches(base.tag);
                match self
                    .client
                    .update_agent(Some(self.workspace), &agent_id, &patch, &condition)
                    .await
                {
                    Ok(agent) => return Ok(Some(agent)),
                    Err(error) if error.is_precondition_failed() && merges < MAX_MERGES => {}
                    Err(error) => return Err(error.into()),
                }
                merges += 1;
                let now = self.client.get_agent(self.workspace, &agent_id).await?;
                let theirs = Fields::of(&now.value.config())?;
                let name = format!("version {}", now.version);
                let merged = merge::merge(&agent_id, &before, &mine, &theirs, &name);
                (base, before) = (now, theirs);
                match merged {
                    Merged::Clean(fields) => {
                        context.output.note(format_args!(
                            "The agent has changed meanwhile; your edit was merged with {name}."
                        ));
                        mine = fields;
                    }
                    Merged::Conflict(text) => {
                        context.output.note(format_args!(
                            "The agent has changed meanwhile, and your edit collides with {name}."
                        ));
                        label = Some(name);
                        break text;
                    }
                }
            };
        }
    }

    /// Opens the editor until the file is one of an agent.
    async fn edited(&self, context: &mut Context, label: Option<&str>) -> Result<AgentSpec> {
        loop {
            self.open_editor().await?;
            let bytes = fs::read(&self.path).map_err(|error| Failure::io(self.path.display(), &error))?;
            let failure = match file::read(&self.path, &bytes).map_err(Failure::Files) {
                Ok(spec) => match self.unresolved(&spec, label) {
                    None => return Ok(spec),
                    Some(failure) => failure,
                },
                Err(failure) => failure,
            };
            if !terminal::is_attended() {
                return Err(failure);
            }
            context.report(&failure);
            terminal::confirm("Edit again?")?;
        }
    }

    fn unresolved(&self, spec: &AgentSpec, label: Option<&str>) -> Option<Failure> {
        merge::unresolved(spec.persona_prompt.as_deref()?, label?)?;
        let path = self.path.display();
        let message = format!(
            "{path}: a conflict in the persona is not resolved: keep one of the two sides, and remove the lines of markers"
        );
        Some(Failure::with_code(Code::Conflict, message))
    }

    async fn open_editor(&self) -> Result<()> {
        let (program, arguments) = self.editor.split_first().ok_or_else(no_editor)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(&self.path);
        self.is_open.set(true);
        let status = tokio::task::spawn_blocking(move || command.status()).await;
        self.is_open.set(false);
        let status = status.map_err(Failure::error)?;
        let status = status.map_err(|error| {
            let hint = "Set VISUAL or EDITOR to the command of your editor.";
            Failure::io(format_args!("the editor {program}"), &error).hint(hint)
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::error(format_args!(
                "the editor {program} ended with {status}; nothing was changed"
            ))),
        }
    }

    fn remove_file(&self) {
        // What remains is in the directory for temporary files.
        let _ = self.path.parent().map(fs::remove_dir_all);
    }
}

/// The command of the user's editor.
fn editor() -> Result<Vec<String>> {
    let variable = |name| {
        env::var(name)
            .ok()
            .filter(|command: &String| !command.trim().is_empty())
    };
    let command = variable("VISUAL")
        .or_else(|| variable("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned());
    shell_words::split(&command)
        .ok()
        .filter(|words| !words.is_empty())
        .ok_or_else(no_editor)
}

fn no_editor() -> Failure {
    Failure::error("VISUAL or EDITOR must be the command of an editor, with its quotes closed")
}

/// A path for the file, in a directory of its own that only the user can read.
fn new_file(agent_id: &str) -> Result<PathBuf> {
    let dir = tempfile::Builder::new().prefix("agentcfg-").tempdir();
    let dir = dir.map_err(|error| Failure::io("the directory for temporary files", &error))?;
    Ok(Path::join(&dir.keep(), format!("{agent_id}.{EXTENSION}")))
}
