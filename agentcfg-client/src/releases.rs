//! Releases: what a label releases, how it moved, and putting it back.

use agentcfg_core::model::{
    Cursor, Label, LabelHistoryFilter, LabelMoves, LabelRestore, ReleasedAgent, RestoredLabel, Tag, Tagged, WorkspaceId,
};

use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

const RELEASED: &str = "/api/agents/released";
const HISTORY: &str = "/api/agents/labels/history";
const RESTORE: &str = "/api/agents/labels/restore";

/// What a label releases, as one answer gave it.
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// let released = client.released(workspace, &"production".parse()?).await?;
/// println!("{} agents at {}", released.agents.value.len(), released.cursor);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Released {
    /// The released versions in the order of the list of agents, with the tag of the list.
    pub agents: Tagged<Vec<ReleasedAgent>>,
    /// The position in the change feed at which they were read.
    pub cursor: Cursor,
    /// The places of the agents in the order of their identifiers.
    by_id: Vec<usize>,
}

impl Released {
    pub(crate) fn new(agents: Tagged<Vec<ReleasedAgent>>, cursor: Cursor) -> Self {
        let mut by_id: Vec<usize> = (0..agents.value.len()).collect();
        by_id.sort_unstable_by_key(|place| &agents.value[*place].agent_id);
        Self { agents, cursor, by_id }
    }

    /// The version of an agent that the label releases.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let released = client.released(workspace, &"production".parse()?).await?;
    /// println!("{:?}", released.get("writer").map(|writer| writer.version));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, agent_id: &str) -> Option<&ReleasedAgent> {
        self.place(agent_id).map(|place| &self.agents.value[place])
    }

    fn place(&self, agent_id: &str) -> Option<usize> {
        let agent = |place: &usize| &self.agents.value[*place];
        let found = self
            .by_id
            .binary_search_by(|place| (*agent(place).agent_id).cmp(agent_id));
        found.ok().map(|index| self.by_id[index])
    }

    /// Takes over other versions of agents that are here, at a later position. The tag of the list is then unknown.
    pub(crate) fn replace(&mut self, rows: Vec<ReleasedAgent>, cursor: Cursor) {
        for row in rows {
            if let Some(place) = self.place(&row.agent_id) {
                self.agents.value[place] = row;
            }
        }
        self.agents.tag = Tag::UNKNOWN;
        self.cursor = cursor;
    }
}

impl Client {
    /// Reads the version of each active agent that a label points at, with its content. `latest` releases the current
    /// versions.
    ///
    /// See [`Client::mirror`] for a copy that follows the label.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) without `agents:read` in the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for released in client.released(workspace, &"production".parse()?).await?.agents.value {
    ///     println!("{} is at version {}", released.agent_id, released.version);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn released(&self, workspace: WorkspaceId, label: &Label) -> Result<Released, Error> {
        self.send(released(workspace, label), read).await
    }

    /// Reads as [`Self::released`], or returns `None` when the list still has this tag.
    ///
    /// # Errors
    ///
    /// As [`Self::released`].
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let production = "production".parse()?;
    /// let mut known = client.released(workspace, &production).await?;
    /// if let Some(fresh) = client.released_if_changed(workspace, &production, known.agents.tag).await? {
    ///     known = fresh;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn released_if_changed(
        &self,
        workspace: WorkspaceId,
        label: &Label,
        known: Tag,
    ) -> Result<Option<Released>, Error> {
        let call = released(workspace, label).if_none_match(known);
        self.send(call, |answer| match answer.is_not_modified() {
            true => Ok(None),
            false => read(answer).map(Some),
        })
        .await
    }

    /// Lists the commits that moved a label, newest first.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for `latest`, [`is_forbidden`](Error::is_forbidden) without `agents:read` in
    /// the workspace.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// for row in client.label_history(workspace, &"production".parse()?, Default::default()).await? {
    ///     println!("{} moved {} agents at revision {}", row.actor.id, row.moves.len(), row.revision);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn label_history(
        &self,
        workspace: WorkspaceId,
        label: &Label,
        filter: LabelHistoryFilter<'_>,
    ) -> Result<Vec<LabelMoves>, Error> {
        let call = Call::get(HISTORY)
            .query("workspace_id", workspace)
            .query("label", label)
            .query_if("agent_id", filter.agent_id)
            .query_if("before", filter.before)
            .query_if("limit", filter.limit);
        self.send(call, ApiResponse::json).await
    }

    /// Puts a label of all agents back to where it was at a revision, in one commit. Returns the labels that moved.
    ///
    /// With `dry_run` the answer is the same, and nothing is changed.
    ///
    /// # Errors
    ///
    /// [`is_invalid`](Error::is_invalid) for `latest` and for a revision that is not there yet,
    /// [`is_forbidden`](Error::is_forbidden) without `agents:release`,
    /// [`is_precondition_failed`](Error::is_precondition_failed) when the label has moved since [`LabelRestore::base`],
    /// [`is_plan_limit`](Error::is_plan_limit) when more than 1,000 labels would move.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use agentcfg_client::model::LabelRestore;
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let back = LabelRestore::new("production".parse()?, 42);
    /// for label in client.restore_label(workspace, &back, true).await? {
    ///     println!("{} would go from {:?} to {:?}", label.agent_id, label.previous_version, label.version);
    /// }
    /// client.restore_label(workspace, &back, false).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore_label(
        &self,
        workspace: WorkspaceId,
        restore: &LabelRestore,
        dry_run: bool,
    ) -> Result<Vec<RestoredLabel>, Error> {
        let call = Call::post(RESTORE)
            .query("workspace_id", workspace)
            .message(self.message());
        let call = call.dry_run(dry_run).json(restore);
        self.send(call, ApiResponse::json).await
    }
}

fn released(workspace: WorkspaceId, label: &Label) -> Call {
    Call::get(RELEASED)
        .query("workspace_id", workspace)
        .query("label", label)
}

fn read(answer: &ApiResponse) -> Result<Released, Error> {
    Ok(Released::new(answer.tagged()?, answer.cursor()?))
}
