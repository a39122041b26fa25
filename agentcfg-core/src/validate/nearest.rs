//! Suggestions for mistyped names.

/// The length up to which names are compared: no field and no setting is longer.
const LONGEST: usize = 60;

/// The known name that `name` is probably a mistyped form of: the one with the fewest edits, if they are few. Case does not
/// matter, and `-` is the same as `_`.
///
/// ```
/// use agentcfg_core::validate::nearest;
/// assert_eq!(nearest("displayName", &["agent_id", "display_name"]), Some("display_name"));
/// assert_eq!(nearest("zebra", &["agent_id", "display_name"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let lowered = name.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|known| (edits(&lowered, known), *known))
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, known)| *edits <= known.len() / 3)
        .map(|(_, known)| known)
}

/// Levenshtein distance in bytes.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edits_lead_to_the_name() {
        let known = ["agent_id", "display_name", "persona_prompt", "color", "url"];
        for (name, meant) in [
            ("AgentId", Some("agent_id")),
            ("agent-id", Some("agent_id")),
            ("displayname", Some("display_name")),
            ("persona", None),
            ("prompt", None),
            ("colour", Some("color")),
            ("uri", Some("url")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
    }
}
