//! The types of events that a webhook gets.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use super::event_family;
use crate::body::FromJson;
use crate::json::Json;
use crate::validate::Faults;

/// The types of events that a webhook gets: actions of the audit log, or `agent.*` for all of a family. They read back as
/// they were sent.
///
/// The default is what callers with `agents:read` may know: `agent.*`, `agents.*` and `label.*`.
///
/// ```
/// use agentcfg_core::model::EventTypes;
/// let types = EventTypes::new(vec!["agent.*".into(), "member.set".into()]);
/// assert!(types.include("agent.updated") && types.include("member.set"));
/// assert!(!types.include("member.removed"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventTypes(Vec<String>);

impl EventTypes {
    /// Wraps a list of types. The body that has it checks their names.
    ///
    /// ```
    /// use agentcfg_core::model::EventTypes;
    /// assert!(EventTypes::new(vec!["workspace.*".into()]).include("workspace.updated"));
    /// ```
    pub fn new(types: Vec<String>) -> Self {
        Self(types)
    }

    /// The types as they were sent.
    ///
    /// ```
    /// use agentcfg_core::model::EventTypes;
    /// assert_eq!(EventTypes::default().as_slice(), ["agent.*", "agents.*", "label.*"]);
    /// ```
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// Whether a webhook with these types gets the events of an action.
    ///
    /// ```
    /// use agentcfg_core::model::EventTypes;
    /// assert!(EventTypes::default().include("agent.created"));
    /// assert!(!EventTypes::default().include("api_key.created"));
    /// ```
    pub fn include(&self, action: &str) -> bool {
        self.0.iter().any(|wanted| event_family::is_wanted(wanted, action))
    }

    /// Whether one of the types needs the permission `audit_log:read`.
    ///
    /// ```
    /// use agentcfg_core::model::EventTypes;
    /// assert!(!EventTypes::default().need_audit_log());
    /// assert!(EventTypes::new(vec!["member.*".into()]).need_audit_log());
    /// ```
    pub fn need_audit_log(&self) -> bool {
        self.0.iter().any(|name| !event_family::concerns_agents(name))
    }
}

impl Default for EventTypes {
    fn default() -> Self {
        Self(
            event_family::OF_AGENTS
                .iter()
                .map(|family| format!("{family}.*"))
                .collect(),
        )
    }
}

impl FromJson for EventTypes {
    fn from_json(json: Json<'_>, field: &dyn Display, faults: &mut Faults) -> Option<Self> {
        let before = faults.count();
        let types = Vec::from_json(json, field, faults)?;
        // What stands for an element that is no text is no type.
        (faults.count() == before).then(|| Self::new(types))
    }
}
