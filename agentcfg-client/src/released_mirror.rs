//! A live copy of what a label releases.

use std::future::IntoFuture;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use agentcfg_core::model::{Cursor, Label, ReleasedAgent, Tag, WorkspaceId};
use backon::ExponentialBackoff;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use crate::reconnect::{MAX_DELAY, asked_pause, may_pass, pauses};
use crate::released_file::ReleasedFile;
use crate::{ChangeStream, Client, Error, Followed, Released};

/// A mirror of what a label releases that is to be made. See [`MirrorBuilder::label`](crate::MirrorBuilder::label).
///
/// ```no_run
/// # use agentcfg_client::model::WorkspaceId;
/// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
/// let mirror = client.mirror(workspace).label("production".parse()?).file("agents.json").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a mirror is made when it is awaited"]
pub struct ReleasedMirrorBuilder {
    client: Client,
    workspace: WorkspaceId,
    label: Label,
    file: Option<PathBuf>,
}

impl ReleasedMirrorBuilder {
    pub(crate) fn new(client: Client, workspace: WorkspaceId, label: Label) -> Self {
        Self {
            client,
            workspace,
            label,
            file: None,
        }
    }

    /// Keeps the last state in this file. A mirror that is made while the server cannot be reached starts with it, and
    /// follows the label once the server is back.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::WorkspaceId;
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
    /// let mirror = client.mirror(workspace).label("production".parse()?).file("agents.json").await?;
    /// println!("from the file: {}", mirror.is_from_file());
    /// # Ok(())
    /// # }
    /// ```
    pub fn file(self, path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            ..self
        }
    }
}

impl IntoFuture for ReleasedMirrorBuilder {
    type Output = Result<ReleasedMirror, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}

impl ReleasedMirrorBuilder {
    async fn make(self) -> Result<ReleasedMirror, Error> {
        let Self {
            client,
            workspace,
            label,
            file,
        } = self;
        let file = file.map(|path| ReleasedFile::new(path, workspace, label.clone()));
        let (released, is_from_file) = match client.released(workspace, &label).await {
            Ok(released) => (released, false),
            Err(error) => match saved(file.clone(), &error).await {
                Some(released) => (released, true),
                None => return Err(error),
            },
        };
        let mut mirror = ReleasedMirror {
            changes: changes(&client, workspace, released.cursor, &label),
            client,
            workspace,
            label,
            released: Arc::new(released),
            next: Next::Follow,
            is_from_file,
            confirmed_at: Instant::now(),
            file,
            file_error: None,
            saving: None,
            pauses: pauses(),
            read_at: None,
            is_changed: false,
        };
        if !is_from_file {
            mirror.save().await;
        }
        Ok(mirror)
    }
}

/// The events after a position, with what the label releases.
fn changes(client: &Client, workspace: WorkspaceId, after: Cursor, label: &Label) -> ChangeStream {
    let changes = client.changes(workspace, after).of_known_server();
    changes.with_released(label.clone())
}

/// What the file has, unless the service itself refuses the credential or the request. A proxy may answer in its place.
async fn saved(file: Option<ReleasedFile>, error: &Error) -> Option<Released> {
    let file = file.filter(|_| !error.is_refusal())?;
    let loaded = spawn_blocking(move || file.load()).await.ok()?;
    loaded.ok().flatten()
}

/// A copy of what a label releases that follows its moves. See [`MirrorBuilder::label`](crate::MirrorBuilder::label).
///
/// A release of many agents is one step: a reader sees the state before it or the one after it.
///
/// ```no_run
/// # use agentcfg_client::model::WorkspaceId;
/// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
/// let mut mirror = client.mirror(workspace).label("production".parse()?).file("agents.json").await?;
/// loop {
///     println!("the writer is at version {:?}", mirror.get("writer").map(|writer| writer.version));
///     mirror.changed().await?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct ReleasedMirror {
    client: Client,
    workspace: WorkspaceId,
    label: Label,
    released: Arc<Released>,
    changes: ChangeStream,
    next: Next,
    is_from_file: bool,
    /// When the server last confirmed the state.
    confirmed_at: Instant,
    file: Option<ReleasedFile>,
    file_error: Option<io::Error>,
    /// A write of the file that is under way.
    saving: Option<JoinHandle<io::Result<()>>>,
    pauses: ExponentialBackoff,
    /// When to try to read again. It is stored here, so that a dropped future does not begin the delay again.
    read_at: Option<Instant>,
    /// Whether the state has changed and no call of [`Self::changed`] has said so.
    is_changed: bool,
}

/// What a mirror does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Wait for a change.
    Follow,
    /// Read the state again, because a change may have moved the label.
    Read,
    /// Read the state again and follow the feed from there, because the feed no longer leads on from this state.
    Restart,
}

impl ReleasedMirror {
    /// The released versions, in the order of the list of agents.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// for agent in mirror.agents() {
    ///     println!("{} is at version {}", agent.agent_id, agent.version);
    /// }
    /// # }
    /// ```
    pub fn agents(&self) -> &[ReleasedAgent] {
        &self.released.agents.value
    }

    /// The released version of an agent.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// let prompt = mirror.get("writer").and_then(|writer| writer.config.persona_prompt.as_deref());
    /// # }
    /// ```
    pub fn get(&self, agent_id: &str) -> Option<&ReleasedAgent> {
        self.released.get(agent_id)
    }

