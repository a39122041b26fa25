//! The base of a change: the position in the log that its author has seen.

use super::AgentCfg;
use crate::error::{Error, ErrorKind};
use crate::model::{Cursor, CursorError, WorkspaceId};
use crate::validate::Invalid;

impl AgentCfg {
    /// The revision of a base. `last` is the last entry of the log.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a base of another workspace, [`ErrorKind::Precondition`] for one of another epoch and
    /// for one that is not there yet.
    pub(super) async fn base_revision(&self, base: Cursor, workspace: WorkspaceId, last: u64) -> Result<u64, Error> {
        match base.revision_in(workspace, self.epoch().await?, last) {
            Ok(revision) => Ok(revision),
            Err(error @ CursorError::OtherWorkspace) => Err(Invalid::new("base", error).into()),
            Err(error) => Err(Error::new(ErrorKind::Precondition, format!("base {error}"))),
        }
    }
}

/// Whether anything has changed since a base cannot be decided where the log does not go back to it.
pub(super) fn base_is_removed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Gone => Error::new(ErrorKind::Precondition, format!("base: {error}")),
        _ => error,
    }
}
