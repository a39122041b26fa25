//! Changing an agent in the user's editor.

use std::cell::Cell;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use agentcfg_client::Client;
use agentcfg_client::model::{AgentSpec, Precondition, VersionedAgent, WorkspaceId};

use super::context::Context;
use crate::agent_file::{self, EXTENSION, Fields};
use crate::args::Reason;
use crate::failure::{Code, CommandFailure, Result};
use crate::file;
use crate::merge::{self, Merged};
use crate::terminal;

/// How often an edit is merged with other changes before the command gives up.
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
        original: agent_file::write(&agent.value.agent_id, &Fields::of(&agent.value.config())?),
    };
    let outcome = edit.until_interrupted(context, agent).await;
    let after = match outcome {
        Ok(after) => after,
        Err(failure) => {
            if edit.has_text() {
                // An editor may have made a file of its own. The directory is closed to other users anyway.
                let _ = file::make_private(&edit.path);
                let kept = format!("Your text is kept in {}", edit.path.display());
                context.output.note(kept);
            } else {
                edit.remove_file();
            }
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
    /// The file as the editor gets it first.
    original: String,
}

/// What became of an edit.
enum Saved {
    /// There is nothing to change.
    Unchanged,
    Changed(Box<VersionedAgent>),
    /// The edit and this version collide: the text has both.
    Collided {
        text: String,
        version: String,
    },
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
                        return Err(CommandFailure::error("interrupted"));
                    }
                }
            }
        }
    }

    /// Edits until the change is made; `None` if there is none.
    async fn until_saved(&self, context: &mut Context, mut base: VersionedAgent) -> Result<Option<VersionedAgent>> {
        let mut text = self.original.clone();
        let mut label = None;
        loop {
            file::write_private_file(&self.path, text.as_bytes())?;
            let conflict = label.as_deref().map(|version| (text.as_str(), version));
            let spec = self.edited(context, conflict).await?;
            match self.save(context, &mut base, Fields::of_spec(&spec)?).await? {
                Saved::Unchanged => return Ok(None),
                Saved::Changed(agent) => return Ok(Some(*agent)),
                Saved::Collided { text: both, version } => (text, label) = (both, Some(version)),
            }
        }
    }

    /// Sends the change from `base` to these fields. Changes that other clients made meanwhile are merged, and `base`
    /// follows them.
    async fn save(&self, context: &mut Context, base: &mut VersionedAgent, mut mine: Fields) -> Result<Saved> {
        let agent_id = base.value.agent_id.clone();
        let mut before = Fields::of(&base.value.config())?;
        for _ in 0..MAX_MERGES {
            let Some(patch) = mine.patch_from(&before).map_err(CommandFailure::error)? else {
                return Ok(Saved::Unchanged);
            };
            let condition = Precondition::matches(base.tag);
            let sent = self
                .client
                .update_agent(Some(self.workspace), &agent_id, &patch, &condition);
            match sent.await {
                Ok(agent) => return Ok(Saved::Changed(Box::new(agent))),
                Err(error) if error.is_precondition_failed() => {}
                Err(error) => return Err(error.into()),
            }
            *base = self.client.get_agent(self.workspace, &agent_id).await?;
            let theirs = Fields::of(&base.value.config())?;
            let version = format!("version {}", base.version);
            match merge::merge(&agent_id, &before, &mine, &theirs, &version) {
                Merged::Clean(fields) => {
                    let message = format!("The agent has changed meanwhile; your edit was merged with {version}.");
                    context.output.note(message);
                    mine = fields;
                }
                Merged::Conflict(text) => {
                    let message = format!("The agent has changed meanwhile, and your edit collides with {version}.");
                    context.output.note(message);
                    return Ok(Saved::Collided { text, version });
                }
            }
            before = theirs;
        }
        let message = "other clients change the agent faster than your edit can be merged";
        Err(CommandFailure::with_code(Code::Conflict, message).hint("Try again later."))
    }

    /// Opens the editor until the file is one of an agent, without the markers of this collision with a version.
    async fn edited(&self, context: &mut Context, conflict: Option<(&str, &str)>) -> Result<AgentSpec> {
        loop {
            self.open_editor().await?;
            let bytes = fs::read(&self.path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    CommandFailure::error("the editor has removed the file; nothing was changed")
                }
                _ => CommandFailure::io(self.path.display(), &error),
            })?;
            let failure = match self.unresolved(&bytes, conflict) {
                Some(failure) => failure,
                None => match agent_file::read(&self.path, &bytes, agent_file::Markers::Allow) {
                    Ok(spec) => return Ok(spec),
                    Err(problems) => CommandFailure::Files(problems),
                },
            };
            if !terminal::is_attended() {
                return Err(failure);
            }
            context.report(&failure);
            // By a thread of its own: Ctrl-C ends the command here.
            let answer = tokio::task::spawn_blocking(|| terminal::confirm("Edit again?"));
            answer.await.map_err(CommandFailure::error)??;
        }
    }

    fn unresolved(&self, bytes: &[u8], conflict: Option<(&str, &str)>) -> Option<CommandFailure> {
        let (conflict, version) = conflict?;
        let line = merge::unresolved(&String::from_utf8_lossy(bytes), conflict, version)? + 1;
        let path = self.path.display();
        let message = format!("{path}:{line}:1: {}", agent_file::UNRESOLVED);
        Some(CommandFailure::with_code(Code::Conflict, message))
    }

    async fn open_editor(&self) -> Result<()> {
        let (program, arguments) = self.editor.split_first().ok_or_else(no_editor)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(&self.path);
        self.is_open.set(true);
        let status = tokio::task::spawn_blocking(move || command.status()).await;
        self.is_open.set(false);
        let status = status.map_err(CommandFailure::error)?;
        let status = status.map_err(|error| {
            let hint = "Set VISUAL or EDITOR to the command of your editor.";
            CommandFailure::io(format_args!("the editor {program}"), &error).hint(hint)
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(CommandFailure::error(format_args!(
                "the editor {program} ended with {status}; nothing was changed"
            ))),
        }
    }

    /// Whether the file has what the user wrote.
    fn has_text(&self) -> bool {
        // What cannot be read may be the user's.
        fs::read(&self.path).map_or_else(
            |error| error.kind() != io::ErrorKind::NotFound,
            |bytes| bytes != self.original.as_bytes(),
        )
    }

    fn remove_file(&self) {
        // On failure the file stays in the directory for temporary files.
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

fn no_editor() -> CommandFailure {
    CommandFailure::error("VISUAL or EDITOR must be the command of an editor, with its quotes closed")
}

/// A path for the file, in a directory of its own that only the user can read.
fn new_file(agent_id: &str) -> Result<PathBuf> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("agentcfg-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let dir = builder
        .tempdir()
        .map_err(|error| CommandFailure::io("the directory for temporary files", &error))?;
    Ok(Path::join(&dir.keep(), format!("{agent_id}.{EXTENSION}")))
}
