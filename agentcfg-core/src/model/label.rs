//! Labels: names that point at versions of agents.

use super::{Actor, AgentId, Cursor, Label, SetName, Timestamp};
use crate::body::{body, record};
use crate::model::into_field::settable;
use crate::rules;
use crate::validate::Faults;

record! {
    /// A label of an agent: which version it points at.
    ///
    /// ```
    /// use agentcfg_core::model::AgentLabel;
    /// fn line(label: &AgentLabel) -> String {
    ///     format!("{} of {} is version {}", label.label, label.agent_id, label.version)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AgentLabel {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The label.
        label: required Label,
        /// The number of the version that it points at.
        version: required u64,
        /// When it was last moved.
        updated_at: required Timestamp,
        /// Who moved it.
        actor: required Actor,
    }
    examples: [{
        "agent_id": "release-writer",
        "label": "production",
        "version": 3,
        "updated_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
    }],
}

body! {
    /// The version that a label is to point at.
    ///
    /// ```
    /// use agentcfg_core::model::{LabelTarget, Patch};
    /// // Only if the label points at version 2 now:
    /// let target = LabelTarget::new(3).expected_version(2);
    /// assert_eq!(serde_json::to_string(&target)?, r#"{"version":3,"expected_version":2}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create LabelTarget {
        /// The number of the version.
        version: nullable u64,
        /// Another label, whose version is taken. `latest` is the current version.
        label: nullable Label,
        /// The number of the version that the label must point at now; null when it must not exist.
        expected_version: tristate u64,
    }
    read_only: &["agent_id", "updated_at", "actor"],
    examples: [{ "version": 3 }, { "version": 3, "expected_version": 2 }, { "version": 1, "expected_version": null }, { "label": "staging" }],
    also: {
        "oneOf": [
            { "required": ["version"], "properties": { "version": { "type": "integer" }, "label": { "type": "null" } } },
            { "required": ["label"], "properties": { "label": { "type": "string" }, "version": { "type": "null" } } },
        ],
    },
    whole: LabelTarget::names_one,
}

impl LabelTarget {
    /// Points at this version unconditionally: the label is moved, or created where it does not exist.
    ///
    /// ```
    /// use agentcfg_core::model::{LabelTarget, Patch};
    /// assert_eq!(LabelTarget::new(3).expected_version, Patch::Absent);
    /// ```
    pub fn new(version: u64) -> Self {
        Self {
            version: Some(version),
            label: None,
            expected_version: super::Patch::Absent,
        }
    }

    /// Points at the version that another label points at, or at the current one if that is `latest`.
    ///
    /// ```
    /// use agentcfg_core::model::LabelTarget;
    /// let target = LabelTarget::of_label("staging".parse()?);
    /// assert!(target.validate().is_ok());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn of_label(label: Label) -> Self {
        Self {
            version: None,
            label: Some(label),
            expected_version: super::Patch::Absent,
        }
    }

    fn names_one(&self, faults: &mut Faults) {
        one_version(self.version, self.label.as_ref(), faults);
    }
}

/// Reports that a body names no version, or two.
pub(super) fn one_version(version: Option<u64>, label: Option<&Label>, faults: &mut Faults) {
    match (version, label) {
        (None, None) => faults.push("version or label", "is required"),
        (Some(_), Some(_)) => faults.push("version and label", "must not both be given"),
        _ => {}
    }
}

body! {
    /// Moves a label to the version that another label points at, for several agents in one commit.
    ///
    /// ```
    /// use agentcfg_core::model::Promotion;
    /// let promotion = Promotion::new("staging".parse()?, "production".parse()?);
    /// assert!(promotion.validate().is_ok());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create Promotion {
        /// The label whose version is taken. `latest` is the current version.
        from: required Label,
        /// The label that is moved there.
        to: required Label as rules::TargetLabel,
        /// The agents; left out, each active agent that has the label `from`.
        agent_ids: nullable Vec<AgentId> as rules::AgentIds,
        /// The set whose agents are promoted, those that have the label `from`; not together with `agent_ids`.
        set: nullable SetName,
        /// The cursor of the state that the change is based on: it is refused if `from` or `to` has moved since.
        base: nullable Cursor,
    }
    read_only: &[],
    examples: [
        { "from": "staging", "to": "production" },
        { "from": "staging", "to": "production", "set": "docs" },
        { "from": "latest", "to": "staging", "agent_ids": ["release-writer", "reviewer_2"] },
    ],
    also: {
        "not": {
            "required": ["agent_ids", "set"],
            "properties": { "agent_ids": { "type": "array" }, "set": { "type": "string" } },
        },
    },
    whole: Promotion::fits_together,
}

impl Promotion {
    /// Promotes each active agent that has the label `from`.
    ///
    /// ```
    /// use agentcfg_core::model::Promotion;
    /// let promotion = Promotion::new("staging".parse()?, "production".parse()?);
    /// assert_eq!(promotion.agent_ids, None);
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn new(from: Label, to: Label) -> Self {
        Self {
            from,
            to,
            agent_ids: None,
            set: None,
            base: None,
        }
    }

    fn fits_together(&self, faults: &mut Faults) {
        if self.from == self.to {
            faults.push("to", "must be another label than from");
        }
        if self.agent_ids.is_some() && self.set.is_some() {
            faults.push("agent_ids and set", "must not both be given");
        }
    }
}

record! {
    /// A label after a promotion.
    ///
    /// ```
    /// use agentcfg_core::model::PromotedLabel;
    /// fn has_moved(label: &PromotedLabel) -> bool {
    ///     label.previous_version != Some(label.version)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    PromotedLabel {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The label that was moved.
        label: required Label,
        /// The number of the version that it points at.
        version: required u64,
        /// The number of the version that it pointed at before; null when it did not exist.
        previous_version: nullable u64,
    }
    examples: [{ "agent_id": "release-writer", "label": "production", "version": 3, "previous_version": 2 }],
}

settable! {
    /// Which labels to list. The default lists all labels of a workspace.
    ///
    /// ```
    /// use agentcfg_core::model::LabelFilter;
    /// let in_production = LabelFilter::default().label("production");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    LabelFilter<'a> {
        /// Only labels of this agent.
        agent_id: Option<&'a str>,
        /// Only this label.
        label: Option<&'a str>,
    }
}
