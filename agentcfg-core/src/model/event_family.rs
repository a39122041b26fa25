//! Families of actions: an action is `<family>.<what was done>`, and `<family>.*` names all of a family.

/// The families that callers with `agents:read` may know. Others need `audit_log:read`.
pub(crate) const OF_AGENTS: [&str; 3] = ["agent", "agents", "label"];

/// Whether an action moves a label, and does nothing else.
pub(crate) fn moves_labels(action: &str) -> bool {
    family_of(action) == "label"
}

/// The family of an action, or of a name for all of one; empty where there is none.
fn family_of(action: &str) -> &str {
    action.split_once('.').map_or("", |(family, _)| family)
}

/// Whether an action, or all of a family, is about agents or their labels.
pub(crate) fn concerns_agents(action: &str) -> bool {
    OF_AGENTS.contains(&family_of(action))
}

/// Whether an action is the one that is wanted, or one of the family that is.
pub(crate) fn is_wanted(wanted: &str, action: &str) -> bool {
    match wanted.strip_suffix(".*") {
        Some(family) => !family.is_empty() && family_of(action) == family,
        None => wanted == action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_wanted_exactly_or_by_its_family() {
        for wanted in ["agent.created", "agent.*"] {
            assert!(is_wanted(wanted, "agent.created"), "{wanted}");
        }
        for wanted in [
            "agent",
            "agent.",
            "agent.c*",
            "*",
            ".*",
            "agents.*",
            "agent.created.*",
            "agent.created ",
        ] {
            assert!(!is_wanted(wanted, "agent.created"), "{wanted}");
        }
        assert!(!is_wanted("agent.*", "agent") && !is_wanted(".*", "unknown"));
    }

    #[test]
    fn what_has_no_family_is_not_about_agents() {
        assert!(concerns_agents("agent.created") && concerns_agents("label.*"));
        assert!(!concerns_agents("agent") && !concerns_agents("unknown") && !concerns_agents("member.set"));
    }
}
