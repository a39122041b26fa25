//! Pages of the change feed.

use std::time::Duration;

use agentcfg_core::model::{After, ChangeEvent, Cursor, WorkspaceId};

use crate::polls::CHANGES;
use crate::request::Call;
use crate::response::ApiResponse;
use crate::{Client, Error};

/// Events of a workspace in the order of their revisions, and the position to read on from.
///
/// ```
/// use agentcfg_client::ChangePage;
/// fn last(page: &ChangePage) -> Option<u64> {
///     page.events.last().map(|event| event.revision)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ChangePage {
    /// The events that the caller may see.
    pub events: Vec<ChangeEvent>,
    /// The position to read on from. It also moves over events that the caller may not see.
    pub cursor: Cursor,
}

impl Client {
    /// Reads the changes of a workspace after a position, at most `limit` of them; without a limit, at most 100.
    ///
    /// An answer without events waits so long for one, up to 30 seconds. Give the client a longer [attempt
    /// timeout](crate::Timeouts::attempt) than that.
    ///
    /// # Errors
    ///
    /// [`Error::is_gone`] when the position is no longer one of the workspace: read the list again.
    ///
    /// ```no_run
    /// # use agentcfg_client::model::{After, WorkspaceId};
    /// # async fn example(client: agentcfg_client::Client, workspace: WorkspaceId) -> Result<(), agentcfg_client::Error> {
    /// let page = client.read_changes(workspace, After::Start, Some(50), std::time::Duration::ZERO).await?;
    /// let next = client.read_changes(workspace, page.cursor, Some(50), std::time::Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_changes(
        &self,
        workspace: WorkspaceId,
        after: impl Into<After>,
        limit: Option<u32>,
        wait: Duration,
    ) -> Result<ChangePage, Error> {
        let call = Call::get(CHANGES)
            .query("workspace_id", workspace)
            .query("after", after.into())
            .query_if("limit", limit)
            .query_if("wait", (!wait.is_zero()).then_some(wait.as_secs().max(1)));
        self.send(call, |answer| {
            Ok(ChangePage {
                events: answer.json()?,
                cursor: answer.cursor()?,
            })
        })
        .await
    }
}

impl ApiResponse {
    /// The position in the change feed.
    pub(crate) fn cursor(&self) -> Result<Cursor, Error> {
        let cursor = self.header("change-cursor").and_then(|text| text.parse().ok());
        cursor.ok_or_else(|| self.unreadable("the answer has no Change-Cursor"))
    }
}
