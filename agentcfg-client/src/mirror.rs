//! A live copy of a workspace's agents.

use std::future::IntoFuture;
use std::pin::Pin;

use agentcfg_core::model::{Agent, AgentFilter, AgentId, AgentMirror, AgentState, Cursor, Label, WorkspaceId};

use crate::{ChangeStream, Client, Error, Followed, ReleasedMirrorBuilder};

/// A copy of a workspace's agents that follows their changes. See [`Client::mirror`].
///
/// ```no_run
/// # use agentcfg_client::model::{AgentId, WorkspaceId};
/// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
/// let mut mirror = client.mirror(workspace).await?;
/// let writer: AgentId = "writer".parse()?;
/// loop {
///     println!("the writer uses {:?}", mirror.get(&writer).and_then(|writer| writer.model.as_ref()));
///     mirror.changed().await?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Mirror {
    client: Client,
    workspace: WorkspaceId,
    agents: AgentMirror,
    changes: ChangeStream,
    /// Whether the list must be read again, because the feed no longer leads from this copy to the current agents.
    is_lost: bool,
}

/// A mirror that is to be made: awaited as it is, of the current agents; or of what a label [releases](Self::label).
/// See [`Client::mirror`].
///
/// ```no_run
/// # use agentcfg_client::model::WorkspaceId;
/// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
/// let current = client.mirror(workspace).await?;
/// let released = client.mirror(workspace).label("production".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a mirror is made when it is awaited"]
pub struct MirrorBuilder {
    client: Client,
    workspace: WorkspaceId,
}

impl MirrorBuilder {
    /// Follows the versions that a label points at, in place of the current agents.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::WorkspaceId;
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut mirror = client.mirror(workspace).label("production".parse()?).await?;
    /// println!("{:?}", mirror.get("writer").map(|writer| writer.version));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(self, label: Label) -> ReleasedMirrorBuilder {
        ReleasedMirrorBuilder::new(self.client, self.workspace, label)
    }
}

impl IntoFuture for MirrorBuilder {
    type Output = Result<Mirror, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, workspace } = self;
        Box::pin(async move {
            let agents = client.mirrored(workspace).await?;
            Ok(Mirror {
                changes: client.changes(workspace, agents.cursor()),
                client,
                workspace,
                agents,
                is_lost: false,
            })
        })
    }
}

impl Client {
    /// Makes a copy of a workspace's agents that follows their changes, or with [`MirrorBuilder::label`] of what a
    /// label releases.
    ///
    /// # Errors
    ///
    /// As [`Self::list_agents`], when it is awaited.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::WorkspaceId;
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
    /// let mirror = client.mirror(workspace).await?;
    /// println!("{} agents at {}", mirror.agents().len(), mirror.cursor());
    /// # Ok(())
    /// # }
    /// ```
    pub fn mirror(&self, workspace: WorkspaceId) -> MirrorBuilder {
        MirrorBuilder {
            client: self.clone(),
            workspace,
        }
    }

    /// Reads the list with the deleted agents, because the event of a restored agent has few fields.
    async fn mirrored(&self, workspace: WorkspaceId) -> Result<AgentMirror, Error> {
        let filter = AgentFilter::default().state(AgentState::All);
        let (agents, cursor) = self.list_agents_with_cursor(workspace, &filter).await?;
        Ok(AgentMirror::new(cursor, agents))
    }
}

impl Mirror {
    /// The active agents, in the order of the list.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::Mirror) {
    /// for agent in mirror.agents() {
    ///     println!("{}", agent.display_name);
    /// }
    /// # }
    /// ```
    pub fn agents(&self) -> Vec<&Agent> {
        self.agents.agents()
    }

    /// An active agent.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::Mirror) -> Result<(), Box<dyn std::error::Error>> {
    /// assert!(mirror.get(&"writer".parse()?).is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, agent_id: &AgentId) -> Option<&Agent> {
        self.agents.get(agent_id)
    }

    /// The position in the change feed that the copy is at.
    ///
    /// ```no_run
    /// # fn example(mirror: agentcfg_client::Mirror) {
    /// println!("at revision {}", mirror.cursor().revision());
    /// # }
    /// ```
    pub fn cursor(&self) -> Cursor {
        self.agents.cursor()
    }

    /// Waits until an agent has changed, and applies the change. When the feed no longer leads on from the copy, such
    /// as after a restore from a backup, the list is read again.
    ///
    /// Dropping the future loses no change.
    ///
    /// # Errors
    ///
    /// As [`ChangeStream::next`], except that [`Error::is_gone`] is handled here. The copy stays as it is, and the next
    /// call goes on.
    ///
    /// ```no_run
    /// # async fn example(mut mirror: agentcfg_client::Mirror) -> Result<(), agentcfg_client::Error> {
    /// mirror.changed().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn changed(&mut self) -> Result<(), Error> {
        loop {
            if self.is_lost {
                self.agents = self.client.mirrored(self.workspace).await?;
                self.changes = self.client.changes(self.workspace, self.agents.cursor());
                self.is_lost = false;
                return Ok(());
            }
            match self.changes.next().await {
                Ok(Followed::Change(event)) => match self.agents.apply(&event) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(_) => self.is_lost = true,
                },
                Ok(Followed::Bookmark(cursor)) => self.agents.bookmark(cursor),
                Ok(Followed::Status(_)) => {}
                Err(error) if error.is_gone() => self.is_lost = true,
                Err(error) => return Err(error),
            }
        }
    }
}
