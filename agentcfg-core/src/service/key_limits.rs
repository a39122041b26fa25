//! What an API key is limited to: some agents of its workspace, and a label.
//!
//! Both are chosen when the key is created and never change, so what was read from its record on entry holds for good.
//! Who follows a reference to an agent asks [`KeyLimits::require_agent`], who lists agents asks
//! [`KeyLimits::includes`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::records::StoredApiKey;
use crate::error::{Error, ErrorKind};
use crate::model::{AgentId, Label, Permission, PermissionSet, VersionSelector};

/// The agents and the label that a caller is limited to. Clones share them; the default has no limits.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyLimits(Option<Arc<Limits>>);

#[derive(Debug)]
struct Limits {
    agents: Option<BTreeSet<AgentId>>,
    label: Option<Label>,
}

/// What an API key that is limited to some agents cannot have: it concerns the whole workspace.
const OF_WHOLE_WORKSPACE: [Permission; 6] = [
    Permission::UsersRead,
    Permission::WebhooksManage,
    Permission::WebhooksRead,
    Permission::ApiKeysRead,
    Permission::AuditLogRead,
    Permission::BudgetsManage,
];

/// What a key may do in a deployment that grants these permissions to its scope.
pub(super) fn permissions_of(stored: &StoredApiKey, granted: PermissionSet) -> PermissionSet {
    let named = match &stored.permissions {
        Some(named) => granted.intersection(named.iter().copied().collect()),
        None => granted,
    };
    match stored.agents {
        Some(_) => OF_WHOLE_WORKSPACE.into_iter().fold(named, PermissionSet::without),
        None => named,
    }
}

impl KeyLimits {
    pub(super) fn of(stored: &StoredApiKey) -> Self {
        let StoredApiKey { agents, label, .. } = stored;
        if agents.is_none() && label.is_none() {
            return Self::default();
        }
        Self(Some(Arc::new(Limits {
            agents: agents.as_ref().map(|agents| agents.iter().cloned().collect()),
            label: label.clone(),
        })))
    }

    /// The agents that the caller is limited to; `None` for a caller without such a limit.
    pub(super) fn agents(&self) -> Option<&BTreeSet<AgentId>> {
        self.0.as_ref()?.agents.as_ref()
    }

    /// The label that the caller's model calls, prompts and releases are pinned to.
    pub(super) fn label(&self) -> Option<&Label> {
        self.0.as_ref()?.label.as_ref()
    }

    /// Whether the caller may see this agent.
    pub(super) fn includes(&self, agent_id: &str) -> bool {
        self.agents().is_none_or(|agents| agents.contains(agent_id))
    }

    /// Refuses a caller that is limited to other agents.
    pub(super) fn require_agent(&self, agent_id: &str) -> Result<(), Error> {
        match self.includes(agent_id) {
            true => Ok(()),
            false => Err(forbidden(format!(
                "the API key is limited to some agents, and {agent_id:?} is none of them"
            ))),
        }
    }

    /// Refuses a caller that is limited to some agents what concerns the whole workspace.
    pub(super) fn require_whole_workspace(&self, what: &str) -> Result<(), Error> {
        match self.agents() {
            None => Ok(()),
            Some(_) => Err(forbidden(format!(
                "{what} concern the whole workspace, and the API key is limited to some agents"
            ))),
        }
    }

    /// Refuses another label than the one that the caller is pinned to.
    pub(super) fn require_label(&self, label: &str) -> Result<(), Error> {
        match self.label() {
            Some(pinned) if pinned != label => Err(pinned_to(pinned)),
            _ => Ok(()),
        }
    }

    /// The version that a caller selects: where it is pinned to a label, this label and no other selection.
    pub(super) fn select<'a>(&'a self, selector: VersionSelector<'a>) -> Result<VersionSelector<'a>, Error> {
        match (self.label(), selector) {
            (None, selector) => Ok(selector),
            (Some(pinned), VersionSelector::Current) => Ok(VersionSelector::Label(pinned)),
            (Some(pinned), VersionSelector::Label(label)) if pinned == label => Ok(selector),
            (Some(pinned), _) => Err(pinned_to(pinned)),
        }
    }
}

fn pinned_to(label: &Label) -> Error {
    forbidden(format!("the API key is pinned to the label {label:?}"))
}

fn forbidden(message: String) -> Error {
    Error::new(ErrorKind::Forbidden, message)
}
