//! Releases: which version of each agent a label releases, and how that came about.

use super::{Actor, AgentConfig, AgentId, Cursor, Label, Message, Timestamp};
use crate::body::{body, record};
use crate::model::into_field::settable;
use crate::rules;

record! {
    /// The version of an active agent that a label points at, with its content.
    ///
    /// ```
    /// use agentcfg_core::model::ReleasedAgent;
    /// fn prompt(released: &ReleasedAgent) -> &str {
    ///     released.config.persona_prompt.as_deref().unwrap_or_default()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    ReleasedAgent {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The label.
        label: required Label,
        /// The number of the version that the label points at.
        version: required u64,
        /// When the label was last moved; for `latest`, when the version was made.
        updated_at: required Timestamp,
        /// The content of the version.
        config: required AgentConfig,
    }
    examples: [{
        "agent_id": "release-writer",
        "label": "production",
        "version": 3,
        "updated_at": "2026-11-20T10:05:41.007Z",
        "config": AgentConfig::example(),
    }],
}

record! {
    /// The move of a label of one agent.
    ///
    /// ```
    /// use agentcfg_core::model::LabelMove;
    /// fn is_new(moved: &LabelMove) -> bool {
    ///     moved.from.is_none()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    LabelMove {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version that it pointed at before; null when it did not exist.
        from: nullable u64,
        /// The number of the version that it points at from then on; null when it was removed.
        to: nullable u64,
    }
    examples: [{ "agent_id": "release-writer", "from": 2, "to": 3 }],
}

record! {
    /// A commit that moved a label, of one agent or of several.
    ///
    /// ```
    /// use agentcfg_core::model::LabelMoves;
    /// fn line(row: &LabelMoves) -> String {
    ///     let why = row.message.as_ref().map_or("no message", |message| message.as_str());
    ///     format!("{}: {} agents by {} ({why})", row.created_at, row.moves.len(), row.actor.id)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    LabelMoves {
        /// The workspace's revision that the commit made.
        revision: required u64,
        /// When the label was moved.
        created_at: required Timestamp,
        /// Who moved it.
        actor: required Actor,
        /// Why, as the request gave it.
        message: nullable Message,
        /// The moves, by agent.
        moves: required Vec<LabelMove>,
    }
    examples: [{
        "revision": 42,
        "created_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
        "message": "Release of November",
        "moves": [{ "agent_id": "release-writer", "from": 2, "to": 3 }],
    }],
}

settable! {
    /// Which moves of a label to list. The default lists the last 100 commits that moved it.
    ///
    /// ```
    /// use agentcfg_core::model::LabelHistoryFilter;
    /// let older = LabelHistoryFilter::default().before(42).limit(20);
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    LabelHistoryFilter<'a> {
        /// Only moves of this agent's label.
        agent_id: Option<&'a str>,
        /// Only commits with a smaller revision.
        before: Option<u64>,
        /// The greatest number of commits, 1–1000; `None` for 100.
        limit: Option<u32>,
    }
}

body! {
    /// The moment to which a label of all agents goes back.
    ///
    /// ```
    /// use agentcfg_core::model::LabelRestore;
    /// let restore = LabelRestore::new("production".parse()?, 42);
    /// assert!(restore.validate().is_ok());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create LabelRestore {
        /// The label.
        label: required Label as rules::TargetLabel,
        /// The workspace's revision at which the label pointed where it is to point again.
        revision: required u64 as rules::Revision,
        /// The cursor of the state that the change is based on: it is refused if the label has moved since.
        base: nullable Cursor,
    }
    read_only: &[],
    examples: [{ "label": "production", "revision": 2 }],
}

impl LabelRestore {
    /// Puts the label back to where it was at this revision, without a condition.
    ///
    /// ```
    /// use agentcfg_core::model::LabelRestore;
    /// assert_eq!(LabelRestore::new("production".parse()?, 42).base, None);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn new(label: Label, revision: u64) -> Self {
        Self {
            label,
            revision,
            base: None,
        }
    }
}

record! {
    /// A label after it was put back.
    ///
    /// ```
    /// use agentcfg_core::model::RestoredLabel;
    /// fn was_removed(label: &RestoredLabel) -> bool {
    ///     label.version.is_none()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    RestoredLabel {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The label.
        label: required Label,
        /// The number of the version that it points at; null when it is removed.
        version: nullable u64,
        /// The number of the version that it pointed at before; null when it did not exist.
        previous_version: nullable u64,
    }
    examples: [{ "agent_id": "release-writer", "label": "production", "version": 2, "previous_version": 3 }],
}