    /// The state of this moment, for readers in other tasks. It does not change when the mirror does.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// let now = mirror.snapshot();
    /// std::thread::spawn(move || println!("{} agents", now.agents.value.len()));
    /// # }
    /// ```
    pub fn snapshot(&self) -> Arc<Released> {
        Arc::clone(&self.released)
    }

    /// Whether the state is that of the file, because the server was not reached yet.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// if mirror.is_from_file() {
    ///     println!("the server is away");
    /// }
    /// # }
    /// ```
    pub fn is_from_file(&self) -> bool {
        self.is_from_file
    }

    /// How long ago the server last confirmed the state: it answered with it, or its feed had nothing against it. A
    /// connected feed does so every 15 seconds. Of a state [from a file](Self::is_from_file) it is the time since the
    /// mirror was made.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// println!("confirmed {} s ago", mirror.age().as_secs());
    /// # }
    /// ```
    pub fn age(&self) -> std::time::Duration {
        self.confirmed_at.elapsed()
    }

    /// Why the file could not be written after the last change. The mirror goes on without it.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::ReleasedMirror) {
    /// if let Some(error) = mirror.file_error() {
    ///     eprintln!("agents.json: {error}");
    /// }
    /// # }
    /// ```
    pub fn file_error(&self) -> Option<&io::Error> {
        self.file_error.as_ref()
    }

    /// Waits until the label releases something else. A server that cannot be reached is waited for. When the feed no
    /// longer leads on from the copy, such as after a restore from a backup, the state is read again.
    ///
    /// Dropping the future loses no change.
    ///
    /// # Errors
    ///
    /// As [`ChangeStream::next`], except that [`Error::is_gone`] is handled here. The copy stays as it is, and the next
    /// call goes on.
    ///
    /// ```no_run
    /// # async fn example(mut mirror: agentcfg_client::ReleasedMirror) -> Result<(), agentcfg_client::Error> {
    /// mirror.changed().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn changed(&mut self) -> Result<(), Error> {
        loop {
            if self.is_changed {
                self.save().await;
                self.is_changed = false;
                return Ok(());
            }
            match self.next {
                Next::Follow => self.follow().await?,
                _ => self.is_changed = self.read().await?,
            }
        }
    }

    /// Waits for the next event of the feed.
    async fn follow(&mut self) -> Result<(), Error> {
        match self.changes.next().await {
            Ok(Followed::Change(event)) => {
                let own = self.released.cursor;
                let is_of_epoch = event.cursor.epoch() == own.epoch();
                let is_known = is_of_epoch && event.revision <= own.revision();
                if !is_known && event.may_release(&self.label) {
                    // The state may be of a store that was restored since. The place of an agent that is new in the
                    // list is not known.
                    let rows = event.released.filter(|_| is_of_epoch);
                    let rows = rows.filter(|rows| rows.iter().all(|row| self.get(&row.agent_id).is_some()));
                    let Some(rows) = rows else {
                        self.next = Next::Read;
                        return Ok(());
                    };
                    // Only a snapshot that is still held is copied.
                    Arc::make_mut(&mut self.released).replace(rows, event.cursor);
                    self.is_changed = true;
                }
            }
            Ok(Followed::Bookmark(_) | Followed::Status(_)) => {}
            Err(error) if error.is_gone() => {
                self.next = Next::Restart;
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.confirm();
        Ok(())
    }

    /// Reads the state again. Returns whether it is another one.
    async fn read(&mut self) -> Result<bool, Error> {
        if let Some(at) = self.read_at {
            sleep_until(at).await;
            self.read_at = None;
        }
        let (workspace, label) = (self.workspace, &self.label);
        let known = self.released.agents.tag;
        // The answer tells from where the feed leads on, so it is needed even if it is the same.
        let found = match self.next == Next::Restart || known == Tag::UNKNOWN {
            true => self.client.released(workspace, label).await.map(Some),
            false => self.client.released_if_changed(workspace, label, known).await,
        };
        let found = match found {
            Ok(found) => found,
            Err(error) if may_pass(&error) || error.is_connect() || error.is_of_another() => {
                let pause = self.pauses.next().unwrap_or(MAX_DELAY);
                self.read_at = Some(Instant::now() + pause.max(asked_pause(&error)));
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.pauses = pauses();
        if let (Next::Restart, Some(released)) = (mem::replace(&mut self.next, Next::Follow), &found) {
            self.changes = changes(&self.client, workspace, released.cursor, label);
        }
        self.confirm();
        let Some(released) = found else { return Ok(false) };
        let is_other = released.agents.value != self.released.agents.value;
        self.released = Arc::new(released);
        Ok(is_other)
    }

    fn confirm(&mut self) {
        self.confirmed_at = Instant::now();
        self.is_from_file = false;
    }

    /// Writes the state into the file, if there is one. A call that was dropped goes on in the next one.
    async fn save(&mut self) {
        if self.saving.is_none() {
            self.saving = self.begin_to_save();
        }
        if let Some(saving) = &mut self.saving {
            let saved = saving.await;
            self.saving = None;
            self.file_error = saved.unwrap_or_else(|error| Err(io::Error::other(error))).err();
        }
    }

    fn begin_to_save(&self) -> Option<JoinHandle<io::Result<()>>> {
        let file = self.file.clone()?;
        let released = self.snapshot();
        Some(spawn_blocking(move || file.save(&released)))
    }
}
