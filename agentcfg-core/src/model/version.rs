//! Versions of agents: what an agent's content was, who changed it, and why.

use serde::{Deserialize, Serialize};

use super::label::one_version;
use super::{Actor, Agent, AgentConfig, AgentId, Changes, Label, Message, Tag, Tagged, Timestamp};
use crate::body::{body, record};
use crate::model::into_field::settable;
use crate::validate::Faults;

record! {
    /// One version of an agent, without its content.
    ///
    /// ```
    /// use agentcfg_core::model::AgentVersion;
    /// fn line(version: &AgentVersion) -> String {
    ///     let why = version.message.as_ref().map_or("no message", |message| message.as_str());
    ///     format!("{} of {}: {why}", version.version, version.created_at)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AgentVersion {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version: 1, 2, 3, … for each agent.
        version: required u64,
        /// When the version was made.
        created_at: required Timestamp,
        /// Who made it. Null for a version from before versions were kept.
        actor: nullable Actor,
        /// Why, as the request gave it.
        message: nullable Message,
        /// The number of the version whose content a rollback restored.
        restored_from: nullable u64,
        /// The labels that point at this version. The reserved label `latest` is not among them.
        labels: required Vec<Label>,
    }
    examples: [{
        "agent_id": "release-writer",
        "version": 3,
        "created_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
        "message": "Shorter notes",
        "restored_from": null,
        "labels": ["production"],
    }],
}

record! {
    /// One version of an agent with its content.
    ///
    /// ```
    /// use agentcfg_core::model::AgentVersionDetail;
    /// fn prompt(version: &AgentVersionDetail) -> &str {
    ///     version.config.persona_prompt.as_deref().unwrap_or_default()
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AgentVersionDetail {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version: 1, 2, 3, … for each agent.
        version: required u64,
        /// When the version was made.
        created_at: required Timestamp,
        /// Who made it. Null for a version from before versions were kept.
        actor: nullable Actor,
        /// Why, as the request gave it.
        message: nullable Message,
        /// The number of the version whose content a rollback restored.
        restored_from: nullable u64,
        /// The labels that point at this version. The reserved label `latest` is not among them.
        labels: required Vec<Label>,
        /// Whether the agent is active now, whichever version this is.
        is_active: required bool,
        /// The content.
        config: required AgentConfig,
    }
    examples: [{
        "agent_id": "release-writer",
        "version": 3,
        "created_at": "2026-11-20T10:05:41.007Z",
        "actor": { "type": "user", "id": "user_71" },
        "message": "Shorter notes",
        "restored_from": null,
        "labels": ["production"],
        "is_active": true,
        "config": AgentConfig::example(),
    }],
}

record! {
    /// What differs between two versions of an agent.
    ///
    /// ```
    /// use agentcfg_core::model::AgentDiff;
    /// fn print(diff: &AgentDiff) {
    ///     for (field, change) in &diff.changes {
    ///         println!("{field}: {} → {}", change.from, change.to);
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AgentDiff {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version that is compared.
        from: required u64,
        /// The number of the version that it is compared with.
        to: required u64,
        /// The fields that differ, by name.
        changes: required Changes,
        /// The difference of the two personas as a unified diff; null when they are the same.
        prompt_diff: nullable String,
    }
    examples: [{
        "agent_id": "release-writer",
        "from": 2,
        "to": 3,
        "changes": { "persona_prompt": { "from": "You write release notes.", "to": "You write short release notes." } },
        "prompt_diff": "--- version 2\n+++ version 3\n@@ -1 +1 @@\n-You write release notes.\n+You write short release notes.\n",
    }],
}

record! {
    /// What moving a label of an agent to where another one points would change.
    ///
    /// ```
    /// use agentcfg_core::model::LabelDiff;
    /// fn line(diff: &LabelDiff) -> String {
    ///     format!("{}: +{} versions, {}", diff.agent_id, diff.versions, diff.fields.join(", "))
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    LabelDiff {
        /// Identifier within the workspace, fixed at creation.
        agent_id: required AgentId,
        /// The number of the version that the first label points at.
        from: required u64,
        /// The number of the version that the second label points at.
        to: required u64,
        /// How many versions the two are apart.
        versions: required u64,
        /// The names of the fields that differ.
        fields: required Vec<String>,
        /// How many lines the persona has in addition.
        lines_added: required u64,
        /// How many lines of the persona are gone.
        lines_removed: required u64,
    }
    examples: [{
        "agent_id": "release-writer",
        "from": 2,
        "to": 5,
        "versions": 3,
        "fields": ["model", "persona_prompt"],
        "lines_added": 4,
        "lines_removed": 1,
    }],
}

/// A comparison: of two versions of an agent, or of two labels of all agents.
///
/// ```
/// use agentcfg_core::model::Comparison;
/// let none: Comparison = serde_json::from_str("[]")?;
/// assert_eq!(none, Comparison::Labels(Vec::new()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "one is made for an answer")]
pub enum Comparison {
    /// Of two versions of an agent.
    Versions(AgentDiff),
    /// Of two labels, an element for each agent.
    Labels(Vec<LabelDiff>),
}

