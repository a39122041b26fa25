//! Cursors: positions in the log of a workspace.

use std::fmt;
use std::str::FromStr;

use super::{Epoch, WorkspaceId, parse_uuid};
use crate::body::{from_text, serde_as_text};

/// Separates an epoch and a workspace from the revision.
const REVISION: &str = "-c";

/// A position in the log of a workspace: the state after one revision of it, in one epoch of the store.
///
/// Clients keep a cursor as an opaque text and send it back. The service checks with [`Cursor::revision_in`] that the
/// position is one of the log that it is used with. The text needs no escapes in a header, a URL or JSON.
///
/// ```
/// use agentcfg_core::model::Cursor;
/// let cursor: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42".parse()?;
/// assert_eq!(cursor.revision(), 42);
/// assert_eq!(cursor.to_string(), "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42");
/// # Ok::<(), agentcfg_core::model::CursorError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    epoch: Epoch,
    workspace: WorkspaceId,
    revision: u64,
}

/// Why a text is no cursor, or a cursor no position in a log.
///
/// ```
/// use agentcfg_core::model::{Cursor, CursorError};
/// assert_eq!("yesterday".parse::<Cursor>(), Err(CursorError::NoCursor));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// The text has not the form of a cursor.
    #[error("must be a cursor that this service has given out")]
    NoCursor,
    /// The cursor is of another workspace.
    #[error("is a cursor of another workspace")]
    OtherWorkspace,
    /// The cursor is of another epoch: the store was restored or moved since.
    #[error("is a cursor from before the store was restored or moved")]
    OtherEpoch,
    /// The cursor names a revision that the log does not have yet.
    #[error("is a cursor of a revision that does not exist yet")]
    Future,
}

impl Cursor {
    /// The cursor of a revision.
    ///
    /// ```
    /// use agentcfg_core::model::Cursor;
    /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let start = Cursor::new("k3j9x0ab".parse()?, workspace, 0);
    /// assert_eq!(start.to_string(), format!("k3j9x0ab-{workspace}-c0"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(epoch: Epoch, workspace: WorkspaceId, revision: u64) -> Self {
        Self {
            epoch,
            workspace,
            revision,
        }
    }

    /// The epoch of the store that the log is in.
    ///
    /// ```
    /// use agentcfg_core::model::Cursor;
    /// let cursor: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42".parse()?;
    /// assert_eq!(cursor.epoch().as_str(), "k3j9x0ab");
    /// # Ok::<(), agentcfg_core::model::CursorError>(())
    /// ```
    pub const fn epoch(self) -> Epoch {
        self.epoch
    }

    /// The workspace whose log it is.
    ///
    /// ```
    /// use agentcfg_core::model::Cursor;
    /// let cursor: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42".parse()?;
    /// assert_eq!(cursor.workspace().to_string(), "018f2d7c-0000-7000-8000-000000000001");
    /// # Ok::<(), agentcfg_core::model::CursorError>(())
    /// ```
    pub const fn workspace(self) -> WorkspaceId {
        self.workspace
    }

    /// The number of the last log entry before the position; 0 at the start of the log.
    ///
    /// This is what the cursor itself names. [`Self::revision_in`] checks it too.
    ///
    /// ```
    /// use agentcfg_core::model::Cursor;
    /// let cursor: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42".parse()?;
    /// assert_eq!(cursor.revision(), 42);
    /// # Ok::<(), agentcfg_core::model::CursorError>(())
    /// ```
    pub const fn revision(self) -> u64 {
        self.revision
    }

    /// The revision, if it is one of this workspace's log in this epoch. `last` is the number of the log's last entry.
    ///
    /// # Errors
    ///
    /// The first of [`CursorError::OtherWorkspace`], [`CursorError::OtherEpoch`] and [`CursorError::Future`] that is so.
    ///
    /// ```
    /// use agentcfg_core::model::{Cursor, CursorError};
    /// let cursor: Cursor = "k3j9x0ab-018f2d7c-0000-7000-8000-000000000001-c42".parse()?;
    /// let (epoch, workspace) = (cursor.epoch(), cursor.workspace());
    /// assert_eq!(cursor.revision_in(workspace, epoch, 42), Ok(42));
    /// assert_eq!(cursor.revision_in(workspace, epoch, 41), Err(CursorError::Future));
    /// # Ok::<(), CursorError>(())
    /// ```
    pub fn revision_in(self, workspace: WorkspaceId, epoch: Epoch, last: u64) -> Result<u64, CursorError> {
        if self.workspace != workspace {
            return Err(CursorError::OtherWorkspace);
        }
        if self.epoch != epoch {
            return Err(CursorError::OtherEpoch);
        }
        if self.revision > last {
            return Err(CursorError::Future);
        }
        Ok(self.revision)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}{REVISION}{}", self.epoch, self.workspace, self.revision)
    }
}

