//! Positions in a workspace's log.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Epoch, WorkspaceId};

/// A position in the log of a workspace: after the entry with this revision. Its text is opaque to clients.
///
/// It names the store's epoch and the workspace, so that a position in one log is never taken for one in another.
/// (Decisions, chapter 15.)
///
/// ```
/// use agentcfg_core::model::Cursor;
/// let cursor: Cursor = "k3j9x0ab.7.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05".parse()?;
/// assert_eq!(cursor.revision, 7);
/// # Ok::<(), agentcfg_core::model::InvalidCursor>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch of the store.
    pub epoch: Epoch,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The last revision before the position; 0 at the start.
    pub revision: u64,
}

/// Why a text is not a cursor.
///
/// ```
/// use agentcfg_core::model::Cursor;
/// assert_eq!("7".parse::<Cursor>().unwrap_err().to_string(), "must be a cursor that this service made");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a cursor that this service made")]
pub struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.revision, self.workspace)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or(InvalidCursor);
        let (epoch, revision, workspace) = (next()?, next()?, next()?);
        let cursor = Self {
            epoch: epoch.parse().map_err(|_| InvalidCursor)?,
            workspace: workspace.parse().map_err(|_| InvalidCursor)?,
            revision: revision.parse().map_err(|_| InvalidCursor)?,
        };
        // One position has one text.
        (cursor.to_string() == text).then_some(cursor).ok_or(InvalidCursor)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_does() {
        let text = "k3j9x0ab.18446744073709551615.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05";
        let cursor: Cursor = text.parse().unwrap();
        assert_eq!(cursor.to_string(), text);
        for other in [
            "",
            "..",
            "k3j9x0ab.7",
            "k3j9x0ab.-7.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "k3j9x0ab.07.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "k3j9x0ab.7.0192F0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
            "k3j9x0ab.7.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05.",
            "k3j9x0.7.0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
        ] {
            assert_eq!(other.parse::<Cursor>(), Err(InvalidCursor), "{other}");
        }
    }
}
