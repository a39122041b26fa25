//! Suggestions for mistyped names.

/// The length up to which names are compared: no field and no setting is longer.
const LONGEST: usize = 60;

/// The known name that `name` is probably a mistyped form of: the one with the fewest edits, if they are few. Case does
/// not matter, and `-` is the same as `_`.
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

/// How many steps lead from one name to another: a byte that is inserted, deleted or replaced, or two neighbours that
/// change places (the optimal string alignment distance).
///
/// ```
/// use agentcfg_core::validate::edits;
/// assert_eq!(edits("lable", "label"), 1);
/// assert_eq!(edits("lbl", "label"), 2);
/// ```
pub fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut fewest = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                fewest = fewest.min(before_last[j - 2] + 1);
            }
            row.push(fewest);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
            ("agnet_id", Some("agent_id")),
            ("uri", Some("url")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
        let longest = "x".repeat(LONGEST);
        assert_eq!(nearest(&longest, &[&longest]), Some(&*longest));
        assert_eq!(nearest(&"x".repeat(LONGEST + 1), &[&longest]), None);
    }

    /// The distance by its definition, which tries each first step.
    fn by_definition(a: &[u8], b: &[u8]) -> usize {
        let ([first_of_a, rest_of_a @ ..], [first_of_b, rest_of_b @ ..]) = (a, b) else {
            return a.len() + b.len();
        };
        let replaced = by_definition(rest_of_a, rest_of_b) + usize::from(first_of_a != first_of_b);
        let deleted = by_definition(rest_of_a, b) + 1;
        let inserted = by_definition(a, rest_of_b) + 1;
        let swapped = match (rest_of_a, rest_of_b) {
            ([second_of_a, a @ ..], [second_of_b, b @ ..])
                if (first_of_a, second_of_a) == (second_of_b, first_of_b) =>
            {
                by_definition(a, b) + 1
            }
            _ => usize::MAX,
        };
        replaced.min(deleted).min(inserted).min(swapped)
    }

    #[test]
    fn the_distance_is_that_of_its_definition() {
        let mut names = vec![String::new()];
        for length in 1..=4 {
            let shorter: Vec<_> = names.iter().filter(|name| name.len() == length - 1).cloned().collect();
            names.extend(
                shorter
                    .iter()
                    .flat_map(|name| ['a', 'b', 'c'].map(|c| format!("{name}{c}"))),
            );
        }
        for a in &names {
            for b in &names {
                assert_eq!(edits(a, b), by_definition(a.as_bytes(), b.as_bytes()), "{a} {b}");
            }
        }
    }
}
