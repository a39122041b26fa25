//! Following the change feed.

use std::fs;
use std::io;
use std::path::Path;

use agentcfg_client::Followed;
use agentcfg_client::model::{After, ChangeEvent, Cursor, StatusEvent};

use super::context::Context;
use crate::args::Watch;
use crate::failure::{Code, CommandFailure, Result};
use crate::file;
use crate::output::{BOLD, DIM, Output, changed, or_dash, printable};
use crate::session::parse;

pub async fn run(context: &mut Context, watch: Watch) -> Result<Code> {
    let after = position(&watch)?;
    let session = context.session()?;
    let mut changes = session.client.changes(session.workspace().await?, after);
    if watch.status {
        changes = changes.with_status();
    }
    let output = &mut context.output;
    let mut rest = watch.limit;
    while rest != Some(0) {
        let followed = changes.next().await.map_err(|error| match error.is_gone() {
            true => CommandFailure::error(format_args!("the position is no longer served: {error}"))
                .hint(begin_again(watch.cursor_file.as_deref())),
            false => error.into(),
        })?;
        let cursor = match &followed {
            Followed::Change(event) => {
                show_change(output, event)?;
                Some(event.cursor)
            }
            Followed::Status(event) => {
                show_status(output, event)?;
                None
            }
            Followed::Bookmark(cursor) => Some(*cursor),
            _ => None,
        };
        // Written after the event: a watch that is killed in between shows the event again, and never misses one.
        if let (Some(path), Some(cursor)) = (&watch.cursor_file, cursor) {
            save(path, cursor)?;
        }
        if !matches!(followed, Followed::Bookmark(_)) {
            rest = rest.map(|rest| rest.saturating_sub(1));
        }
    }
    Ok(Code::Done)
}

/// Where to begin: the position of the file if it has one, else the named one, else now.
fn position(watch: &Watch) -> Result<After> {
    if let Some(path) = &watch.cursor_file {
        match fs::read_to_string(path) {
            Ok(cursor) => return parse(&path.display().to_string(), cursor.trim()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(CommandFailure::io(path.display(), &error)),
        }
    }
    parse("after", watch.after.as_deref().unwrap_or("now"))
}

/// The way out when a position is no longer served. That of a file wins over `--after`.
fn begin_again(cursor_file: Option<&Path>) -> String {
    match cursor_file.filter(|path| path.exists()) {
        Some(path) => format!(
            "Read the agents again, and remove {}: the next watch begins with what comes then.",
            path.display()
        ),
        None => "Read the agents again, and begin with `agentcfg watch --after now`.".to_owned(),
    }
}

fn save(path: &Path, cursor: Cursor) -> Result<()> {
    file::write_file(path, format!("{cursor}\n").as_bytes())
}

fn show_change(output: &mut Output, event: &ChangeEvent) -> Result<()> {
    if output.is_json() {
        return output.json_line(event);
    }
    let (actor, target) = (printable(&event.actor.id), printable(&event.target.id));
    let message = event
        .message
        .as_ref()
        .map(|message| format!("  \"{}\"", printable(message)))
        .unwrap_or_default();
    output.line(format_args!(
        "{DIM}{} {}{DIM:#}  {BOLD}{}{BOLD:#} {target} by {actor}{message}  {DIM}{}{DIM:#}",
        event.created_at,
        event.revision,
        event.kind,
        changed(&event.changes),
    ))
}

fn show_status(output: &mut Output, event: &StatusEvent) -> Result<()> {
    if output.is_json() {
        return output.json_line(event);
    }
    let task = event.current_task_id.as_ref().zip(event.current_task_title.as_ref());
    let task = task
        .map(|(id, title)| format!("  {}  {}", printable(id), printable(title)))
        .unwrap_or_default();
    let at = or_dash(event.reported_at);
    output.line(format_args!(
        "{DIM}{at}{DIM:#}  {BOLD}{}{BOLD:#} {}{task}",
        event.agent_id, event.status
    ))
}