from_text!(Cursor);

impl FromStr for Cursor {
    type Err = CursorError;

    /// Takes exactly what [`Display`](fmt::Display) writes, so that equal cursors have equal texts.
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (epoch, rest) = text.split_once('-').ok_or(CursorError::NoCursor)?;
        let (workspace, revision) = rest.rsplit_once(REVISION).ok_or(CursorError::NoCursor)?;
        let cursor = Self {
            epoch: epoch.parse().map_err(|_| CursorError::NoCursor)?,
            workspace: WorkspaceId::new(parse_uuid(workspace).map_err(|_| CursorError::NoCursor)?),
            revision: revision.parse().map_err(|_| CursorError::NoCursor)?,
        };
        // Numbers have more than one spelling, and identifiers two.
        (cursor.to_string() == text)
            .then_some(cursor)
            .ok_or(CursorError::NoCursor)
    }
}

serde_as_text!(Cursor);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STUDIO: &str = "018f2d7c-0000-7000-8000-00000000000a";

    proptest! {
        #[test]
        fn a_cursor_reads_back_as_it_is_written(epoch in "[0-9a-z]{8}", workspace: u128, revision: u64) {
            let workspace = WorkspaceId::new(uuid::Uuid::from_u128(workspace));
            let cursor = Cursor::new(epoch.parse().unwrap(), workspace, revision);
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
            let json = serde_json::to_string(&cursor).unwrap();
            prop_assert_eq!(serde_json::from_str::<Cursor>(&json).unwrap(), cursor);
        }

        #[test]
        fn a_text_that_is_read_is_the_one_that_is_written(text in "[0-9a-f]{8}-[0-9a-fA-F]{8}-0000-7000-8000-[0-9a-f]{12}-c[0-9+]{1,3}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }

    #[test]
    fn other_texts_are_no_cursors() {
        for text in [
            String::new(),
            "now".into(),
            "k3j9x0ab-a7".into(),
            "k3j9x0ab-c7".into(),
            format!("k3j9x0ab-{STUDIO}"),
            format!("k3j9x0ab-{STUDIO}-c"),
            format!("k3j9x0ab-{STUDIO}-c07"),
            format!("k3j9x0ab-{STUDIO}-c+7"),
            format!("k3j9x0ab-{STUDIO}-c-7"),
            format!("k3j9x0ab-{STUDIO}-c7 "),
            format!("k3j9x0ab-{STUDIO}-w7"),
            format!("k3j9x0ab-{STUDIO}-c18446744073709551616"),
            format!("k3j9x0ab-{}-c7", STUDIO.to_uppercase()),
            format!("k3j9x0ab-{}-c7", STUDIO.replace('-', "")),
            format!("K3J9X0AB-{STUDIO}-c7"),
            format!("k3j9x0a-{STUDIO}-c7"),
            format!("k3j9x0äb-{STUDIO}-c7"),
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(CursorError::NoCursor), "{text}");
        }
    }

    #[test]
    fn a_cursor_is_of_one_workspace_in_one_epoch() {
        let (epoch, studio) = ("k3j9x0ab".parse().unwrap(), STUDIO.parse().unwrap());
        let cursor = Cursor::new(epoch, studio, 7);
        let other_epoch = "k3j9x0ac".parse().unwrap();
        let other_studio = STUDIO.replace('a', "b").parse().unwrap();
        for (workspace, epoch, last, is) in [
            (studio, epoch, 7, Ok(7)),
            (studio, epoch, 8, Ok(7)),
            (studio, epoch, 6, Err(CursorError::Future)),
            (studio, other_epoch, 6, Err(CursorError::OtherEpoch)),
            (other_studio, other_epoch, 6, Err(CursorError::OtherWorkspace)),
        ] {
            assert_eq!(cursor.revision_in(workspace, epoch, last), is);
        }
    }
}
