//! Query parameters that an endpoint does not know. A mistyped one must not be answered with something else than was
//! asked for: `lable=production` with the current state in place of the released one.

use agentcfg_core::validate::{edits, shown};

use super::call::{Content, Location};
use super::endpoint::Definition;
use crate::http::errors::Failure;
use crate::http::query::Query;

/// Known to every endpoint.
const WORKSPACE: &str = "workspace_id";

/// The names by which agents are read as they were or as they are released.
const BY_RELEASE: [&str; 5] = ["label", "version", "at", "revision", "dry_run"];

/// The endpoints of the specification: they ignore parameters that they do not know, unless one is mistyped.
const LENIENT: [(&str, &str); 5] = [
    ("GET", "/api/agents/configs"),
    ("POST", "/api/agents/configs"),
    ("PATCH", "/api/agents/configs"),
    ("DELETE", "/api/agents/configs"),
    ("GET", "/api/agents/status"),
];

/// The longest name that is compared with others.
const LONGEST: usize = 60;

/// Refuses parameters that the endpoint does not know.
///
/// # Errors
///
/// 400 with the parameter and the nearest known one.
pub(super) fn check(endpoint: &Definition, query: &Query<'_>) -> Result<(), Failure> {
    if query.parameters.is_empty() || !endpoint.route.path.starts_with("/api/") {
        return Ok(());
    }
    let own = || {
        let own = endpoint.parameters.iter();
        own.filter(|parameter| parameter.location == Location::Query)
            .map(|parameter| parameter.name)
    };
    let is_model_call = matches!(endpoint.content, Content::ModelCall);
    let is_lenient = LENIENT.contains(&(endpoint.route.method, endpoint.route.path));
    for (name, _) in &query.parameters {
        if *name == WORKSPACE || own().any(|known| known == name) {
            continue;
        }
        let meant = if is_model_call {
            // Any other name is for the provider.
            mistyped(name, own().chain([WORKSPACE]))
        } else if !is_lenient {
            nearest(name, own().chain([WORKSPACE]))
        } else if BY_RELEASE.contains(&&**name) {
            let instead = match &**name {
                "dry_run" => "/api/agents/apply and the changes of labels of many agents take it",
                "label" => "/api/agents/released and /api/agents/version take it",
                _ => "/api/agents/version takes it",
            };
            return Err(Failure::parameter(name, format_args!("is not known here; {instead}")));
        } else {
            mistyped(name, own().chain([WORKSPACE]).chain(BY_RELEASE))
        };
        if let Some(meant) = meant {
            let rule = format_args!("is not known (did you mean {meant}?)");
            return Err(Failure::parameter(shown(name), rule));
        }
    }
    Ok(())
}

/// The known name with the fewest steps to this one.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let end = name.char_indices().nth(LONGEST).map_or(name.len(), |(end, _)| end);
    let folded = name[..end].to_ascii_lowercase();
    known.min_by_key(|known| edits(&folded, known))
}

/// The known name that this one is a mistyped form of: it differs by case or by at most two steps, a short one by one.
fn mistyped<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let folded = name.to_ascii_lowercase();
    let steps = |known: &str| edits(&folded, known);
    known
        .filter(|known| steps(known) <= if known.len().min(name.len()) < 4 { 1 } else { 2 })
        .min_by_key(|known| steps(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_are_a_mistyped_name() {
        let meant = |name: &str| mistyped(name, ["agent_id", WORKSPACE].into_iter().chain(BY_RELEASE));
        for (name, known) in [
            ("lable", Some("label")),
            ("Label", Some("label")),
            ("LABELS", Some("label")),
            ("lbl", None),
            ("versions", Some("version")),
            ("agentid", Some("agent_id")),
            ("agent-id", Some("agent_id")),
            ("workspaceId", Some(WORKSPACE)),
            ("dryrun", Some("dry_run")),
            ("as", Some("at")),
            ("to", None),
            ("t", Some("at")),
            ("cache", None),
            ("utm_source", None),
        ] {
            assert_eq!(meant(name), known, "{name}");
        }
    }
}
