//! Which agents a list shows.

use super::word_enum::word_enum;
use super::{AgentId, AsOf};

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

/// Which agents to list. The default lists all active agents.
///
/// ```
/// use agentcfg_core::model::{AgentFilter, AgentState};
/// let second_page = AgentFilter { offset: 100, limit: Some(100), ..AgentFilter::default() };
/// let deleted = AgentFilter { state: AgentState::Inactive, ..AgentFilter::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFilter {
    /// Only the agent with this identifier: the list then has one element or none.
    pub agent_id: Option<AgentId>,
    /// Active agents, deleted ones, or both.
    pub state: AgentState,
    /// The agents as they were listed at a moment in the past; `None` for now.
    pub as_of: Option<AsOf>,
    /// The number of agents to skip.
    pub offset: u64,
    /// The maximum number of agents; `None` for no maximum. Over HTTP it is 1–1000.
    pub limit: Option<u32>,
}
