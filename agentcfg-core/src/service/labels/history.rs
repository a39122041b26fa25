//! The history of a label: the commits that moved it, newest first.

use std::fmt;

use super::super::blocking::{LONG, blocking_if};
use super::super::chunked_reads;
use super::super::key_limits::KeyLimits;
use super::super::records::{self, Entries, Scanned};
use super::super::{AgentCfg, Caller};
use super::movable;
use super::moves::LoggedMoves;
use crate::error::Error;
use crate::model::{AgentId, Label, LabelHistoryFilter, LabelMoves, Permission, WorkspaceId};
use crate::validate::{DEFAULT_LIMIT, Invalid};

/// The bytes of moves after which a page is returned.
const PAGE_BYTES: usize = 512 << 10;

impl AgentCfg {
    /// The commits that moved a label, newest first, in parts of bounded size.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a text that is no label and for `latest`,
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let mut history = service.label_history(&ada, studio, "production", LabelHistoryFilter::default()).await?;
    /// let newest = history.next().await?.unwrap_or_default();
    /// assert_eq!((newest[0].moves[0].from, newest[0].moves[0].to), (None, Some(1)));
    /// # Ok(()) }) }
    /// ```
    pub async fn label_history(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        label: impl TryInto<Label, Error = Invalid>,
        filter: LabelHistoryFilter<'_>,
    ) -> Result<LabelHistory, Error> {
        let label = movable(label)?;
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        if let Some(agent_id) = filter.agent_id {
            access.limits().require_agent(agent_id)?;
        }
        let last = self.revision(&access).await?;
        Ok(LabelHistory {
            service: self.clone(),
            caller: caller.clone(),
            workspace,
            label,
            agent_id: filter.agent_id.map(str::to_owned),
            limits: access.limits().clone(),
            last: filter.before.map_or(last, |before| last.min(before.saturating_sub(1))),
            left: filter.limit.map_or(DEFAULT_LIMIT, u64::from),
            is_first: true,
        })
    }
}

/// The commits that moved a label, in parts. Each part is read when it is asked for, so that a slow reader holds
/// nothing in the store.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, studio| {
/// let mut history = service.label_history(&ada, studio, "production", LabelHistoryFilter::default()).await?;
/// assert!(history.next().await?.is_none(), "the label was never moved");
/// # Ok(()) }) }
/// ```
pub struct LabelHistory {
    service: AgentCfg,
    caller: Caller,
    workspace: WorkspaceId,
    label: Label,
    agent_id: Option<String>,
    limits: KeyLimits,
    /// The number of the newest entry that was not read yet.
    last: u64,
    /// How many commits may still be returned.
    left: u64,
    is_first: bool,
}

impl fmt::Debug for LabelHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabelHistory")
            .field("workspace", &self.workspace)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// The moves in a piece of the log.
struct Piece {
    moves: Vec<LabelMoves>,
    bytes: usize,
    last: u64,
}

impl LabelHistory {
    /// The next part: at least one commit. `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) when the caller has lost `agents:read` since the part
    /// before, and when storage fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_label(&ada, Some(studio), "writer", "production", LabelTarget::new(1)).await?;
    /// let one = LabelHistoryFilter::default().limit(1);
    /// let mut history = service.label_history(&ada, studio, "production", one).await?;
    /// assert_eq!(history.next().await?.map(|rows| rows.len()), Some(1));
    /// assert!(history.next().await?.is_none());
    /// # Ok(()) }) }
    /// ```
    pub async fn next(&mut self) -> Result<Option<Vec<LabelMoves>>, Error> {
        if !std::mem::take(&mut self.is_first) {
            self.service
                .authorize(&self.caller, self.workspace, Permission::AgentsRead)
                .await?;
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        while self.last > 0 && self.left > 0 && bytes < PAGE_BYTES {
            let piece = self.piece().await?;
            self.last = piece.last;
            self.left -= piece.moves.len() as u64;
            bytes += piece.bytes;
            page.extend(piece.moves);
            tokio::task::yield_now().await;
        }
        Ok((!page.is_empty()).then_some(page))
    }

    /// Reads a piece of the log.
    async fn piece(&self) -> Result<Piece, Error> {
        let (service, label) = (self.service.clone(), self.label.clone());
        let (agent_id, limits) = (self.agent_id.clone(), self.limits.clone());
        let is_shown =
            move |shown: &AgentId| agent_id.as_ref().is_none_or(|agent_id| shown == agent_id) && limits.includes(shown);
        let (left, after) = (self.left, records::audit_entry(self.workspace, self.last + 1));
        let entries = Entries::in_workspace(self.workspace)
            .after(&after)
            .descending()
            .bounded(chunked_reads::RECORDS, chunked_reads::BYTES);
        let piece = async move {
            let found = service.scan(entries).await?;
            blocking_if(found.bytes() >= LONG, move || select(found, &label, is_shown, left)).await?
        };
        self.service.long_read(self.workspace, piece).await
    }
}

/// Selects the commits that moved a label, of one agent or of any.
fn select(
    found: Scanned<LoggedMoves>,
    label: &Label,
    is_shown: impl Fn(&AgentId) -> bool,
    left: u64,
) -> Result<Piece, Error> {
    let mut piece = Piece {
        moves: Vec::new(),
        bytes: 0,
        last: 0,
    };
    for entry in found {
        let revision = entry.key().entry_number()?;
        piece.last = revision - 1;
        let logged = entry.value()?;
        let mut moves = logged.of(label)?;
        moves.retain(|moved| is_shown(&moved.agent_id));
        if moves.is_empty() {
            continue;
        }
        piece.bytes += entry.bytes();
        piece.moves.push(LabelMoves {
            revision,
            created_at: logged.created_at,
            actor: logged.actor,
            message: logged.message,
            moves,
        });
        if piece.moves.len() as u64 == left {
            break;
        }
    }
    Ok(piece)
}