body! {
    /// The version to go back to: its number, or a label that points at it.
    ///
    /// ```
    /// use agentcfg_core::model::Rollback;
    /// assert_eq!(Rollback::to_version(3).version, Some(3));
    /// let neither = Rollback::from_json(b"{}").unwrap_err();
    /// assert_eq!(neither.to_string(), "version or label is required");
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    create Rollback {
        /// The number of the version.
        version: nullable u64,
        /// A label that points at the version.
        label: nullable Label,
    }
    read_only: &["agent_id", "workspace_id"],
    examples: [{ "version": 3 }, { "label": "production" }],
    also: {
        "oneOf": [
            { "required": ["version"], "properties": { "version": { "type": "integer" }, "label": { "type": "null" } } },
            { "required": ["label"], "properties": { "label": { "type": "string" }, "version": { "type": "null" } } },
        ],
    },
    whole: Rollback::names_one,
}

impl Rollback {
    /// Restores the version with this number.
    ///
    /// ```
    /// use agentcfg_core::model::Rollback;
    /// assert!(Rollback::to_version(3).validate().is_ok());
    /// ```
    pub fn to_version(version: u64) -> Self {
        Self {
            version: Some(version),
            label: None,
        }
    }

    /// Restores the version that a label points at.
    ///
    /// ```
    /// use agentcfg_core::model::Rollback;
    /// let rollback = Rollback::to_label("production".parse()?);
    /// assert!(rollback.validate().is_ok());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn to_label(label: Label) -> Self {
        Self {
            version: None,
            label: Some(label),
        }
    }

    fn names_one(&self, faults: &mut Faults) {
        one_version(self.version, self.label.as_ref(), faults);
    }
}

/// Which version of an agent is meant. Where there is none, the answer is "not found", never another version.
///
/// ```
/// use agentcfg_core::model::VersionSelector;
/// assert_eq!(VersionSelector::from(3), VersionSelector::Version(3));
/// assert_eq!(VersionSelector::from("production"), VersionSelector::Label("production"));
/// assert_eq!(VersionSelector::default(), VersionSelector::Current);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionSelector<'a> {
    /// The current version.
    #[default]
    Current,
    /// The version with this number.
    Version(u64),
    /// The version that a label points at.
    Label(&'a str),
    /// The version that was current at this moment, the moment included.
    At(Timestamp),
    /// The version that was current at this revision of the workspace.
    Revision(u64),
}

impl<'a> VersionSelector<'a> {
    /// A version by the text of its number or of a label. A number that no version can have is a label, so that an error shows
    /// the text.
    ///
    /// ```
    /// use agentcfg_core::model::VersionSelector;
    /// assert_eq!(VersionSelector::from_text("3"), VersionSelector::Version(3));
    /// assert_eq!(VersionSelector::from_text("production"), VersionSelector::Label("production"));
    /// assert_eq!(VersionSelector::from_text("+3"), VersionSelector::Label("+3"));
    /// ```
    pub fn from_text(text: &'a str) -> Self {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if is_number => Self::Version(number),
            _ => Self::Label(text),
        }
    }
}

impl From<u64> for VersionSelector<'_> {
    fn from(version: u64) -> Self {
        Self::Version(version)
    }
}

impl<'a> From<&'a str> for VersionSelector<'a> {
    fn from(label: &'a str) -> Self {
        Self::Label(label)
    }
}

impl<'a> From<&'a Label> for VersionSelector<'a> {
    fn from(label: &'a Label) -> Self {
        Self::Label(label)
    }
}

impl From<Timestamp> for VersionSelector<'_> {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}

/// A moment in the past of a workspace.
///
/// ```
/// use agentcfg_core::model::{AgentFilter, AsOf};
/// let yesterday = AgentFilter::default().as_of(Some(AsOf::At("2026-11-19T18:00:00Z".parse()?)));
/// # Ok::<(), agentcfg_core::model::InvalidTimestamp>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// A point in time, which is included. One in the future means the present.
    At(Timestamp),
    /// A revision of the workspace: the number of an audit entry.
    Revision(u64),
}

settable! {
    /// The part of an agent's versions to list, newest first.
    ///
    /// ```
    /// use agentcfg_core::model::VersionPage;
    /// let older = VersionPage::default().before(7).limit(20);
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    VersionPage {
        /// Only versions with a smaller number.
        before: Option<u64>,
        /// The greatest number of versions, 1–1000; `None` for 100.
        limit: Option<u32>,
    }
}

/// An agent with the tag of its record and the number of its current version.
///
/// ```
/// use agentcfg_core::model::{Precondition, VersionedAgent};
/// /// The condition for a change of just this state.
/// fn unchanged(agent: &VersionedAgent) -> Precondition {
///     Precondition::matches(agent.tag)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VersionedAgent {
    /// The agent.
    pub value: Agent,
    /// The tag of its record.
    pub tag: Tag,
    /// The number of its current version. A client has 0 here where a proxy removed the header field that holds it.
    pub version: u64,
}

impl VersionedAgent {
    /// An agent and the number of its version.
    ///
    /// ```
    /// use agentcfg_core::model::{Agent, Tagged, VersionedAgent};
    /// fn first(agent: Tagged<Agent>) -> VersionedAgent {
    ///     VersionedAgent::new(agent, 1)
    /// }
    /// ```
    pub fn new(agent: Tagged<Agent>, version: u64) -> Self {
        Self {
            value: agent.value,
            tag: agent.tag,
            version,
        }
    }
}
