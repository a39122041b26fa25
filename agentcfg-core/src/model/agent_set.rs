//! Sets of agents, and applying agents.

use super::agent::within_limits;
use super::word_enum::word_enum;
use super::{AgentId, AgentSpec, Changes, Cursor, SetName};
use crate::body::{body, record};
use crate::rules;
use crate::validate::Faults;

record! {
    /// A set, and the agents that belong to it.
    ///
    /// An apply adds the agents of its body to its set.
    ///
    /// ```
    /// use agentcfg_core::model::AgentSet;
    /// let set: AgentSet = serde_json::from_str(r#"{"set":"docs","agents":["release-writer"]}"#)?;
    /// assert_eq!((&*set.set, set.agents.len()), ("docs", 1));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    AgentSet {
        /// Name of the set.
        set: required SetName,
        /// The agents that belong to it, in the order of their identifiers.
        agents: required Vec<AgentId>,
    }
    examples: [{ "set": "docs", "agents": ["release-writer", "reviewer_2"] }],
}

body! {
    /// The agents as they are to be, all in one change.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentSpec, ApplyAgents};
    /// let writer = AgentSpec::new("writer".parse()?, "Writer");
    /// let apply = ApplyAgents::of(vec![writer]).set(Some("docs".parse()?)).prune(true);
    /// assert!(apply.validate().is_ok());
    /// let without_set = apply.set(None);
    /// assert_eq!(without_set.validate().unwrap_err().to_string(), "set is required when prune is true");
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    #[derive(Debug, Clone, PartialEq, Default)]
    create ApplyAgents {
        /// The agents, each of them once. There may be none if `prune` is true.
        agents: required Vec<AgentSpec> as rules::AgentSpecs,
        /// The set that the agents belong to from now on. An agent belongs to one set at most.
        set: nullable SetName,
        /// Whether to deactivate the agents of the set that are not among the agents, and to take them out of it.
        prune: defaulted bool,
        /// The cursor of the state that the change is based on: it is refused if one of its agents has changed since.
        base: nullable Cursor,
    }
    read_only: &["cursor", "results"],
    examples: [{
        "agents": [
            { "agent_id": "release-writer", "display_name": "Release writer", "model": "gpt-5.5" },
            { "agent_id": "reviewer_2", "display_name": "Ana" },
        ],
        "set": "docs",
        "prune": true,
    }],
    whole: fits_together,
}

/// The rules that concern several fields.
fn fits_together(body: &ApplyAgents, faults: &mut Faults) {
    if body.prune && body.set.is_none() {
        faults.push("set", "is required when prune is true");
    }
    if body.agents.is_empty() && !body.prune {
        faults.push("agents", "must have at least one element unless prune is true");
    }
}

within_limits!(ApplyAgents);

impl ApplyAgents {
    /// Applies these agents without a set and without a condition.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentSpec, ApplyAgents};
    /// let apply = ApplyAgents::of(vec![AgentSpec::new("writer".parse()?, "Writer")]);
    /// assert!(!apply.prune && apply.set.is_none() && apply.base.is_none());
    /// # Ok::<(), agentcfg_core::validate::Invalid>(())
    /// ```
    pub fn of(agents: Vec<AgentSpec>) -> Self {
        Self {
            agents,
            ..Self::default()
        }
    }
}

word_enum! {
    /// What an apply does to an agent.
    ApplyAction {
        /// The agent is created.
        Create = "create",
        /// Its content changes.
        Update = "update",
        /// The agent was deleted. It is active again, with the content of the body.
        Restore = "restore",
        /// The agent is deactivated, because its set is pruned.
        Deactivate = "deactivate",
        /// The agent stays as it is.
        Keep = "none",
    } or Unknown
}

record! {
    /// What an apply did to one agent.
    ///
    /// ```
    /// use agentcfg_core::model::AppliedAgent;
    /// fn line(applied: &AppliedAgent) -> String {
    ///     format!("{} {}: {} fields", applied.action, applied.agent_id, applied.changes.len())
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AppliedAgent {
        /// Identifier of the agent.
        agent_id: required AgentId,
        /// What was done.
        action: required ApplyAction,
        /// The number of the agent's current version after it.
        version: required u64,
        /// The fields that changed, by name.
        changes: required Changes,
    }
    examples: [{
        "agent_id": "release-writer",
        "action": "update",
        "version": 4,
        "changes": { "model": { "from": "gpt-5.5", "to": "claude-sonnet-5-5" } },
    }],
}

record! {
    /// The outcome of an apply.
    ///
    /// ```
    /// use agentcfg_core::model::{AppliedAgents, ApplyAction};
    /// fn is_up_to_date(applied: &AppliedAgents) -> bool {
    ///     applied.results.iter().all(|agent| agent.action == ApplyAction::Keep)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    AppliedAgents {
        /// The cursor of the state after the change; where nothing was changed, the one that the decision is based on.
        cursor: required Cursor,
        /// What was done to each agent, in the order of the body, and then to those that were pruned.
        results: required Vec<AppliedAgent>,
    }
    examples: [{
        "cursor": "k3j9x0ab-0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05-c42",
        "results": [{
            "agent_id": "release-writer",
            "action": "update",
            "version": 4,
            "changes": { "model": { "from": "gpt-5.5", "to": "claude-sonnet-5-5" } },
        }],
    }],
}

impl AppliedAgents {
    /// Nothing was applied to the state at this cursor.
    ///
    /// ```
    /// use agentcfg_core::model::{AppliedAgents, Cursor};
    /// fn has_changed(base: Cursor, applied: &AppliedAgents) -> bool {
    ///     *applied != AppliedAgents::nothing(base)
    /// }
    /// ```
    pub fn nothing(cursor: Cursor) -> Self {
        Self {
            cursor,
            results: Vec::new(),
        }
    }
}
