//! The file that keeps what a label released last, for a start without the server.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use agentcfg_core::model::{Cursor, Label, ReleasedAgent, Tag, Tagged, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::Released;

/// The form of the file. Another one is not read.
const FORMAT: u32 = 1;

/// How many bytes of the file the checksum takes, with the bracket before it and the comma after it.
const HEAD_BYTES: usize = 20;

/// The content of the file, without the checksum.
#[derive(Serialize, Deserialize)]
struct Saved<A> {
    format: u32,
    workspace_id: WorkspaceId,
    label: Label,
    /// The tag of the list; empty where it is unknown.
    tag: String,
    cursor: Cursor,
    /// When the server confirmed the state last, for the other clients.
    #[serde(skip_deserializing)]
    confirmed_at: Option<Timestamp>,
    agents: A,
}

/// A file for one label of one workspace.
#[derive(Debug, Clone)]
pub(crate) struct ReleasedFile {
    path: PathBuf,
    workspace: WorkspaceId,
    label: Label,
}

impl ReleasedFile {
    pub(crate) fn new(path: PathBuf, workspace: WorkspaceId, label: Label) -> Self {
        Self { path, workspace, label }
    }

    /// What was saved last; `None` where there is no file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not as it was written, or is that of another label or workspace.
    pub(crate) fn load(&self) -> io::Result<Option<Released>> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_whole = text
            .split_at_checked(HEAD_BYTES)
            .is_some_and(|(start, rest)| start == head(rest).as_bytes());
        if !is_whole {
            return Err(io::Error::other("the file is damaged: it is not as it was written"));
        }
        let saved: Saved<Vec<ReleasedAgent>> = serde_json::from_slice(&text).map_err(io::Error::other)?;
        let is_own = (saved.format, saved.workspace_id, &saved.label) == (FORMAT, self.workspace, &self.label);
        if !is_own {
            return Err(io::Error::other(
                "the file is that of another label, workspace or release",
            ));
        }
        let tag = match saved.tag.as_str() {
            "" => Tag::UNKNOWN,
            tag => tag.parse().map_err(io::Error::other)?,
        };
        let value = saved.agents;
        Ok(Some(Released::new(Tagged { value, tag }, saved.cursor)))
    }

    /// Replaces the file as a whole: a reader finds the state before or this one. Processes share a file: one that is
    /// behind leaves the state of another one in it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. The one before is unchanged.
    pub(crate) fn save(&self, released: &Released) -> io::Result<()> {
        let own = released.cursor;
        // A file that cannot be used is replaced.
        if let Ok(Some(other)) = self.load()
            && other.cursor.epoch() == own.epoch()
            && other.cursor.revision() > own.revision()
        {
            return Ok(());
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        // Other mirrors, of this process or of one in another container, may write a file for the same one now.
        name.push(format!(".{:016x}.tmp", RandomState::new().hash_one(std::process::id())));
        let temporary = self.path.with_file_name(name);
        let mut file = private(&temporary)?;
        let written = self.write(&mut file, released);
        let replaced = written.and_then(|()| fs::rename(&temporary, &self.path));
        if replaced.is_err() {
            // The failure that is told is the first one.
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }

    fn write(&self, file: &mut File, released: &Released) -> io::Result<()> {
        // The state was confirmed right before the file was made.
        let made = file
            .metadata()?
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let confirmed_at = made.as_millis().try_into().ok().map(Timestamp::from_unix_millis);
        let saved = Saved {
            format: FORMAT,
            workspace_id: self.workspace,
            label: self.label.clone(),
            tag: match released.agents.tag {
                Tag::UNKNOWN => String::new(),
                tag => tag.to_string(),
            },
            cursor: released.cursor,
            confirmed_at,
            agents: &released.agents.value,
        };
        let text = serde_json::to_vec(&saved).map_err(io::Error::other)?;
        // The checksum is the first member of the object.
        let members = text.get(1..).unwrap_or_default();
        file.write_all(head(members).as_bytes())?;
        file.write_all(members)?;
        file.sync_all()
    }
}

/// What the file begins with: a checksum of all that follows, so that a file that was damaged or edited is not read.
fn head(rest: &[u8]) -> String {
    format!("{{\"crc32\":\"{:08x}\",", crc32fast::hash(rest))
}

/// Makes a file that its owner alone can read: personas may be confidential.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
