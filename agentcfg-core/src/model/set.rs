//! Sets of agents.

use super::{AgentId, SetName};
use crate::body::record;

record! {
    /// A set, and the agents that belong to it.
    ///
    /// An apply adds the agents of its body to its set. (Decisions, chapter 19.)
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
