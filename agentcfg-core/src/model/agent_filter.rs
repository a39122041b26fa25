//! Which agents a list shows.

use super::word_enum::word_enum;
use super::{AgentId, AsOf};
use crate::model::into_field::settable;

word_enum! {
    /// Which agents a list shows, by whether they were deleted.
    AgentState {
        /// Agents that are not deleted.
        Active = "active",
        /// Agents that were deleted and not restored.
        Inactive = "inactive",
        /// Active and deleted agents.
        All = "all",
    }
}

impl Default for AgentState {
    /// [`AgentState::Active`]: a list without the parameter `state` has no deleted agents.
    fn default() -> Self {
        Self::Active
    }
}

impl AgentState {
    /// Whether a list of this state shows an agent.
    ///
    /// ```
    /// use agentcfg_core::model::AgentState;
    /// assert!(AgentState::All.includes(false) && AgentState::Inactive.includes(false));
    /// assert!(!AgentState::Active.includes(false));
    /// ```
    pub const fn includes(self, is_active: bool) -> bool {
        match self {
            Self::Active => is_active,
            Self::Inactive => !is_active,
            Self::All => true,
        }
    }
}

settable! {
    /// Which agents to list. The default lists all active agents.
    ///
    /// ```
    /// use agentcfg_core::model::{AgentFilter, AgentState};
    /// let second_page = AgentFilter::default().offset(100).limit(100);
    /// let deleted = AgentFilter::default().state(AgentState::Inactive);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    AgentFilter {
        /// Only the agent with this identifier: the list then has one element or none.
        agent_id: Option<AgentId>,
        /// Active agents, deleted ones, or both.
        state: AgentState,
        /// The agents as they were listed at a moment in the past; `None` for now.
        as_of: Option<AsOf>,
        /// The number of agents to skip.
        offset: u64,
        /// The maximum number of agents; `None` for no maximum. Over HTTP it is 1–1000.
        limit: Option<u32>,
    }
}
